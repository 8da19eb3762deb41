// SPDX-License-Identifier: Apache-2.0
// Arguments whose operands are copied to a device on request, and whose results are copied back on
// request: NumPy on a GPU.
#include <algorithm>
#include <utility>
#include <vector>

#include <gemmery/buffer.hpp>

#include "arguments.hpp"

namespace gemmery::python {
namespace {

bool is_same_view(const Tensor& a, const Tensor& b) {
  return a.data() == b.data() && a.dtype() == b.dtype() &&
         std::ranges::equal(a.shape(), b.shape()) && std::ranges::equal(a.strides(), b.strides());
}

// Copies operands to one device. Operands that are the same tensor (C that is out) share the copy.
class Stager {
 public:
  explicit Stager(Device device) : device_(device) {}

  ImportedTensor copy(const ImportedTensor& operand, bool is_result) {
    for (std::size_t i = 0; i < made_.size(); ++i) {
      if (!is_same_view(staged_[i].origin, operand.view)) continue;
      staged_[i].is_result = staged_[i].is_result || is_result;
      return share(made_[i]);
    }
    const bool is_packed = is_packed_in_any_order(operand.view);
    made_.push_back(allocate(operand.view.shape(), operand.view.dtype(), device_,
                             is_packed ? operand.view.strides() : std::span<const std::int64_t>{}));
    copy_elements(made_.back().view, operand.view, nullptr);
    staged_.push_back({operand.view, made_.back().view, is_result});
    return share(made_.back());
  }

  std::vector<StagedOperand> take() { return std::move(staged_); }

 private:
  static ImportedTensor share(const ImportedTensor& made) {
    ImportedTensor tensor;
    tensor.view = made.view;
    tensor.owner = made.owner;
    tensor.base = nb::none();
    return tensor;
  }

  Device device_;
  std::vector<ImportedTensor> made_;
  std::vector<StagedOperand> staged_;
};

bool is_output(const PyEpilogueArguments& epilogue, const std::string& name) {
  // A result that is the accumulators themselves is called accum_out and bound as accum.
  const std::string_view result = name == "accum" ? "accum_out" : std::string_view(name);
  return std::ranges::count(epilogue.program().outputs(), result) != 0;
}

// True if the program reads or writes the operand. An operand that only a dropped result reads is
// not copied.
bool is_named(const PyEpilogueArguments& epilogue, const std::string& name) {
  return is_output(epilogue, name) || std::ranges::count(epilogue.program().inputs(), name) != 0;
}

// The Python object for an operand's copy.
nb::object shown(const ImportedTensor& tensor) {
  ImportedTensor seen;
  seen.view = tensor.view;
  seen.owner = tensor.owner;
  seen.base = nb::none();
  return nb::cast(std::move(seen));
}

// Constructs the copy by the Python class of `arguments`, which may have further members.
nb::object stage_epilogue(nb::handle arguments, Stager& stager) {
  const PyEpilogueArguments& given = *nb::inst_ptr<PyEpilogueArguments>(arguments);
  nb::dict names;
  std::vector<NamedOperand> staged;
  for (const NamedOperand& operand : given.operands) {
    if (!is_named(given, operand.name)) continue;
    if (const auto* const tensor = std::get_if<ImportedTensor>(&operand.value)) {
      staged.push_back({operand.name, stager.copy(*tensor, is_output(given, operand.name))});
      names[operand.name.c_str()] = shown(std::get<ImportedTensor>(staged.back().value));
    } else {
      staged.push_back({operand.name, std::get<double>(operand.value)});
      names[operand.name.c_str()] = given.given[operand.name.c_str()];
    }
  }
  nb::object copy = nb::inst_alloc(arguments.type());
  new (nb::inst_ptr<PyEpilogueArguments>(copy))
      PyEpilogueArguments(given.program(), std::move(names), std::move(staged));
  nb::inst_mark_ready(copy);
  if (nb::hasattr(arguments, "epilogue_fn"))
    copy.attr("epilogue_fn") = arguments.attr("epilogue_fn");
  return copy;
}

void require_host(const PyGemmArguments& arguments) {
  require_memory(arguments, "to_device");
  if (arguments.native->device().is_cpu()) return;
  throw Error({.kind = ErrorKind::invalid_argument,
               .operand = "to_device",
               .expected = "operands in memory of the CPU",
               .got = "operands on " + to_string(arguments.native->device())});
}

void show(ImportedTensor& tensor) { tensor.base = shown(tensor); }

}  // namespace

ImportedTensor copied_to(const ImportedTensor& tensor, Device device) {
  Stager stager(device);
  return stager.copy(tensor, false);
}

PyGemmArguments staged_on(const PyGemmArguments& arguments, Device device) {
  Stager stager(device);
  PyGemmArguments staged;
  staged.is_elementwise = arguments.is_elementwise;
  staged.performance = arguments.performance;
  staged.max_multiprocessors = arguments.max_multiprocessors;
  staged.wants_deterministic = arguments.wants_deterministic;
  const PyEpilogueArguments* const epilogue = arguments.epilogue_arguments();
  const bool writes_out = &arguments.result() == &arguments.out;
  const GemmProblem& problem = arguments.native->problem();
  if (!problem.a_companions.empty() || !problem.b_companions.empty())
    throw Error({.kind = ErrorKind::unsupported,
                 .operand = "to_device",
                 .expected = "operands without scales",
                 .got = "a scaled operand",
                 .hint = "copy its tensors to the device and make arguments of the copies"});
  staged.A = stager.copy(arguments.A, false);
  staged.B = stager.copy(arguments.B, false);
  staged.out = stager.copy(arguments.out, writes_out);
  if (arguments.C) staged.C = stager.copy(*arguments.C, false);
  staged.epilogue = epilogue == nullptr ? nb::none() : stage_epilogue(arguments.epilogue, stager);
  const GemmArguments& native = *arguments.native;
  // Numbers of an epilogue are among its operands.
  validate(staged, nb::cast(native.problem().accumulator), epilogue == nullptr ? native.alpha() : 1,
           epilogue == nullptr ? native.beta() : 0, native.problem().math);
  staged.staged = stager.take();
  return staged;
}

nb::object stage(nb::handle self, Device device) {
  const auto& arguments = nb::cast<const PyGemmArguments&>(self);
  require_host(arguments);
  if (device.is_cpu()) return nb::borrow(self);
  PyGemmArguments staged = staged_on(arguments, device);
  staged.origin = nb::borrow(self);
  for (ImportedTensor* const tensor : {&staged.A, &staged.B, &staged.out}) show(*tensor);
  if (staged.C) show(*staged.C);
  return nb::cast(std::move(staged));
}

void finish_staged(const PyGemmArguments& arguments, void* handle) {
  const Device device = arguments.native->device();
  synchronize(device.is_cpu() ? Stream::cpu() : Stream::of(handle, device));
  for (const StagedOperand& operand : arguments.staged) {
    if (operand.is_result) copy_elements(operand.origin, operand.copy, handle);
  }
}

}  // namespace gemmery::python
