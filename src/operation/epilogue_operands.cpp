// SPDX-License-Identifier: Apache-2.0
// Broadcasts, reductions, rules and overlaps of an epilogue's operands.
#include "operation/epilogue_operands.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <span>

#include "core/number.hpp"
#include "epilogue/blocks.hpp"
#include "epilogue/graph.hpp"
#include "operation/block_results.hpp"
#include "operation/companions.hpp"
#include "operation/overlap.hpp"
#include "operation/refusal.hpp"

namespace gemmery::operation {
namespace {

// --- words --------------------------------------------------------------------------------------

bool is_word(char letter) {
  return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_';
}

// The column (from 1) at which the name occurs in a program's text as a word of its own.
std::size_t find_name(std::string_view text, std::string_view name) {
  for (std::size_t at = text.find(name); at != std::string_view::npos;
       at = text.find(name, at + 1)) {
    const std::size_t after = at + name.size();
    const bool begins = at == 0 || !is_word(text[at - 1]);
    if (begins && (after == text.size() || !is_word(text[after]))) return at + 1;
  }
  return 0;
}

// Tells which node of the program an error is about.
class Place {
 public:
  Place(const epilogue::Program& program, std::string_view name) : program_(program), name_(name) {}

  [[noreturn]] void refuse(std::string expected, std::string got, std::string_view advice = {},
                           ErrorKind kind = ErrorKind::invalid_argument) const {
    const std::string& text = program_.text();
    std::string hint = "the epilogue \"" + text.substr(0, 300) + "\" names it at column " +
                       std::to_string(find_name(text, name_));
    if (!advice.empty()) hint = std::string(advice) + "; " + hint;
    operation::refuse("epilogue operand " + std::string(name_), std::move(expected), std::move(got),
                      std::move(hint), kind);
  }

