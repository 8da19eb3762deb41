// SPDX-License-Identifier: Apache-2.0
#include "operation/companions.hpp"

#include <gemmery/error.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "core/arithmetic.hpp"
#include "device/abi/prepared_layout.hpp"
#include "device/abi/scale_layout.hpp"
#include "operation/epilogue_operands.hpp"
#include "operation/groups.hpp"
#include "operation/operand_programs.hpp"
#include "operation/overlap.hpp"
#include "operation/refusal.hpp"
#include "operation/shapes.hpp"

namespace gemmery::operation {
namespace {

std::int64_t count_blocks(std::int64_t extent, std::int32_t block) noexcept {
  if (block == 0) return 1;
  return (extent + block - 1) / block;
}

std::int64_t padded_count(std::int64_t rows, std::int64_t blocks) noexcept {
  return round_up(rows, abi::swizzled_rows) * round_up(blocks, abi::swizzled_blocks);
}

// --- rules --------------------------------------------------------------------------------------

bool is_scale_type(DType dtype) noexcept {
  return dtype == DType::float32 || dtype == DType::float16 || dtype == DType::bfloat16 ||
         dtype == DType::float8_e8m0fnu || dtype == DType::float8_e4m3fn;
}

bool is_zero_point_type(DType dtype) noexcept {
  return dtype == DType::int4 || dtype == DType::uint4 || dtype == DType::int8 ||
         dtype == DType::uint8 || dtype == DType::int32 || dtype == DType::float32 ||
         dtype == DType::float16 || dtype == DType::bfloat16;
}

void check_block(std::string_view name, ScaleBlock block) {
  if (block.rows >= 0 && block.k >= 0) return;
  refuse(name, "a block of at least 1x1, or 0 for a whole extent",
         fmt::format("{}x{}", block.rows, block.k));
}

void check_scale(std::string_view name, const CompanionType& scale) {
  if (!is_scale_type(scale.values.dtype))
    refuse(name, "float32, float16, bfloat16, float8_e8m0fnu or float8_e4m3fn",
           std::string(gemmery::name(scale.values.dtype)), "convert the scales",
           ErrorKind::unsupported);
  check_block(name, scale.block);
  if (scale.layout == ScaleLayout::swizzled_128x4 && scale.block.rows != 1)
    refuse(name, "blocks of one row in the layout swizzled_128x4", to_string(scale.block));
}

void check_zero_point(std::string_view name, const CompanionType& zero) {
  if (!is_zero_point_type(zero.values.dtype))
    refuse(name, "int4, uint4, int8, uint8, int32, float32, float16 or bfloat16",
           std::string(gemmery::name(zero.values.dtype)), "", ErrorKind::unsupported);
  check_block(name, zero.block);
  if (zero.layout != ScaleLayout::strided)
    refuse(name, "a strided tensor", "swizzled_128x4", "only scales are swizzled",
           ErrorKind::unsupported);
}

void check_table(const OperandCompanions& companions, bool is_a, DType dtype) {
  const std::string_view name = table_name(is_a);
  if (dtype != DType::uint4)
    refuse(name, "uint4 elements of " + std::string(is_a ? "A" : "B"),
           std::string(gemmery::name(dtype)), "codes of 4 bits are uint4");
  if (companions.zero_point)
    refuse(zero_point_name(is_a), "none beside a code table", "a zero point",
           "subtract it from the table's numbers", ErrorKind::unsupported);
  for (const float value : companions.table->values)
    if (!std::isfinite(value)) refuse(name, "sixteen finite numbers", fmt::format("{}", value));
}

bool varies(const CompanionType& scale) noexcept { return !is_of_sums(scale); }

// True if groups divide the operand's rows or k: each has a part of one matrix.
bool is_divided(const std::optional<Groups>& groups, bool is_a) noexcept {
  return groups &&
         (groups->ragged == Ragged::k || groups->ragged == (is_a ? Ragged::m : Ragged::n));
}

// Prepared elements are permuted within packed memory, in whole fragments, whose first one begins
// at 16 bytes.
void check_order(const GemmProblem& problem, bool is_a) {
  const std::string_view name = is_a ? "A" : "B";
  const MatrixType& matrix = is_a ? problem.a : problem.b;
  const int bits = bit_width(matrix.dtype);
  if (bits > 8 || bits == 6)
    refuse(name, "codes of 4 or 8 bits in the order of fragments",
           std::string(gemmery::name(matrix.dtype)), "", ErrorKind::unsupported);
  const std::int64_t rows = is_a ? problem.m : problem.n;
  const std::int64_t whole = abi::prepared_lines(bits);
  if (is_divided(problem.groups, is_a))
    refuse(name,
           fmt::format("elements in the order of their strides where groups divide {}",
                       problem.groups->ragged == Ragged::k ? "K"
                       : is_a                              ? "its rows"
                                                           : "its columns"),
           "prepared ones", "pass the operand as it was", ErrorKind::unsupported);
  if (rows % whole != 0 || problem.k % abi::prepared_k != 0)
    refuse(name,
           fmt::format("a multiple of {} {} and of {} along k in the order of fragments", whole,
                       is_a ? "rows" : "columns", abi::prepared_k),
           fmt::format("{} and {}", rows, problem.k), "pass the operand as it was",
           ErrorKind::unsupported);
  const std::int64_t along = is_a ? matrix.column_stride : matrix.row_stride;
  const std::int64_t across = is_a ? matrix.row_stride : matrix.column_stride;
  if ((problem.k > 1 && along != 1) || (rows > 1 && across != problem.k) || matrix.has_pointers() ||
      matrix.alignment < 16)
    refuse(name, "packed memory with adjacent k, aligned to 16 bytes, for prepared elements",
           "other strides or another alignment", "prepare_operand allocates it");
}

void check_operand(const OperandCompanions& companions, bool is_a, DType dtype) {
  if (companions.empty()) return;
  if (companions.table) check_table(companions, is_a, dtype);
  const bool is_decoded = !companions.scales.empty() || companions.zero_point || companions.table;
  if (dtype == DType::float64 && is_decoded)
    refuse(is_a ? "A" : "B", "elements of at most 32 bits beside scales", "float64",
           "scale it beforehand", ErrorKind::unsupported);
  if (companions.scales.size() > most_scales)
    refuse(scale_name(is_a, most_scales), fmt::format("at most {} scales", most_scales),
           std::to_string(companions.scales.size()), "multiply some of them beforehand",
           ErrorKind::unsupported);
  for (std::size_t i = 0; i < companions.scales.size(); ++i)
    check_scale(scale_name(is_a, i), companions.scales[i]);
  if (companions.zero_point) check_zero_point(zero_point_name(is_a), *companions.zero_point);
  // Scales beside a program all stay with the elements.
  if (!companions.program && companions.scales.size() == most_scales &&
      !varies(companions.scales[0]) && varies(companions.scales[1]))
    refuse(
        scale_name(is_a, 0), "the scale that varies along k as the first one",
        to_string(companions.scales[0].block) + " before " + to_string(companions.scales[1].block),
        "exchange them: they multiply in any order");
}

bool is_of_fp8_or_native(Math math) noexcept {
  return math == Math::native || math == Math::fp8_fast || math == Math::fp8_promoted;
}

// Companions that an epilogue cannot express.
bool needs_main_loop(const OperandCompanions& companions) noexcept {
  return companions.zero_point || companions.table || companions.program ||
         companions.order != ElementOrder::strided ||
         std::ranges::any_of(companions.scales, [](const auto& scale) {
           return scale.block.k != 0 || scale.layout != ScaleLayout::strided ||
                  scale.block.rows > 1 || scale.values.dtype == DType::float8_e8m0fnu;
         });
}

std::string_view first_name(const GemmProblem& problem) noexcept {
  const bool is_a = !problem.a_companions.empty();
  const OperandCompanions& companions = is_a ? problem.a_companions : problem.b_companions;
  if (companions.scales.empty() && companions.order != ElementOrder::strided)
    return order_name(is_a);
  if (companions.scales.empty() && companions.zero_point) return zero_point_name(is_a);
  if (companions.scales.empty() && companions.table) return table_name(is_a);
  if (companions.scales.empty()) return is_a ? "program_a" : "program_b";
  return is_a ? "scale_a" : "scale_b";
}

bool has_rows(const OperandCompanions& companions) noexcept {
  return std::ranges::any_of(companions.scales,
                             [](const auto& scale) { return scale.block.rows != 0; });
}

// Scales of rows of A multiply rows of out, which are others if they are found by indices.
void check_indices_of_groups(const GemmProblem& problem) {
  if (!problem.groups || !problem.groups->have_indices()) return;
  for (const bool is_a : {true, false})
    if (are_rows_ragged(problem.groups, is_a) &&
        has_rows(is_a ? problem.a_companions : problem.b_companions))
      refuse(scale_name(is_a, 0), "scales of the whole tensor where groups have indices",
             "a scale for each row",
             "scale the sums by an epilogue, whose operands have out's rows",
             ErrorKind::unsupported);
}

void check_form(const GemmProblem& problem) {
  check_operand_programs(problem);
  const std::string name(first_name(problem));
  if (problem.convolution)
    refuse(name, "none for a convolution", "scales or a zero point",
           "scale the operand beforehand, or the sums by an epilogue", ErrorKind::unsupported);
  const bool is_deep =
      needs_main_loop(problem.a_companions) || needs_main_loop(problem.b_companions);
  if (is_deep && problem.groups && problem.groups->sizes == GroupSizes::list)
    refuse(name, "scales of rows or of the whole tensor, for a list of problems",
           "scales of other blocks, a zero point or a code table", "", ErrorKind::unsupported);
  check_indices_of_groups(problem);
  if (is_deep && !is_of_fp8_or_native(problem.math))
    refuse("math", "native, fp8_fast or fp8_promoted with scales that vary along k",
           std::string(gemmery::name(problem.math)), "", ErrorKind::unsupported);
  if (is_deep && problem.accumulator == DType::float16)
    refuse("accumulator_type", "float32 or float64 with scales that vary along k", "float16");
}

// --- views --------------------------------------------------------------------------------------

// A companion of an operand that is being bound.
struct Given {
  std::string name;
  const Companion& companion;
  bool is_a;
  OperandExtents extents;
  Device device;
};

std::string expected_shape(const Given& given, const MatrixExtents& blocks) {
  const auto [rows, columns] =
      given.is_a ? std::pair(blocks.rows, blocks.columns) : std::pair(blocks.columns, blocks.rows);
  const std::string shape = fmt::format("({}, {})", rows, columns);
  const std::string batched =
      blocks.batch > 1 ? fmt::format(" or ({}, {}, {})", blocks.batch, rows, columns) : "";
  return "shape " + shape + batched + ", a value for each block of " +
         (given.companion.block == ScaleBlock{} ? "the whole tensor"
                                                : to_string(given.companion.block)) +
         (given.is_a ? " (rows x k)" : " (columns x k)");
}

[[noreturn]] void refuse_shape(const Given& given, const MatrixExtents& blocks) {
  refuse(given.name, expected_shape(given, blocks), shape_text(given.companion.values),
         "blocks are stated, never inferred from shapes");
}

std::int64_t batch_stride_of(const Given& given, const MatrixExtents& blocks, bool has_batch) {
  const Tensor& tensor = given.companion.values;
  if (!has_batch || (tensor.extent(0) == 1 && blocks.batch != 1)) return 0;
  if (tensor.extent(0) != blocks.batch) refuse_shape(given, blocks);
  return tensor.stride(0);
}

Tensor with_shape(const Tensor& tensor, const MatrixExtents& extents,
                  const std::array<std::int64_t, 3>& strides) {
  return with_strides(tensor, {extents.batch, extents.rows, extents.columns}, strides);
}

// A tensor of rank 0 or 1: along the one extent that has several blocks.
Tensor view_line(const Given& given, const MatrixExtents& blocks) {
  const Tensor& tensor = given.companion.values;
  const bool is_line = blocks.rows == 1 || blocks.columns == 1;
  if (!is_line || tensor.element_count() != blocks.rows * blocks.columns)
    refuse_shape(given, blocks);
  const std::int64_t stride = tensor.rank() == 0 ? 0 : tensor.stride(0);
  return with_shape(tensor, blocks,
                    {0, blocks.columns == 1 ? stride : 0, blocks.columns == 1 ? 0 : stride});
}

Tensor view_strided(const Given& given, const MatrixExtents& blocks) {
  const Tensor& tensor = given.companion.values;
  if (tensor.rank() < 2) return view_line(given, blocks);
  if (tensor.rank() > 3) refuse_shape(given, blocks);
  const bool has_batch = tensor.rank() == 3;
  const int first = has_batch ? 1 : 0;
  const int row = given.is_a ? first : first + 1;
  const int column = given.is_a ? first + 1 : first;
  if (tensor.extent(row) != blocks.rows || tensor.extent(column) != blocks.columns)
    refuse_shape(given, blocks);
  return with_shape(
      tensor, blocks,
      {batch_stride_of(given, blocks, has_batch), tensor.stride(row), tensor.stride(column)});
}

Tensor view_swizzled(const Given& given, const MatrixExtents& values) {
  const Tensor& tensor = given.companion.values;
  const std::int64_t count = tensor.element_count();
  const bool is_shared = count == values.columns;
  if ((!is_shared && count != values.batch * values.columns) || !has_packed_elements(tensor))
    refuse(given.name,
           fmt::format("{} packed values{}: rows rounded up to 128, times blocks of k rounded up "
                       "to 4",
                       values.columns, values.batch > 1 ? " for each matrix" : ""),
           to_string(tensor), "the layout is stated, never inferred from sizes");
  return with_shape(tensor, values, {is_shared ? 0 : values.columns, 0, 1});
}

struct CompanionView {
  CompanionType type;
  Tensor view;
};

CompanionView view_companion(const Given& given) {
  const auto& [values, block, layout] = given.companion;
  check_block(given.name, block);
  if (values.has_pointers())
    refuse(given.name, "matrices one batch stride apart", "a batch by pointers", "",
           ErrorKind::unsupported);
  const MatrixExtents extents = companion_extents(block, layout, given.extents);
  const Tensor view =
      layout == ScaleLayout::strided ? view_strided(given, extents) : view_swizzled(given, extents);
  check_device(given.name, view, given.device);
  check_memory(given.name, view);
  return {{.block = settle_block(block, layout, given.extents),
           .layout = layout,
           .values = spelled_matrix_type(view)},
          view};
}

}  // namespace

bool are_rows_ragged(const std::optional<Groups>& groups, bool is_a) noexcept {
  return groups && groups->share_tensors() && groups->ragged == (is_a ? Ragged::m : Ragged::n);
}

bool is_k_ragged(const std::optional<Groups>& groups) noexcept {
  return groups && groups->share_tensors() && groups->ragged == Ragged::k;
}

OperandExtents operand_extents(const GemmProblem& problem, bool is_a) noexcept {
  const ProductExtents extents = product_extents(problem);
  return {.batch = problem.l,
          .rows = is_a ? extents.a.rows : extents.b.columns,
          .k = is_a ? extents.a.columns : extents.b.rows,
          .are_rows_ragged = are_rows_ragged(problem.groups, is_a),
          .is_k_ragged = is_k_ragged(problem.groups)};
}

ScaleBlock settle_block(ScaleBlock block, ScaleLayout layout,
                        const OperandExtents& extents) noexcept {
  if (block.k >= extents.k && extents.k > 0) block.k = 0;
  if (block.rows >= extents.rows && extents.rows > 0 && layout == ScaleLayout::strided)
    block.rows = 0;
  return block;
}

MatrixExtents companion_extents(ScaleBlock block, ScaleLayout layout,
                                const OperandExtents& extents) noexcept {
  const bool is_shared =
      (extents.are_rows_ragged && block.rows != 0) || (extents.is_k_ragged && block.k != 0);
  const std::int64_t batch = is_shared ? 1 : extents.batch;
  const std::int64_t rows = count_blocks(extents.rows, block.rows);
  const std::int64_t blocks = count_blocks(extents.k, block.k);
  if (layout == ScaleLayout::swizzled_128x4) return {batch, 1, padded_count(rows, blocks)};
  return {batch, rows, blocks};
}

bool is_of_sums(const CompanionType& scale) noexcept {
  return scale.block.k == 0 && scale.block.rows <= 1 && scale.layout == ScaleLayout::strided &&
         scale.values.dtype != DType::float8_e8m0fnu;
}

std::string scale_name(bool is_a, std::size_t index) {
  return std::string(is_a ? "scale_a" : "scale_b") + (index == 0 ? "" : fmt::format(".{}", index));
}

std::string scale_word(bool is_a, std::size_t index) {
  std::string word = scale_name(is_a, index);
  std::ranges::replace(word, '.', '_');
  return word;
}

std::string_view zero_point_name(bool is_a) noexcept { return is_a ? "zero_a" : "zero_b"; }
std::string_view table_name(bool is_a) noexcept { return is_a ? "table_a" : "table_b"; }
std::string_view order_name(bool is_a) noexcept { return is_a ? "order_a" : "order_b"; }

bool has_companions(const GemmProblem& problem) noexcept {
  return !problem.a_companions.empty() || !problem.b_companions.empty();
}

bool has_packed_elements(const Tensor& tensor) noexcept {
  std::int64_t next = 1;
  for (int d = tensor.rank(); d-- > 0;) {
    if (tensor.extent(d) != 1 && tensor.stride(d) != next) return false;
    next *= tensor.extent(d);
  }
  return true;
}

bool is_product_decoded(const GemmProblem& problem) noexcept {
  return needs_main_loop(problem.a_companions) || needs_main_loop(problem.b_companions) ||
         (has_companions(problem) && is_integer(problem.a.dtype) != is_integer(problem.b.dtype));
}

void check_companions(const GemmProblem& problem) {
  if (!has_companions(problem)) return;
  check_operand(problem.a_companions, true, problem.a.dtype);
  check_operand(problem.b_companions, false, problem.b.dtype);
  check_form(problem);
  if (problem.a_companions.order != ElementOrder::strided) check_order(problem, true);
  if (problem.b_companions.order != ElementOrder::strided) check_order(problem, false);
}

CompanionViews view_companions(const ScaledOperand& operand, bool is_a,
                               const OperandExtents& extents, Device device) {
  CompanionViews views;
  if (operand.scales.size() > most_scales)
    check_operand({.scales = std::vector<CompanionType>(operand.scales.size())}, is_a,
                  operand.quantized.dtype());
  for (std::size_t i = 0; i < operand.scales.size(); ++i) {
    const CompanionView one =
        view_companion({scale_name(is_a, i), operand.scales[i], is_a, extents, device});
    views.types.scales.push_back(one.type);
    views.memory.scales.push_back(one.view);
  }
  if (operand.zero_point) {
    const CompanionView one = view_companion(
        {std::string(zero_point_name(is_a)), *operand.zero_point, is_a, extents, device});
    views.types.zero_point = one.type;
    views.memory.zero_point = one.view;
  }
  views.types.table = operand.table;
  views.types.order = operand.order;
  if (operand.program) {
    ProgramView program = view_program(*operand.program, is_a, extents, device);
    views.types.program = std::move(program.type);
    views.memory.program_operands = std::move(program.memory);
  }
  return views;
}

void append_companions(bool is_a, BoundCompanions& memory, const OperandCompanions& types,
                       std::vector<NamedCompanion>& list) {
  for (std::size_t i = 0; i < memory.scales.size(); ++i)
    list.push_back({scale_name(is_a, i), &memory.scales[i], &types.scales[i].values});
  if (memory.zero_point)
    list.push_back(
        {std::string(zero_point_name(is_a)), &*memory.zero_point, &types.zero_point->values});
  for (std::size_t i = 0; i < memory.program_operands.size(); ++i)
    if (auto* const tensor = std::get_if<Tensor>(&memory.program_operands[i].value))
      list.push_back({program_operand_name(is_a, memory.program_operands[i].name), tensor,
                      &types.program->operands[i]});
}

namespace {

void check_apart(std::string_view name, const Tensor& values, std::string_view result,
                 const Tensor& written) {
  if (!may_overlap(written, values)) return;
  refuse(result, "memory that shares nothing with " + std::string(name), "overlapping memory",
         "write to another tensor");
}

void check_apart(std::string_view name, const Tensor& values, const GemmArguments& arguments) {
  check_apart(name, values, "out", arguments.out());
  const auto& operands = arguments.epilogue_operands();
  if (operands.empty()) return;
  const EpilogueRules& rules = rules_of(arguments.problem().epilogue);
  for (std::size_t i = 0; i < operands.size() && i < rules.operands.size(); ++i)
    if (rules.operands[i].is_output)
      check_apart(name, values, operands[i].name, std::get<Tensor>(operands[i].value));
}

}  // namespace

void check_companion_overlaps(bool is_a, const BoundCompanions& memory,
                              const GemmArguments& arguments) {
  for (std::size_t i = 0; i < memory.scales.size(); ++i)
    check_apart(scale_name(is_a, i), memory.scales[i], arguments);
  if (memory.zero_point) check_apart(zero_point_name(is_a), *memory.zero_point, arguments);
  for (const EpilogueOperand& operand : memory.program_operands)
    if (const auto* const tensor = std::get_if<Tensor>(&operand.value))
      check_apart(program_operand_name(is_a, operand.name), *tensor, arguments);
}

}  // namespace gemmery::operation
