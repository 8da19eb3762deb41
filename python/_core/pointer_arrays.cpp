// SPDX-License-Identifier: Apache-2.0
// Batches by pointers as tensors: from an existing array of addresses, or from matrices whose
// addresses are written into one.
#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gemmery/buffer.hpp>

#include <nanobind/stl/array.h>

#include "tensors.hpp"

namespace gemmery::python {
namespace {

// Rows, columns and strides of every matrix.
struct Matrix {
  DType dtype;
  std::array<std::int64_t, 2> shape;
  std::array<std::int64_t, 2> strides;
};

Tensor view_of(const void* array, std::int64_t count, const Matrix& matrix, int alignment,
               Device device) {
  const PointerArray pointers{static_cast<const void* const*>(array), alignment};
  return Tensor(pointers, matrix.dtype, {count, matrix.shape[0], matrix.shape[1]}, matrix.strides,
                device);
}

// A tensor over memory that `base` keeps alive; its stream is that of `like`.
ImportedTensor make_tensor(const Tensor& view, const ImportedTensor& like, nb::object base) {
  ImportedTensor tensor;
  tensor.view = view;
  tensor.base = std::move(base);
  tensor.exchange = like.exchange;
  tensor.stream_source = like.stream_source;
  tensor.is_read_only = like.is_read_only;
  tensor.is_reused_at_once = like.is_reused_at_once;
  return tensor;
}

// --- of an array --------------------------------------------------------------------------------

ImportedTensor of_array(nb::handle pointers, const std::array<std::int64_t, 3>& shape,
                        nb::handle dtype, std::optional<std::array<std::int64_t, 2>> strides,
                        int alignment) {
  const ImportedTensor array = import_tensor(pointers, "pointers");
  const auto bytes =
      array.view.element_count() * static_cast<std::int64_t>(byte_width(array.view.dtype()));
  if (array.is_fake || !is_packed_in_any_order(array.view) ||
      bytes != shape[0] * static_cast<std::int64_t>(sizeof(void*)))
    refuse("pointers", std::to_string(shape[0]) + " addresses of 8 bytes, packed",
           to_string(array.view));
  const Matrix matrix{to_dtype(dtype, "dtype"),
                      {shape[1], shape[2]},
                      strides.value_or(std::array{shape[2], std::int64_t{1}})};
  const Tensor view = view_of(array.view.data(), shape[0], matrix, alignment, array.view.device());
  ImportedTensor tensor = make_tensor(view, array, nb::borrow(pointers));
  tensor.is_read_only = false;  // the array may be read-only; the matrices are written
  return tensor;
}

// --- of matrices --------------------------------------------------------------------------------

Matrix matrix_of(const Tensor& tensor, const std::string& role) {
  if (tensor.has_pointers() || tensor.rank() != 2)
    refuse(role, "a matrix, (rows, columns)", to_string(tensor));
  return {
      tensor.dtype(), {tensor.extent(0), tensor.extent(1)}, {tensor.stride(0), tensor.stride(1)}};
}

void check_alike(const Tensor& first, const Tensor& other, const std::string& role) {
  const Matrix one = matrix_of(first, "matrices[0]");
  const Matrix two = matrix_of(other, role);
  if (one.dtype == two.dtype && one.shape == two.shape && one.strides == two.strides &&
      first.device() == other.device())
    return;
  refuse(role, "a matrix like the first, " + to_string(first), to_string(other));
}

std::shared_ptr<Buffer> put_on_device(const std::vector<const void*>& addresses, Device device) {
  const Stream stream = device.is_cpu() ? Stream::cpu() : Stream::of(nullptr, device);
  const std::size_t bytes = addresses.size() * sizeof(void*);
  auto buffer = std::make_shared<Buffer>(bytes, stream);
  copy(buffer->data(), device, addresses.data(), Device::cpu(), bytes, stream);
  synchronize(stream);
  return buffer;
}

ImportedTensor of_matrices(const nb::tuple& matrices, std::optional<int> alignment) {
  if (matrices.size() == 0) refuse("matrices", "a matrix at least", "none");
  std::vector<const void*> addresses;
  std::uintptr_t bits = 16;
  bool is_read_only = false;
  const ImportedTensor first = import_tensor(matrices[0], "matrices[0]");
  for (std::size_t at = 0; at < matrices.size(); ++at) {
    const std::string role = "matrices[" + std::to_string(at) + "]";
    const ImportedTensor one = import_tensor(matrices[at], role);
    check_alike(first.view, one.view, role);
    if (one.is_fake) refuse(role, "a matrix with memory", "one without");
    is_read_only = is_read_only || one.is_read_only;
    addresses.push_back(one.view.data());
    bits |= reinterpret_cast<std::uintptr_t>(one.view.data());
  }
  const std::shared_ptr<Buffer> array = put_on_device(addresses, first.view.device());
  const int known = 1 << std::countr_zero(bits);
  const Tensor view =
      view_of(array->data(), static_cast<std::int64_t>(addresses.size()),
              matrix_of(first.view, "matrices[0]"), alignment.value_or(known), first.view.device());
  ImportedTensor tensor = make_tensor(view, first, nb::borrow(matrices));
  tensor.owner = array;
  tensor.is_read_only = is_read_only;
  return tensor;
}

}  // namespace

void bind_pointer_arrays(nb::module_& module) {
  module.def("pointer_array", &of_array, nb::arg("pointers"), nb::arg("shape"), nb::arg("dtype"),
             nb::arg("strides").none() = nb::none(), nb::arg("alignment") = 16);
  module.def("pointer_array_of", &of_matrices, nb::arg("matrices"),
             nb::arg("alignment").none() = nb::none());
}

}  // namespace gemmery::python
