// SPDX-License-Identifier: Apache-2.0
// Arguments of an operation for Python: the library's arguments, and the objects that keep their
// memory alive.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <gemmery/arguments.hpp>
#include <gemmery/elementwise.hpp>
#include <gemmery/stream.hpp>

#include "bindings.hpp"
#include "tensors.hpp"

namespace gemmery::python {

struct NamedOperand {
  std::string name;
  std::variant<double, ImportedTensor> value;
};

// A program with its named operands in the given order, including D if it was given.
struct PyEpilogueArguments {
  nb::dict given;
  std::vector<NamedOperand> operands;
  EpilogueArguments native;  // without D, which is `out` for the library

  // Throws the same errors as EpilogueArguments.
  PyEpilogueArguments(epilogue::Program program, nb::dict names, std::vector<NamedOperand> values);
  PyEpilogueArguments(PyEpilogueArguments&&) = default;

  const epilogue::Program& program() const noexcept { return native.program(); }
  const ImportedTensor* find_tensor(std::string_view name) const;
};

// The base of all arguments of operations.
struct PyRuntimeArguments {
  nb::object epilogue;     // a PyEpilogueArguments, or None
  nb::object performance;  // PerformanceControls, or None
};

// The origin of an operand that was copied to a device.
struct StagedOperand {
  Tensor origin;
  Tensor copy;
  bool is_result = false;
};

// An operand as it was given: a tensor, or a gemmery.ScaledOperand with its tensors.
struct PyOperand {
  ImportedTensor quantized;
  // Scales, then the zero point and the tensors of the program.
  std::vector<ImportedTensor> companions;
  ScaledOperand native{Tensor()};
};
// Imports the tensors. `role` names the operand in errors.
PyOperand import_operand(nb::handle object, std::string_view role);

struct PyGemmArguments : PyRuntimeArguments {
  std::optional<GemmArguments> native;
  // Elementwise arguments: an epilogue without a product. A and B are then operands of the
  // epilogue, too.
  bool is_elementwise = false;
  ImportedTensor A, B, out;
  std::optional<ImportedTensor> C;
  std::vector<ImportedTensor> companions;  // scales and zero points of A, then of B
  nb::object origin;  // the arguments that these were staged from, which keep its memory alive
  std::vector<StagedOperand> staged;
  std::map<std::string, ImportedTensor> patched;  // what set_data bound an epilogue's operands to
  std::vector<ImportedTensor> replaced;           // by set_data, but prepared launches read them
  int max_multiprocessors = 0;
  bool wants_deterministic = false;
  bool is_fake = false;
  bool is_meta = false;
  bool must_finish = false;  // every run waits for its end: see ImportedTensor::is_reused_at_once

  const PyEpilogueArguments* epilogue_arguments() const;
  // The library's name of an operand: "epilogue.A" for A where there is no product.
  std::string native_name(const std::string& operand) const;
  // The tensor that receives D: `out`, unless the epilogue binds D to another.
  const ImportedTensor& result() const;
};

// The stream to run on: `given`, or, if it is None, the current stream of the operands' frameworks.
// nullptr on the CPU.
void* stream_of(const PyGemmArguments& arguments, nb::handle given);

// Throws Error (invalid_argument) for arguments without memory; `call` names the call that needs
// it.
void require_memory(const PyGemmArguments& arguments, std::string_view call);

// Validates the operands of `arguments` and sets its native form.
void validate(PyGemmArguments& arguments, nb::handle accumulator, double alpha, double beta,
              Math math);

// A and B with their scales, whose tensors `arguments` keeps.
struct ScaledPair {
  ScaledOperand a, b;
};
ScaledPair import_operands(PyGemmArguments& arguments, nb::handle A, nb::handle B);

// The same arguments with operands copied to a device, and back: `args.to_device()`, `args.sync()`.
nb::object stage(nb::handle self, Device device);
ImportedTensor copied_to(const ImportedTensor& tensor, Device device);
PyGemmArguments staged_on(const PyGemmArguments& arguments, Device device);
void finish_staged(const PyGemmArguments& arguments, void* handle);

// Imports a tensor that will be written; throws Error (invalid_argument) for a read-only one.
ImportedTensor import_result(nb::handle object, std::string_view role);

// True if the address of `given` can replace that of `bound`. Batches of 1 may be left out, and the
// stride of an extent of 1 does not matter.
bool has_same_layout(const Tensor& given, const Tensor& bound);

// Converts a Python number to an address; throws Error (invalid_argument) for invalid ones.
void* to_address(nb::handle number, std::string_view operand);

// Imports a tensor that replaces an operand's. Throws Error (invalid_argument) if its shape, type,
// device or strides differ, or if it is read-only and will be written.
ImportedTensor import_replacement(const PyGemmArguments& arguments, const std::string& operand,
                                  nb::handle given);

// Calls `visit(tensor)` for every tensor that the arguments own.
template <class Arguments, class Visit>
void for_each_held(Arguments& arguments, const Visit& visit) {
  visit(arguments.A);
  visit(arguments.B);
  visit(arguments.out);
  if (arguments.C) visit(*arguments.C);
  for (auto& tensor : arguments.companions) visit(tensor);
  for (auto& [operand, tensor] : arguments.patched) visit(tensor);
  for (auto& tensor : arguments.replaced) visit(tensor);
}

// Keeps the tensors to which operands are bound now alive as long as the arguments, even if
// set_data binds others later: a prepared launch has their addresses and keeps the arguments alive.
void keep_for_launch(PyGemmArguments& arguments);

// Binds an operand to other memory; `given` is a tensor or an address.
void set_operand_data(PyGemmArguments& arguments, const std::string& operand, nb::handle given);

// The problem of arguments as a line, with their numbers.
std::string problem_line(const PyGemmArguments& arguments);
// Equal for arguments of one problem with the same numbers on one device.
nb::bytes identity_of(const PyGemmArguments& arguments);

// Checks the types of the epilogue and the performance controls, and reads them.
void read_common(PyGemmArguments& arguments);
Math to_math(std::string_view word);
// The options of arguments, including their C and epilogue.
GemmOptions options_of(const PyGemmArguments& arguments, double alpha, double beta, Math math);
// Sets the flags that describe the memory of all operands.
void note_memory(PyGemmArguments& arguments);

// GroupedGemmArguments: has sizes, or lists of tensors in place of A, B, out and C.
struct PyGroupedGemmArguments : PyGemmArguments {
  std::optional<ImportedTensor> sizes;  // 64-bit sizes as twice as many int32
  int size_bits = 32;
  // Indices of rows (or columns), in the same way.
  std::optional<ImportedTensor> gather, scatter;
  int gather_bits = 32, scatter_bits = 32;
  struct {
    std::vector<ImportedTensor> a, b, out, c;
  } listed;
};

// ConvArguments: a separate class only for Python, like ElementwiseArguments.
struct PyConvArguments : PyGemmArguments {};
struct PyElementwiseArguments : PyGemmArguments {};

}  // namespace gemmery::python