 private:
  const epilogue::Program& program_;
  std::string_view name_;
};

std::string shape_text(std::span<const std::int64_t> shape) {
  std::string text = "(";
  for (std::size_t d = 0; d < shape.size(); ++d)
    text += (d == 0 ? "" : ", ") + std::to_string(shape[d]);
  return text + (shape.size() == 1 ? ",)" : ")");
}

// --- views --------------------------------------------------------------------------------------

// Extent and stride of a dimension of out, counted from the left, in a tensor that may lack it.
struct Dimension {
  std::int64_t extent = 1;
  std::int64_t stride = 0;
};
Dimension dimension_of(const Tensor& tensor, int d) {
  const int own = d - (3 - tensor.rank());
  return own < 0 ? Dimension{} : Dimension{tensor.extent(own), tensor.stride(own)};
}

bool broadcasts_to(const Tensor& tensor, const Tensor& out) {
  if (tensor.rank() > 3) return false;
  for (int d = 0; d < 3; ++d) {
    const std::int64_t extent = dimension_of(tensor, d).extent;
    if (extent != out.extent(d) && extent != 1) return false;
  }
  return true;
}

// A tensor that is read: broadcast to out's shape.
Tensor broadcast(const Tensor& tensor, const Tensor& out) {
  std::array<std::int64_t, 3> shape{};
  std::array<std::int64_t, 3> strides{};
  for (int d = 0; d < 3; ++d) {
    const Dimension own = dimension_of(tensor, d);
    const auto at = static_cast<std::size_t>(d);
    shape[at] = out.extent(d);
    strides[at] = own.extent == 1 ? 0 : own.stride;
  }
  return with_strides(tensor, shape, strides);
}

// A tensor that is stored, with its own extents.
Tensor with_three_dimensions(const Tensor& tensor) {
  std::array<std::int64_t, 3> shape{};
  std::array<std::int64_t, 3> strides{};
  for (int d = 0; d < 3; ++d) {
    const Dimension own = dimension_of(tensor, d);
    const auto at = static_cast<std::size_t>(d);
    shape[at] = own.extent;
    strides[at] = own.extent == 1 ? 0 : own.stride;
  }
  return with_strides(tensor, shape, strides);
}

Tensor view_input(const Place& place, const Tensor& tensor, const Tensor& out) {
  if (!broadcasts_to(tensor, out)) {
    const bool is_of_rows = tensor.rank() == 1 && tensor.extent(0) == out.extent(1);
    place.refuse("a shape that broadcasts to out's " + shape_text(out.shape()),
                 shape_text(tensor.shape()),
                 is_of_rows ? "(M, 1) is a value for every row, (N,) one for every column" : "");
  }
  return broadcast(tensor, out);
}

Tensor view_result(const Place& place, const Tensor& tensor, const Tensor& out, bool is_reduced) {
  if (!broadcasts_to(tensor, out)) {
    place.refuse(is_reduced ? "out's shape " + shape_text(out.shape()) +
                                  " with an extent of 1, or none, along what is reduced"
                            : "out's shape " + shape_text(out.shape()),
                 shape_text(tensor.shape()));
  }
  if (is_reduced && tensor.has_pointers())
    place.refuse("one tensor for what is reduced to", "a batch by pointers", {},
                 ErrorKind::unsupported);
  return with_three_dimensions(tensor);
}

Tensor view_swizzled_blocks(const Place& place, const Tensor& tensor, const MatrixExtents& own) {
  if (tensor.element_count() != own.batch * own.columns || !has_packed_elements(tensor))
    place.refuse(std::to_string(own.columns) +
                     " packed values for each matrix: rows rounded up to "
                     "128, times blocks rounded up to 4",
                 to_string(tensor));
  const std::array shape{own.batch, own.rows, own.columns};
  return with_strides(tensor, shape, {own.columns, 0, 1});
}

// A result for blocks of out.
Tensor view_blocks(const Place& place, const Tensor& tensor, ScaleLayout layout,
                   const MatrixExtents& own) {
  if (tensor.has_pointers())
    place.refuse("one tensor for the values of blocks", "a batch by pointers", {},
                 ErrorKind::unsupported);
  if (layout != ScaleLayout::strided) return view_swizzled_blocks(place, tensor, own);
  const std::array shape{own.batch, own.rows, own.columns};
  bool fits = tensor.rank() <= 3;
  for (int d = 0; fits && d < 3; ++d)
    fits = dimension_of(tensor, d).extent == shape[static_cast<std::size_t>(d)];
  if (!fits)
    place.refuse("a value for each block, " + shape_text(shape), shape_text(tensor.shape()));
  return with_three_dimensions(tensor);
}

// --- rules --------------------------------------------------------------------------------------

Adjacent adjacency_of(const MatrixType& type) {
  if (type.column_stride == 1) return Adjacent::along_n;
  return type.row_stride == 1 ? Adjacent::along_m : Adjacent::none;
}

bool is_repeated(std::int64_t stride, std::int64_t extent) { return stride == 0 && extent > 1; }

void check_full_result(const Place& place, const MatrixType& type, const MatrixExtents& extents) {
  const bool is_full = !is_repeated(type.batch_stride, extents.batch) &&
                       !is_repeated(type.row_stride, extents.rows) &&
                       !is_repeated(type.column_stride, extents.columns);
  if (is_full) return;
  place.refuse("an element for every element of out", "one for several of them",
               "sum(x), max(x), min(x) and amax(x) reduce");
}

void check_reduced_result(const Place& place, const MatrixType& type,
                          const MatrixExtents& extents) {
  const bool keeps_batches = type.batch_stride != 0 || extents.batch == 1;
  const bool keeps_matrix = type.row_stride != 0 && type.column_stride != 0;
  if (!keeps_batches || !keeps_matrix) return;
  place.refuse("an extent of 1, or a missing leading one, along what is reduced",
               "the shape of out, in which nothing is reduced",
               "(M, 1) takes a value for every row, (N,) for every column, (1,) one for all");
}

// A result for blocks is stored value by value.
EpilogueOperandRule rule_of_blocks(const EpilogueMatrix& matrix, epilogue::Block block) {
  return {.name = matrix.name,
          .is_output = true,
          .dtype = matrix.type.dtype,
          .varies_l = true,
          .varies_m = block.rows != 0,
          .varies_n = block.columns != 0,
          .alignment = matrix.type.alignment,
          .layout = matrix.layout,
          .block = block};
}

void check_layout(const Place& place, ScaleLayout layout, epilogue::Block block) {
  if (layout == ScaleLayout::strided) return;
  const bool is_scale = block != epilogue::one_element && (block.rows == 1 || block.columns == 1);
  if (!is_scale)
    place.refuse("a value of blocks of one row, or of one column, in the layout swizzled_128x4",
                 block == epilogue::one_element ? "one that is stored for every element"
                                                : "blocks of " + epilogue::block_text(block));
}

EpilogueOperandRule rule_of(const EpilogueMatrix& matrix, bool is_result, bool is_reduced) {
  EpilogueOperandRule rule{.name = matrix.name, .is_number = matrix.is_number};
  if (matrix.is_number) return rule;
  const MatrixType& type = matrix.type;
  const bool is_full = is_result && !is_reduced;
  rule.is_output = is_result;
  rule.dtype = type.dtype;
  rule.varies_l = is_full || type.batch_stride != 0;
  rule.varies_m = is_full || type.row_stride != 0;
  rule.varies_n = is_full || type.column_stride != 0;
  rule.adjacent = adjacency_of(type);
  rule.alignment = type.alignment;
  return rule;
}

void check_type(const Place& place, DType dtype, bool is_result) {
  if (number::is_host_number(dtype) || (is_result && dtype == DType::float8_e8m0fnu)) return;
  place.refuse("an element type that is a number by itself", std::string(name(dtype)),
               "results may be e8m0; operands with scales and packed types are A and B",
               ErrorKind::unsupported);
}

}  // namespace

epilogue::Reduction reduction_of(const epilogue::Program& program,
                                 std::string_view result) noexcept {
  const auto& outputs = program.graph().outputs;
  const auto found = std::ranges::find(outputs, result, &epilogue::Output::name);
  return found == outputs.end() ? epilogue::Reduction::none : found->reduction;
}

MatrixType with_own_alignment(MatrixType type) noexcept {
  type.alignment = static_cast<std::uint8_t>(byte_width(type.dtype));
  return type;
}

MatrixType settle_alignment(MatrixType type) noexcept {
  return adjacency_of(type) == Adjacent::none ? with_own_alignment(type) : type;
}

bool is_contiguous_along(const MatrixType& type, std::optional<Ragged> ragged) noexcept {
  const Adjacent adjacent = adjacency_of(type);
  return (ragged == Ragged::m && adjacent == Adjacent::along_m) ||
         (ragged == Ragged::n && adjacent == Adjacent::along_n);
}

DescribedEpilogue describe_epilogue(const epilogue::Program& program,
                                    const std::vector<EpilogueMatrix>& matrices,
                                    const MatrixExtents& extents, std::optional<Ragged> ragged) {
  EpilogueRules rules{.program = program, .operands = {}};
  DescribedEpilogue described;
  for (std::size_t i = 0; i < matrices.size(); ++i) {
    const EpilogueMatrix& matrix = matrices[i];
    const bool is_result = i >= program.inputs().size();
    const bool is_reduced =
        is_result && reduction_of(program, matrix.name) != epilogue::Reduction::none;
    const Place place(program, matrix.name);
    if (is_result) {
      const epilogue::Block block = block_of_result(program, matrices, matrix.name);
      check_layout(place, matrix.layout, block);
      if (block != epilogue::one_element) {
        check_type(place, matrix.type.dtype, true);
        described.operands.push_back(with_own_alignment(matrix.type));
        rules.operands.push_back(
            rule_of_blocks({matrix.name, false, described.operands.back(), matrix.layout}, block));
        continue;
      }
    }
    if (!matrix.is_number) {
      check_type(place, matrix.type.dtype, is_result);
      if (is_reduced) check_reduced_result(place, matrix.type, extents);
      if (is_result && !is_reduced) check_full_result(place, matrix.type, extents);
    }
    described.operands.push_back(matrix.is_number ? MatrixType{} : settle_alignment(matrix.type));
    if (!matrix.is_number && is_contiguous_along(matrix.type, ragged))
      described.operands.back().alignment =
          static_cast<std::uint8_t>(byte_width(matrix.type.dtype));
    rules.operands.push_back(
        rule_of({matrix.name, matrix.is_number, described.operands.back()}, is_result, is_reduced));
  }
  described.id = intern(rules);
  return described;
}

const EpilogueOperand* find_operand(const std::vector<EpilogueOperand>& operands,
                                    std::string_view name) noexcept {
  const auto found = std::ranges::find(operands, name, &EpilogueOperand::name);
  return found == operands.end() ? nullptr : &*found;
}

bool is_linear_combination(const EpilogueArguments& epilogue) noexcept {
  if (!(epilogue.program() == epilogue::linear_combination())) return false;
  const auto holds_number = [&](std::string_view name, bool wanted) {
    const EpilogueOperand* const operand = find_operand(epilogue.operands(), name);
    return operand != nullptr && std::holds_alternative<double>(operand->value) == wanted;
  };
  return holds_number("alpha", true) && holds_number("beta", true) && holds_number("C", false);
}

namespace {

EpilogueMatrix matrix_of(const EpilogueOperand& view, bool is_reduced) {
  const auto* const tensor = std::get_if<Tensor>(&view.value);
  if (tensor == nullptr) return {.name = view.name, .is_number = true};
  return {.name = view.name,
          .type = is_reduced ? reduced_matrix_type(*tensor) : matrix_type(*tensor),
          .layout = view.layout};
}

// The matrices of the program's inputs, which views begin with.
std::vector<EpilogueMatrix> input_matrices(const std::vector<EpilogueOperand>& views,
                                           const epilogue::Program& program) {
  std::vector<EpilogueMatrix> matrices;
  for (std::size_t i = 0; i < program.inputs().size(); ++i)
    matrices.push_back(matrix_of(views[i], false));
  return matrices;
}

Tensor view_any_result(const Place& place, const EpilogueOperand& operand, const OutDomain& out,
                       const epilogue::Program& program, epilogue::Block block) {
  const Tensor& tensor = std::get<Tensor>(operand.value);
  check_layout(place, operand.layout, block);
  if (block != epilogue::one_element)
    return view_blocks(
        place, tensor, operand.layout,
        block_extents(block, operand.layout,
                      {out.matrices, out.elements.extent(1), out.elements.extent(2)}));
  return view_result(place, tensor, out.elements,
                     reduction_of(program, operand.name) != epilogue::Reduction::none);
}

}  // namespace

std::vector<EpilogueOperand> view_operands(const EpilogueArguments& epilogue,
                                           const OutDomain& domain) {
  const Tensor& out = domain.elements;
  const epilogue::Program& program = epilogue.program();
  const std::size_t results = program.inputs().size();
  std::vector<EpilogueOperand> views = epilogue.operands();
  for (std::size_t i = 0; i < views.size(); ++i) {
    auto* const tensor = std::get_if<Tensor>(&views[i].value);
    if (tensor == nullptr) continue;
    const Place place(program, views[i].name);
    const std::string label = "epilogue operand " + views[i].name;
    check_type(place, tensor->dtype(), i >= results);
    check_pointer_count(label, *tensor, out.extent(0));
    if (i < results) {
      *tensor = view_input(place, *tensor, out);
    } else {
      const epilogue::Block block =
          block_of_result(program, input_matrices(views, program), views[i].name);
      *tensor = view_any_result(place, views[i], domain, program, block);
    }
    check_device(label, *tensor, out.device());
    check_memory(label, *tensor);
    if (i >= results && has_self_overlap(*tensor))
      place.refuse("strides under which no two elements share memory", to_string(*tensor));
  }
  return views;
}

std::vector<EpilogueMatrix> matrices_of(const std::vector<EpilogueOperand>& views,
                                        const epilogue::Program& program) {
  std::vector<EpilogueMatrix> matrices = input_matrices(views, program);
  for (std::size_t i = matrices.size(); i < views.size(); ++i) {
    const bool is_reduced =
        reduction_of(program, views[i].name) != epilogue::Reduction::none ||
        block_of_result(program, matrices, views[i].name) != epilogue::one_element;
    matrices.push_back(matrix_of(views[i], is_reduced));
  }
  return matrices;
}

namespace {

struct NamedTensor {
  std::string_view name;
  const Tensor& tensor;
};

void refuse_shared(const NamedTensor& result, const NamedTensor& other) {
  if (!may_overlap(result.tensor, other.tensor)) return;
  refuse("epilogue operand " + std::string(result.name),
         "memory that shares nothing with " + std::string(other.name), "overlapping memory",
         "write to another tensor");
}

// An input may be exactly a result. Each element is read before the same thread overwrites it; a
// reduction of rows or columns is stored after all of their elements were read.
void refuse_partly_shared(const NamedTensor& result, const NamedTensor& input) {
  if (is_same_view(result.tensor, input.tensor) || !may_overlap(result.tensor, input.tensor))
    return;
  refuse("epilogue operand " + std::string(input.name),
         "memory that is exactly " + std::string(result.name) + " or shares nothing with it",
         "partly overlapping memory", "copy it, or write to another tensor");
}

bool is_of_everything(const NamedTensor& result, const epilogue::Program& program) {
  const auto is_that = [&](const epilogue::Output& output) { return output.name == result.name; };
  const auto output = std::ranges::find_if(program.graph().outputs, is_that);
  return output != program.graph().outputs.end() &&
         output->reduction != epilogue::Reduction::none && result.tensor.element_count() == 1;
}

}  // namespace

void check_epilogue_overlaps(const std::vector<EpilogueOperand>& views,
                             const epilogue::Program& program, const ProductOperands& product) {
  const std::size_t results = program.inputs().size();
  std::vector<NamedTensor> inputs, outputs;
  for (std::size_t i = 0; i < views.size(); ++i) {
    const auto* const tensor = std::get_if<Tensor>(&views[i].value);
    if (tensor != nullptr) (i < results ? inputs : outputs).push_back({views[i].name, *tensor});
  }
  const NamedTensor a{"A", product.a}, b{"B", product.b}, out{"out", product.out};
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    for (const NamedTensor& other : {a, b, out}) refuse_shared(outputs[i], other);
    for (std::size_t j = 0; j < i; ++j) refuse_shared(outputs[i], outputs[j]);
    const auto refuse_input =
        is_of_everything(outputs[i], program) ? refuse_shared : refuse_partly_shared;
    for (const NamedTensor& input : inputs) refuse_input(outputs[i], input);
  }
  for (const NamedTensor& input : inputs) refuse_partly_shared(out, input);
}

