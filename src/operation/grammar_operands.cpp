// SPDX-License-Identifier: Apache-2.0
#include "operation/grammar_operands.hpp"

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/arithmetic.hpp"
#include "core/invariant.hpp"
#include "epilogue/expression_parser.hpp"
#include "operation/block_results.hpp"
#include "operation/grammar_groups.hpp"
#include "operation/groups.hpp"

namespace gemmery::grammar {
namespace {

using operation::alignment_of;
using operation::normalize;
using operation::packed_matrix;

// No memory has larger strides; keeps products of strides and extents within 64 bits.
constexpr std::int64_t largest_leading = std::int64_t{1} << 32;
constexpr std::int64_t largest_stride = std::int64_t{1} << 40;

// Reads the strides of images (or filters), then of each spatial dimension.
void read_outer_strides(OperandWords& operand, std::string_view value) {
  if (!operand.outer_strides.empty()) refuse(operand.word, "each modifier once");
  for (const std::string_view part : split(value, ',')) {
    const auto stride = read_integer(part);
    if (!stride || magnitude(*stride) > largest_stride)
      refuse(operand.word, "strides= of whole numbers of at most 2^40");
    operand.outer_strides.push_back(*stride);
  }
}

void read_modifier(OperandWords& operand, std::string_view modifier) {
  const std::size_t equals = modifier.find('=');
  const std::string_view key = modifier.substr(0, equals);
  const std::string_view value =
      equals == std::string_view::npos ? std::string_view{} : modifier.substr(equals + 1);
  if (modifier == "pointers") {
    if (operand.has_pointers) refuse(operand.word, "each modifier once");
    operand.has_pointers = true;
    return;
  }
  if (key == "strides" && operand.role == Role::tensor) return read_outer_strides(operand, value);
  if (key == "strides") {
    if (operand.strides) refuse(operand.word, "each modifier once");
    const auto parts = split(value, ',');
    const auto row = read_integer(parts.front());
    const auto column = parts.size() == 2 ? read_integer(parts.back()) : std::nullopt;
    if (!row || !column) refuse(operand.word, "strides=ROW,COLUMN in elements");
    if (magnitude(*row) > largest_stride || magnitude(*column) > largest_stride) {
      refuse(operand.word, "strides of at most 2^40 elements");
    }
    operand.strides = {*row, *column};
    return;
  }
  const auto number = read_integer(value);
  auto* const target = key == "ld"      ? &operand.leading
                       : key == "batch" ? &operand.batch
                       : key == "align" ? &operand.alignment
                                        : nullptr;
  if (target == nullptr)
    refuse(operand.word, "ld=, batch=, pointers, align= or strides= after '/'");
  if (!number || magnitude(*number) > largest_stride) {
    refuse(operand.word, fmt::format("a whole number of at most 2^40 after {}=", key));
  }
  if (*target) refuse(operand.word, "each modifier once");
  *target = *number;
}

bool is_power_of_two_up_to_16(std::int64_t value) {
  return value == 1 || value == 2 || value == 4 || value == 8 || value == 16;
}

// Broadcasts (or, in a result, reduces) along the directions that `dims` leaves out.
void apply_dims(const OperandWords& operand, MatrixType& matrix, const MatrixExtents& extents) {
  if (!operand.dims) return;
  const std::string& dims = *operand.dims;
  if (operand.role == Role::blocks)
    refuse(operand.word, "no dims: a value for each block that the epilogue reduces");
  if (operand.role == Role::matrix)
    refuse(operand.word, "dims in brackets on c= and on operands of an epilogue only");
  const bool has_batch = dims.starts_with("l,") || dims == "l";
  const std::string inner = has_batch ? dims.substr(std::min<std::size_t>(2, dims.size())) : dims;
  const bool is_known = inner == "m" || inner == "n" || inner == "1" || inner == "m,n";
  if (!is_known) refuse(operand.word, "[m], [n], [1], [m,n], [l,m], [l,n], [l,1] or [l,m,n]");
  MatrixExtents kept = extents;
  if (!has_batch) kept.batch = 1;
  if (inner == "n" || inner == "1") kept.rows = 1;
  if (inner == "m" || inner == "1") kept.columns = 1;
  matrix = packed_matrix(operand.dtype, inner == "m" ? Layout::column : operand.layout, kept);
}

// Refuses pointers for an operand that has no matrix of its own for each batch, and for results of
// reductions.
void check_pointers(const OperandWords& operand) {
  if (operand.batch) refuse(operand.word, "either batch= or pointers");
  if (operand.role == Role::reduced || operand.role == Role::blocks)
    refuse(operand.word, "no pointers for the result of a reduction", {}, ErrorKind::unsupported);
  if (operand.dims && !operand.dims->starts_with("l"))
    refuse(operand.word, "pointers with [l,m,n], [l,m], [l,n] or [l,1]");
}

// The extents of a reduction's result, by its strides, which are 0 along reduced directions.
MatrixExtents own_extents(const MatrixType& matrix, const MatrixExtents& out) {
  return {matrix.batch_stride == 0 ? 1 : out.batch, matrix.row_stride == 0 ? 1 : out.rows,
          matrix.column_stride == 0 ? 1 : out.columns};
}

// Extents of at least 1, so that strides are kept if there are no elements.
MatrixExtents without_zeros(MatrixExtents extents) {
  for (std::int64_t* const extent : {&extents.batch, &extents.rows, &extents.columns})
    if (*extent == 0) *extent = 2;
  return extents;
}

MatrixType make_matrix(const OperandWords& operand, const MatrixExtents& extents_of_out) {
  const bool is_own = operand.role == Role::reduced || operand.role == Role::blocks;
  const MatrixExtents extents = is_own ? without_zeros(extents_of_out) : extents_of_out;
  MatrixType matrix = packed_matrix(operand.dtype, operand.layout, extents);
  apply_dims(operand, matrix, extents);
  if (operand.leading) {
    const bool is_row = operand.layout == Layout::row;
    const std::int64_t least = is_row ? extents_of_out.columns : extents_of_out.rows;
    if (operand.strides) refuse(operand.word, "either ld= or strides=");
    if (*operand.leading < least || *operand.leading > largest_leading) {
      refuse(operand.word, fmt::format("ld= from {} to 2^32", least));
    }
    (is_row ? matrix.row_stride : matrix.column_stride) = *operand.leading;
    matrix.batch_stride = *operand.leading * (is_row ? extents.rows : extents.columns);
  }
  if (operand.strides) std::tie(matrix.row_stride, matrix.column_stride) = *operand.strides;
  if (operand.batch) matrix.batch_stride = *operand.batch;
  if (operand.has_pointers) check_pointers(operand);
  if (operand.has_pointers) matrix.batch_stride = by_pointers;
  if (operand.role == Role::reduced)
    matrix = operation::normalize_reduced(matrix, own_extents(matrix, extents_of_out));
  else if (operand.role == Role::blocks)
    matrix = operation::normalize_reduced(matrix, extents_of_out);
  else
    matrix = normalize(matrix, extents);
  matrix.alignment = alignment_of(0, matrix);
  if (operand.role == Role::blocks) matrix = operation::with_own_alignment(matrix);
  const bool is_epilogues = operand.role == Role::epilogue || operand.role == Role::reduced;
  if (is_epilogues) matrix = operation::settle_alignment(matrix);
  const std::uint8_t natural = matrix.alignment;
  if (operand.alignment) {
    const auto width = static_cast<std::int64_t>(byte_width(operand.dtype));
    if (!is_power_of_two_up_to_16(*operand.alignment) || *operand.alignment < width ||
        *operand.alignment > natural) {
      refuse(operand.word,
             fmt::format("align= of a power of two from {} (its element) to {} (its strides)",
                         width, natural));
    }
  }
  if (operand.alignment) matrix.alignment = static_cast<std::uint8_t>(*operand.alignment);
  return matrix;
}

// --- spelling -----------------------------------------------------------------------------------

std::string spell(const OperandWords& operand) {
  std::string text{alias(operand.dtype)};
  if (operand.layout == Layout::column) text += ":c";
  if (operand.values_layout != ScaleLayout::strided) text += ":swizzled";
  if (operand.dims) text += "[" + *operand.dims + "]";
  if (operand.leading) text += fmt::format("/ld={}", *operand.leading);
  if (operand.strides)
    text += fmt::format("/strides={},{}", operand.strides->first, operand.strides->second);
  if (operand.batch) text += fmt::format("/batch={}", *operand.batch);
  if (operand.has_pointers) text += "/pointers";
  if (operand.alignment) text += fmt::format("/align={}", *operand.alignment);
  return text;
}

// Adds the modifiers that make the spelling read back as `matrix`; nothing if that is impossible.
std::optional<std::string> complete(OperandWords spelling, const MatrixType& matrix,
                                    const MatrixExtents& extents) {
  spelling.has_pointers = matrix.has_pointers();
  MatrixType read = make_matrix(spelling, extents);
  if (read.batch_stride != matrix.batch_stride) {
    spelling.batch = matrix.batch_stride;
    read = make_matrix(spelling, extents);
  }
  if (read.row_stride != matrix.row_stride || read.column_stride != matrix.column_stride)
    return std::nullopt;
  if (read.alignment != matrix.alignment) spelling.alignment = matrix.alignment;
  return spell(spelling);
}

// All spellings of the matrix that are shorter than its strides, shortest first; then its strides.
std::vector<OperandWords> spellings(const MatrixType& matrix, const MatrixExtents& extents,
                                    Role role) {
  const OperandWords plain = packed_operand(role, matrix.dtype);
  std::vector<OperandWords> list{plain};
  OperandWords column = plain;
  column.layout = Layout::column;
  list.push_back(column);
  if (role != Role::matrix && role != Role::blocks) {
    const bool has_batch = matrix.batch_stride != 0;
    for (const char* const dims : {"n", "m", "1"}) {
      list.push_back(plain);
      list.back().dims = has_batch ? std::string("l,") + dims : dims;
    }
  }
  if (matrix.column_stride == 1 && matrix.row_stride >= extents.columns &&
      matrix.row_stride <= largest_leading) {
    list.push_back(plain);
    list.back().leading = matrix.row_stride;
  }
  if (matrix.row_stride == 1 && matrix.column_stride >= extents.rows &&
      matrix.column_stride <= largest_leading) {
    list.push_back(column);
    list.back().leading = matrix.column_stride;
  }
  list.push_back(plain);
  list.back().strides = {matrix.row_stride, matrix.column_stride};
  return list;
}

}  // namespace

OperandWords packed_operand(Role role, DType dtype) { return {.role = role, .dtype = dtype}; }

namespace {

// Names that do not say which of several types is meant.
constexpr std::pair<std::string_view, std::string_view> vague_dtypes[] = {
    {"fp8", "e4m3 or e5m2"},
    {"f8", "e4m3 or e5m2"},
    {"float8", "e4m3 or e5m2"},
    {"fp6", "e2m3 or e3m2"},
    {"float6", "e2m3 or e3m2"},
    {"fp4", "e2m1"},
    {"float4", "e2m1"},
    {"int", "int8"},
    {"uint", "uint8"},
    {"bfloat", "bf16"},
    {"bf", "bf16"},
    {"mxfp8", "e4m3 with scales"},
    {"mxfp4", "e2m1 with scales"},
    {"nvfp4", "e2m1 with scales"}};

// "; did you mean e4m3 or e5m2?", or nothing.
std::string dtype_question(std::string_view text) {
  for (const auto& [word, types] : vague_dtypes)
    if (text == word) return fmt::format("; did you mean {}?", types);
  std::vector<std::string> names;
  for (const DTypeFacts& known : dtype_table) names.emplace_back(known.alias);
  const std::string question = epilogue::suggest(text, names);
  return question.empty() ? "" : "; " + question;
}

}  // namespace

DType read_dtype(const Word& word, std::string_view text, bool& names_tf32) {
  names_tf32 = text == "tf32" || text == "tfloat32" || text == "TFloat32";
  if (names_tf32) return DType::float32;
  const auto dtype = parse_dtype(text);
  if (!dtype)
    refuse(word, "an element type such as f32, bf16, e4m3, s8",
           fmt::format("\"{}\" names none{}", text, dtype_question(text)));
  return *dtype;
}

OperandWords read_operand(const Word& word, Role role, std::string_view value) {
  OperandWords operand{.word = word, .role = role};
  const auto parts = split(value, '/');
  std::string_view head = parts.front();
  for (std::size_t i = 1; i < parts.size(); ++i) read_modifier(operand, parts[i]);
  if (const std::size_t bracket = head.find('['); bracket != std::string_view::npos) {
    if (!head.ends_with(']')) refuse(word, "']' after the dims");
    operand.dims = std::string(head.substr(bracket + 1, head.size() - bracket - 2));
    head = head.substr(0, bracket);
  }
  if (const std::size_t colon = head.find(':'); colon != std::string_view::npos) {
    const std::string_view major = head.substr(colon + 1);
    if (major == "swizzled" && role == Role::blocks)
      operand.values_layout = ScaleLayout::swizzled_128x4;
    else if (major != "r" && major != "c")
      refuse(word, "\":r\" (row major) or \":c\" (column major)");
    operand.layout = major == "c" ? Layout::column : Layout::row;
    head = head.substr(0, colon);
  }
  operand.dtype = read_dtype(word, head, operand.names_tf32);
  return operand;
}

// The matrix, with strides within the range that can be spelled.
MatrixType read_matrix(const OperandWords& operand, const MatrixExtents& extents) {
  const MatrixType matrix = make_matrix(operand, extents);
  if (!operation::has_whole_bytes(matrix))
    refuse(operand.word,
           fmt::format("strides of whole bytes, multiples of {} elements of {} (pad rows with ld=)",
                       whole_elements(operand.dtype), name(operand.dtype)));
  if (!matrix.has_pointers() && magnitude(matrix.batch_stride) > largest_stride)
    refuse(operand.word,
           operand.leading ? "ld= under which batches are at most 2^40 elements apart"
                           : "extents under which matrices of a batch have at most 2^40 elements");
  return matrix;
}

std::string matrix_text(const MatrixType& matrix, const MatrixExtents& extents, Role role,
                        bool names_batch) {
  for (OperandWords spelling : spellings(matrix, extents, role)) {
    if (names_batch && !spelling.dims) spelling.dims = "l,m,n";
    if (const auto text = complete(spelling, matrix, extents)) return *text;
  }
  abort_on_bug("an operand's strides do not spell themselves");
}

namespace {

// A result of the epilogue for blocks of out.
operation::EpilogueMatrix read_blocks(const NamedWord& named, epilogue::Block block,
                                      const MatrixExtents& out) {
  const OperandWords words = read_operand(named.word, Role::blocks, named.value);
  const bool is_swizzled = words.values_layout != ScaleLayout::strided;
  if (is_swizzled && (words.leading || words.strides || words.batch))
    refuse(named.word, "no strides beside :swizzled, which is packed");
  return {.name = named.name,
          .type = read_matrix(words, operation::block_extents(block, words.values_layout, out)),
          .layout = words.values_layout};
}

Role role_of(const epilogue::Program& program, std::string_view name) {
  const bool is_reduced = operation::reduction_of(program, name) != epilogue::Reduction::none;
  return is_reduced ? Role::reduced : Role::epilogue;
}

}  // namespace

operation::EpilogueMatrix read_epilogue_tensor(const NamedWord& named,
                                               const epilogue::Program& program,
                                               const std::vector<operation::EpilogueMatrix>& before,
                                               const GemmProblem& problem) {
  const bool is_result = before.size() >= program.inputs().size();
  const epilogue::Block block =
      is_result ? operation::block_of_result(program, before, named.name) : epilogue::one_element;
  if (block != epilogue::one_element)
    return read_blocks(named, block, operation::product_extents(problem).out);
  const OperandWords words = read_operand(named.word, role_of(program, named.name), named.value);
  return {.name = named.name, .type = read_addend(words, problem)};
}

std::string epilogue_operand_text(const GemmProblem& problem, std::size_t operand) {
  const EpilogueRules& rules = rules_of(problem.epilogue);
  const EpilogueOperandRule& rule = rules.operands[operand];
  const MatrixType& matrix = problem.epilogue_operands[operand];
  if (rule.block == epilogue::one_element)
    return addend_text(matrix, problem, role_of(rules.program, rule.name));
  const MatrixExtents own =
      operation::block_extents(rule.block, rule.layout, operation::product_extents(problem).out);
  if (rule.layout == ScaleLayout::strided) return matrix_text(matrix, own, Role::blocks);
  OperandWords words = packed_operand(Role::blocks, matrix.dtype);
  words.values_layout = rule.layout;
  return spell(words);
}

}  // namespace gemmery::grammar
