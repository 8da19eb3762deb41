// SPDX-License-Identifier: Apache-2.0
// Finds problems that miss a much faster kernel only because of their operands' alignment: ranks
// the same problem with padded operands beside the original.
#include <gemmery/discovery.hpp>
#include <gemmery/dtype.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "kernel/plain_gemm.hpp"
#include "operation/companions.hpp"

namespace gemmery {
namespace {

constexpr double least_gain = 2;
constexpr std::uint8_t widest_alignment = 16;  // of any access, in bytes

// Rounds away from 0, so that matrices keep their direction and do not overlap.
std::int64_t round_away_from_zero(std::int64_t stride, std::int64_t unit) {
  const std::int64_t rest = stride % unit;
  if (rest == 0) return stride;
  return stride > 0 ? stride - rest + unit : stride - rest - unit;
}

// The matrix with one contiguous direction and all other strides multiples of 16 bytes.
MatrixType pad(MatrixType matrix, std::int64_t rows, std::int64_t columns) {
  const std::int64_t unit = std::max(widest_alignment * 8 / bit_width(matrix.dtype), 1);
  const Layout layout = layout_of(matrix, rows, columns);
  if (layout == Layout::strided) {
    matrix.column_stride = 1;
    matrix.row_stride = columns;
    if (matrix.batch_stride != 0 && !matrix.has_pointers())
      matrix.batch_stride = rows * round_away_from_zero(columns, unit);
  }
  std::int64_t& leading = layout == Layout::column ? matrix.column_stride : matrix.row_stride;
  const std::int64_t lines = layout == Layout::column ? columns : rows;
  const std::int64_t padded = round_away_from_zero(leading, unit);
  // Consecutive matrices move apart as their rows or columns grow.
  if (padded != leading && matrix.batch_stride != 0 && matrix.batch_stride == lines * leading)
    matrix.batch_stride = lines * padded;
  leading = padded;
  if (!matrix.has_pointers()) matrix.batch_stride = round_away_from_zero(matrix.batch_stride, unit);
  matrix.alignment = widest_alignment;
  return matrix;
}

// An operand of an epilogue: broadcast directions keep their stride of 0.
MatrixType pad_operand(MatrixType matrix, const GemmProblem& problem) {
  if (matrix.row_stride == 0 || matrix.column_stride == 0) {
    matrix.alignment = widest_alignment;
    return matrix;
  }
  return pad(matrix, problem.m, problem.n);
}

GemmProblem pad(GemmProblem problem) {
  const auto [m, n, k] = std::array{problem.m, problem.n, problem.k};
  problem.a = pad(problem.a, m, k);
  problem.b = pad(problem.b, k, n);
  problem.out = pad(problem.out, m, n);
  if (problem.c) problem.c = pad(*problem.c, m, n);
  for (MatrixType& operand : problem.epilogue_operands) operand = pad_operand(operand, problem);
  return problem;
}

// The reason why the family does not serve the problem as it is.
std::string find_failure(const GemmProblem& problem, const DeviceInfo& device,
                         const Kernel& missed) {
  for (const Reason& reason : explain(problem, device).reasons) {
    if (reason.provider == missed.family().provider() && reason.family == missed.family().name() &&
        !reason.failed.empty())
      return reason.failed;
  }
  return "its fastest kernels ask for alignment in bytes of 16";
}

}  // namespace

std::optional<PerformanceCliff> find_cliff(const GemmProblem& given, const DeviceInfo& device) {
  const kernel::AsFamiliesSee seen(given);
  const GemmProblem& problem = *seen;
  if (device.target.is_cpu() || problem.convolution || operation::has_companions(problem))
    return std::nullopt;
  const GemmProblem padded = pad(problem);
  if (padded == problem) return std::nullopt;
  const KernelList served = get_shared_kernels(problem, device);
  const KernelList missed = get_shared_kernels(padded, device);
  if (served->empty() || missed->empty()) return std::nullopt;
  const RankedKernel& first = served->front();
  const RankedKernel& faster = missed->front();
  if (first.predicted_us < least_gain * faster.predicted_us) return std::nullopt;
  return PerformanceCliff{.predicted_us = first.predicted_us,
                          .padded_us = faster.predicted_us,
                          .missed = faster,
                          .failed = find_failure(problem, device, faster)};
}

std::string to_string(const PerformanceCliff& cliff) {
  return fmt::format(
      "{:.1f} times slower than {}, which serves it with rows (or columns) and base addresses "
      "padded to 16 bytes ({})",
      cliff.predicted_us / cliff.padded_us, cliff.missed.name(), cliff.failed);
}

}  // namespace gemmery