void check_memory(std::string_view operand, const Tensor& tensor) {
  if (tensor.element_count() == 0) return;
  if (tensor.data() == nullptr) {
    std::int64_t own = 1;  // without elements that a broadcast repeats
    for (int d = 0; d < tensor.rank(); ++d) own *= tensor.stride(d) == 0 ? 1 : tensor.extent(d);
    refuse(operand, "memory for " + std::to_string(own) + (own == 1 ? " element" : " elements"),
           "a null pointer");
  }
  const auto address = reinterpret_cast<std::uintptr_t>(tensor.data());
  const std::size_t width = byte_width(tensor.dtype());
  if (tensor.has_pointers()) {
    if (address % sizeof(void*) == 0) return;
    refuse(operand, "an array of pointers at a multiple of 8 bytes",
           "an address that is " + std::to_string(address % sizeof(void*)) + " bytes off");
  }
  if (address % width != 0) {
    refuse(operand,
           "an address that is a multiple of its " + std::to_string(width) + "-byte elements",
           "an address that is " + std::to_string(address % width) + " bytes off",
           "copy it to aligned memory");
  }
}

void check_pointer_count(std::string_view operand, const Tensor& tensor, std::int64_t batches) {
  if (!tensor.has_pointers() || tensor.extent(0) == batches) return;
  refuse(operand, std::to_string(batches) + " pointers, one for each matrix of out",
         std::to_string(tensor.extent(0)), "an address may stand in the array several times");
}

void check_device(std::string_view operand, const Tensor& tensor, Device device) {
  if (tensor.device() == device) return;
  refuse(operand, "memory on " + to_string(device) + " (where out is)",
         "memory on " + to_string(tensor.device()), "move the operands to one device");
}

}  // namespace gemmery::operation
