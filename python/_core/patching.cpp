// SPDX-License-Identifier: Apache-2.0
// set_data: binds an operand of existing arguments to another tensor or address.
#include "arguments.hpp"

#include <algorithm>
#include <utility>

namespace gemmery::python {
namespace {

// The tensor that an operand is bound to; nullptr if there is no such operand.
const ImportedTensor* find_bound(const PyGemmArguments& arguments, const std::string& operand) {
  if (operand == "out") return &arguments.result();
  const PyEpilogueArguments* const epilogue = arguments.epilogue_arguments();
  const ImportedTensor* const named =
      epilogue == nullptr ? nullptr : epilogue->find_tensor(operand);
  if (arguments.is_elementwise && named != nullptr) return named;
  if (operand == "A") return &arguments.A;
  if (operand == "B") return &arguments.B;
  if (operand == "C" && arguments.C) return &*arguments.C;
  return named;
}

bool is_written(const PyGemmArguments& arguments, const std::string& operand) {
  if (operand == "out") return true;
  const PyEpilogueArguments* const epilogue = arguments.epilogue_arguments();
  if (epilogue == nullptr) return false;
  for (const std::string& output : epilogue->program().outputs())
    if (output == operand) return true;
  return false;
}

// The variable that keeps an operand's tensor. Tensors of an epilogue belong to its
// EpilogueArguments, which several arguments may share, so replacements are kept in `patched`.
ImportedTensor& place_of(PyGemmArguments& arguments, const std::string& operand) {
  if (operand == "A") return arguments.A;
  if (operand == "B") return arguments.B;
  if (operand == "out") return arguments.out;
  if (operand == "C" && arguments.C) return *arguments.C;
  return arguments.patched[operand];
}

// Keeps `tensor` alive in place of the one that `operand` was bound to before.
void keep(PyGemmArguments& arguments, const std::string& operand, ImportedTensor&& tensor) {
  ImportedTensor& place = place_of(arguments, operand);
  if (place.is_launched) arguments.replaced.push_back(std::move(place));
  place = std::move(tensor);
}

}  // namespace

ImportedTensor import_result(nb::handle object, std::string_view role) {
  ImportedTensor tensor = import_tensor(object, role);
  if (!tensor.is_read_only) return tensor;
  throw Error(
      {.kind = ErrorKind::invalid_argument,
       .operand = std::string(role),
       .expected = "a tensor that may be written",
       .got = "a read-only " + nb::cast<std::string>(nb::str(object.type().attr("__name__"))),
       .hint = "arrays of JAX never may; use a tensor of torch, cupy or numpy, or "
               "gemmery.empty(…)"});
}

bool has_same_layout(const Tensor& given, const Tensor& bound) {
  if (given.dtype() != bound.dtype() || given.device() != bound.device()) return false;
  const auto extent = [](const Tensor& tensor, int from_last) {
    return from_last < tensor.rank() ? tensor.extent(tensor.rank() - 1 - from_last) : 1;
  };
  for (int d = 0; d < std::max(given.rank(), bound.rank()); ++d) {
    if (extent(given, d) != extent(bound, d)) return false;
    if (extent(given, d) > 1 &&
        given.stride(given.rank() - 1 - d) != bound.stride(bound.rank() - 1 - d)) {
      return false;
    }
  }
  return true;
}

void* to_address(nb::handle number, std::string_view operand) {
  const std::size_t address = PyLong_AsSize_t(number.ptr());
  if (PyErr_Occurred() == nullptr) return reinterpret_cast<void*>(address);
  PyErr_Clear();
  throw Error({.kind = ErrorKind::invalid_argument,
               .operand = std::string(operand),
               .expected = "an address or a handle, from 0 to 2^64 - 1",
               .got = nb::cast<std::string>(nb::str(number))});
}

ImportedTensor import_replacement(const PyGemmArguments& arguments, const std::string& operand,
                                  nb::handle given) {
  ImportedTensor tensor = is_written(arguments, operand) ? import_result(given, operand)
                                                         : import_tensor(given, operand);
  // The library refuses unknown names.
  const ImportedTensor* const bound = find_bound(arguments, operand);
  if (bound == nullptr) return tensor;
  if (!tensor.is_fake && has_same_layout(tensor.view, bound->view)) return tensor;
  throw Error(
      {.kind = ErrorKind::invalid_argument,
       .operand = operand,
       .expected = "a tensor like the one that was bound, " + to_string(bound->view),
       .got = tensor.is_fake ? "one of torch's meta or fake tensors" : to_string(tensor.view),
       .hint = "make new arguments: shape, strides and type are part of the problem"});
}

void set_operand_data(PyGemmArguments& arguments, const std::string& operand, nb::handle given) {
  if (PyLong_Check(given.ptr())) {
    arguments.native->set_data(arguments.native_name(operand), to_address(given, operand));
    return;
  }
  ImportedTensor tensor = import_replacement(arguments, operand, given);
  arguments.native->set_data(arguments.native_name(operand), tensor.view.data());
  arguments.must_finish = arguments.must_finish || tensor.is_reused_at_once;
  keep(arguments, operand, std::move(tensor));
}

void keep_for_launch(PyGemmArguments& arguments) {
  for_each_held(arguments, [](ImportedTensor& tensor) { tensor.is_launched = true; });
}

}  // namespace gemmery::python
