// SPDX-License-Identifier: Apache-2.0
// The layout of repacked operands in the workspace, and the launch of the kernel that copies them.
#include "providers/templates/repacking.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdlib>
#include <limits>

#include <fmt/format.h>

#include "core/arithmetic.hpp"
#include "runtime/run_workspace.hpp"

namespace gemmery::templates {
namespace {

// Lines of the copy begin at cache lines if that costs little: TMA reads others more slowly
// (split_sector_share and split_line_share of model/warp_specialized_gemm.hpp).
std::int64_t pitch_of(std::int64_t line_bytes) {
  constexpr std::int64_t long_line = 512;
  return round_up(line_bytes, line_bytes >= long_line ? 128 : abi::repack_unit_bytes);
}

// `k_layout`: the layout of an operand whose index k is adjacent.
ProductOperand product_of(const char* name, const OperandRule& rule, LayoutRule k_layout,
                          const MatrixType& matrix, std::int64_t rows, std::int64_t columns,
                          std::int64_t batches) noexcept {
  ProductOperand operand{.name = name,
                         .rule = rule,
                         .source = matrix,
                         .matrix = matrix,
                         .rows = rows,
                         .columns = columns,
                         .batches = batches,
                         .is_copy = is_repacked(rule)};
  if (!operand.is_copy) return operand;
  operand.rule = {.dtype = rule.dtype,
                  .layout = rule.layout == LayoutRule::any ? k_layout : rule.layout,
                  .alignment = widest_access};
  const bool is_row = operand.rule.layout == LayoutRule::row;
  const auto width = static_cast<std::int64_t>(byte_width(rule.dtype));
  const std::int64_t pitch = pitch_of((is_row ? columns : rows) * width) / width;
  operand.matrix.row_stride = is_row ? pitch : 1;
  operand.matrix.column_stride = is_row ? 1 : pitch;
  operand.matrix.batch_stride = matrix.batch_stride == 0 ? 0 : pitch * (is_row ? rows : columns);
  operand.matrix.alignment = widest_access;
  return operand;
}

// Units of a tile, as powers of two: the most, and those of a transposed tile.
constexpr unsigned most_unit_bits = 7;
constexpr unsigned transposed_unit_bits = 3;
static_assert(abi::repack_unit_bytes << transposed_unit_bits == abi::repack_row_bytes);

// True if lines of the source are closer together than the elements of a line.
bool are_lines_closer(const TmaView& view, std::int64_t element_stride, std::int64_t line_stride) {
  return view.adjacent > 1 && view.other > 1 && std::abs(line_stride) < std::abs(element_stride) &&
         element_stride != 1;
}

abi::RepackOperand share_out(abi::RepackOperand operand, std::int64_t element_bytes) {
  const auto units =
      static_cast<unsigned>(divide_up(operand.near * element_bytes, abi::repack_unit_bytes));
  operand.unit_bits = operand.is_transposed != 0
                          ? transposed_unit_bits
                          : std::min<unsigned>(std::bit_width(units - 1), most_unit_bits);
  operand.near_tiles = static_cast<unsigned>(divide_up(units, 1U << operand.unit_bits));
  operand.far_tiles = static_cast<unsigned>(
      divide_up(operand.far, abi::far_of_tile(operand, static_cast<int>(element_bytes))));
  return operand;
}

// `operand` has elements.
abi::RepackOperand repack_operand(const ProductOperand& operand) {
  const TmaView view = operand.view();
  const bool is_row = operand.rule.layout == LayoutRule::row;
  const MatrixType& source = operand.source;
  const std::int64_t line_stride = is_row ? source.row_stride : source.column_stride;
  const std::int64_t element_stride =
      view.adjacent == 1 ? 1 : (is_row ? source.column_stride : source.row_stride);
  const bool is_transposed = are_lines_closer(view, element_stride, line_stride);
  abi::RepackOperand copy{};
  copy.batch_stride = source.batch_stride;
  copy.near_stride = is_transposed ? line_stride : element_stride;
  copy.far_stride = is_transposed ? element_stride : line_stride;
  copy.pitch = view.stride_bytes;
  copy.near = static_cast<unsigned>(is_transposed ? view.other : view.adjacent);
  copy.far = static_cast<unsigned>(is_transposed ? view.adjacent : view.other);
  copy.is_transposed = is_transposed ? 1 : 0;
  return share_out(copy, static_cast<std::int64_t>(byte_width(operand.rule.dtype)));
}

// Bytes read for each byte used: elements are picked out of sectors of 32 bytes.
double read_share(const MatrixType& source) {
  const std::int64_t distance = std::max<std::int64_t>(
      std::min(std::abs(source.row_stride), std::abs(source.column_stride)), 1);
  return std::min(static_cast<double>(distance),
                  32.0 / static_cast<double>(byte_width(source.dtype)));
}

bool has_copy(const ProductOperand& operand) {
  return operand.is_copy && operand.rows > 0 && operand.columns > 0 && operand.batches > 0;
}

std::uint64_t count_tiles(const abi::RepackOperand& operand, const ProductOperand& product) {
  return std::uint64_t{operand.near_tiles} * operand.far_tiles *
         static_cast<std::uint64_t>(product.view().batches);
}

}  // namespace

OperandRule repacked_rule(DType dtype, LayoutRule layout) noexcept {
  return {
      .dtype = dtype, .layout = layout, .alignment = static_cast<std::uint8_t>(byte_width(dtype))};
}

ProductOperand product_a(const OperandRules& rules, const GemmProblem& problem) noexcept {
  return product_of("A", rules.a, LayoutRule::row, problem.a, problem.m, problem.k, problem.l);
}

ProductOperand product_b(const OperandRules& rules, const GemmProblem& problem) noexcept {
  return product_of("B", rules.b, LayoutRule::column, problem.b, problem.k, problem.n, problem.l);
}

std::size_t ProductOperand::copied_bytes() const {
  if (!has_copy(*this)) return 0;
  const TmaView seen = view();
  return static_cast<std::size_t>(seen.batches * seen.other * seen.stride_bytes);
}

std::string find_misfit(const ProductOperand& operand) {
  std::string misfit = find_misfit(operand.name, operand.view());
  if (!misfit.empty() || !has_copy(operand)) return misfit;
  // The tiles of both operands share one grid.
  constexpr std::uint64_t limit = std::numeric_limits<std::int32_t>::max() / 2;
  const std::uint64_t tiles = count_tiles(repack_operand(operand), operand);
  if (tiles <= limit) return {};
  return fmt::format("{}: expected at most {} tiles to copy, got {}", operand.name, limit, tiles);
}

GemmProblem problem_of_product(const OperandRules& rules, const GemmProblem& problem) {
  GemmProblem product = problem;
  product.a = product_a(rules, problem).matrix;
  product.b = product_b(rules, problem).matrix;
  return product;
}

double bytes_moved(const OperandRules& rules, const GemmProblem& problem) noexcept {
  double bytes = 0;
  for (const ProductOperand& operand : {product_a(rules, problem), product_b(rules, problem)})
    bytes += (1 + read_share(operand.source)) * static_cast<double>(operand.copied_bytes());
  return bytes;
}

abi::RepackDesign repack_design(const OperandRules& rules, bool has_pointers) noexcept {
  const auto has_any = [](const OperandRule& rule) {
    return is_repacked(rule) && rule.layout == LayoutRule::any;
  };
  const OperandRule& repacked = is_repacked(rules.a) ? rules.a : rules.b;  // as wide as the other
  return {.element_bytes = static_cast<int>(byte_width(repacked.dtype)),
          .has_any_strides = has_any(rules.a) || has_any(rules.b),
          .has_pointers = has_pointers};
}

// --- launches -----------------------------------------------------------------------------------

std::array<std::size_t, 2> reserve_copies(const std::array<ProductOperand, 2>& operands,
                                          runtime::LaunchPlan& plan) {
  std::array<std::size_t, 2> offsets{};
  for (std::size_t index = 0; index < operands.size(); ++index) {
    const std::size_t bytes = operands[index].copied_bytes();
    if (bytes == 0) continue;
    constexpr std::size_t unit = runtime::workspace_alignment;
    offsets[index] = (plan.workspace_bytes + unit - 1) / unit * unit;
    plan.workspace_bytes = offsets[index] + bytes;
  }
  return offsets;
}

void prepare_copies(const std::array<OperandData, 2>& operands,
                    const std::array<std::size_t, 2>& offsets, runtime::LaunchPlan& plan) {
  abi::RepackParams params{};
  std::array<unsigned, 2> tiles{};
  for (std::size_t index = 0; index < operands.size(); ++index) {
    const ProductOperand& operand = operands[index].operand;
    if (!has_copy(operand)) continue;
    params.operand[index] = repack_operand(operand);
    params.operand[index].source = operands[index].data;
    params.operand[index].target = static_cast<abi::Int64>(offsets[index]);
    tiles[index] = static_cast<unsigned>(count_tiles(params.operand[index], operand));
  }
  if (tiles[0] + tiles[1] == 0) return;
  params.first_tiles = tiles[0];
  plan.has_preparation = true;
  plan.preparation.set_parameters(params);
  plan.preparation.workspace_slot = offsetof(abi::RepackParams, workspace);
  plan.preparation.shape = {.grid = {tiles[0] + tiles[1], 1, 1},
                            .block = {abi::repack_threads, 1, 1},
                            .is_programmatic = true};
}

}  // namespace gemmery::templates
