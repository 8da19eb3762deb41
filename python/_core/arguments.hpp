// SPDX-License-Identifier: Apache-2.0
// Arguments of an operation as Python holds them: the library's, with everything that keeps their
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

// A program with what it names, in the order in which it was given; D among it where it was.
struct PyEpilogueArguments {
  nb::dict given;
  std::vector<NamedOperand> operands;
  EpilogueArguments native;  // without D, which is `out` for the library

  // Throws what the library's throws.
  PyEpilogueArguments(epilogue::Program program, nb::dict names, std::vector<NamedOperand> values);
  PyEpilogueArguments(PyEpilogueArguments&&) = default;

  const epilogue::Program& program() const noexcept { return native.program(); }
  const ImportedTensor* find_tensor(std::string_view name) const;
};

// What all arguments of operations derive from.
struct PyRuntimeArguments {
  nb::object epilogue;     // a PyEpilogueArguments, or None
  nb::object performance;  // PerformanceControls, or None
};

// An operand of arguments whose operands were copied to a device: where it came from.
struct StagedOperand {
  Tensor origin;
  Tensor copy;
  bool is_result = false;
};

struct PyGemmArguments : PyRuntimeArguments {
  std::optional<GemmArguments> native;
  // Operands of an epilogue without a product; then A and B are among the epilogue's, too.
  bool is_elementwise = false;
  ImportedTensor A, B, out;
  std::optional<ImportedTensor> C;
  nb::object origin;  // the arguments that these were staged from, which keep its memory alive
  std::vector<StagedOperand> staged;
  std::map<std::string, ImportedTensor> patched;  // what set_data bound an epilogue's operands to
  std::vector<ImportedTensor> replaced;           // by set_data, but prepared launches read them
  int max_multiprocessors = 0;
  bool wants_deterministic = false;
  bool is_fake = false;
  bool is_meta = false;
  bool must_finish = false;  // an operand is reused at once: every run waits for its end

  const PyEpilogueArguments* epilogue_arguments() const;
  // The library's name of an operand: "epilogue.A" for A where there is no product.
  std::string native_name(const std::string& operand) const;
  // Where D goes: `out`, unless the epilogue brings a tensor for it.
  const ImportedTensor& result() const;
};

// The stream to run on: `given`, or (None) what the operands' frameworks report. nullptr on the
// CPU.
void* stream_of(const PyGemmArguments& arguments, nb::handle given);

// Throws Error (invalid_argument) for arguments without memory; `call` says what wanted it.
void require_memory(const PyGemmArguments& arguments, std::string_view call);

// Validates the operands that `arguments` holds and makes its native form of them.
void validate(PyGemmArguments& arguments, nb::handle accumulator, double alpha, double beta,
              Math math);

// The same arguments with operands copied to a device, and back: `args.to_device()`, `args.sync()`.
nb::object stage(nb::handle self, Device device);
PyGemmArguments staged_on(const PyGemmArguments& arguments, Device device);
void finish_staged(const PyGemmArguments& arguments, void* handle);

// A tensor that may be written; Error (invalid_argument) for a read-only one.
ImportedTensor import_result(nb::handle object, std::string_view role);

// True if the address of `given` can replace that of `bound`. Batches of 1 may be left out, and the
// stride of an extent of 1 does not matter.
bool has_same_layout(const Tensor& given, const Tensor& bound);

// The address that a Python number is; Error (invalid_argument) for one that is none.
void* to_address(nb::handle number, std::string_view operand);

// A tensor to take the place of an operand's; Error (invalid_argument) where it is of another
// shape, type or device, has other strides, or may not be written and will be.
ImportedTensor import_replacement(const PyGemmArguments& arguments, const std::string& operand,
                                  nb::handle given);

// Calls `visit(tensor)` for every tensor that arguments hold themselves.
template <class Arguments, class Visit>
void for_each_held(Arguments& arguments, const Visit& visit) {
  visit(arguments.A);
  visit(arguments.B);
  visit(arguments.out);
  if (arguments.C) visit(*arguments.C);
  for (auto& [operand, tensor] : arguments.patched) visit(tensor);
  for (auto& tensor : arguments.replaced) visit(tensor);
}

// Keeps the tensors to which operands are bound now alive as long as the arguments, whatever
// set_data binds later: a prepared launch holds their addresses and keeps the arguments alive.
void keep_for_launch(PyGemmArguments& arguments);

// Binds an operand to other memory; `given` is a tensor or an address.
void set_operand_data(PyGemmArguments& arguments, const std::string& operand, nb::handle given);

// The epilogue's and performance controls' types, checked and read.
void read_common(PyGemmArguments& arguments);
Math to_math(std::string_view word);
// The options of arguments, with C and the epilogue that they hold.
GemmOptions options_of(const PyGemmArguments& arguments, double alpha, double beta, Math math);
// What the memory of all operands is like.
void note_memory(PyGemmArguments& arguments);

// GroupedGemmArguments: with the sizes, or lists of tensors in place of A, B, out and C.
struct PyGroupedGemmArguments : PyGemmArguments {
  std::optional<ImportedTensor> sizes;  // of 64 bits as twice as many int32
  int size_bits = 32;
  // Indices of rows (or columns), in the same way.
  std::optional<ImportedTensor> gather, scatter;
  int gather_bits = 32, scatter_bits = 32;
  struct {
    std::vector<ImportedTensor> a, b, out, c;
  } listed;
};

// ConvArguments: a class of its own for Python alone, as ElementwiseArguments is.
struct PyConvArguments : PyGemmArguments {};
struct PyElementwiseArguments : PyGemmArguments {};

}  // namespace gemmery::python
