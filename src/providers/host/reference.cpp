// SPDX-License-Identifier: Apache-2.0
// Exact sums by the blocked product in float64, and the epilogue in double-double.
#include "providers/host/reference.hpp"

#include <algorithm>
#include <exception>

#include "operation/companions.hpp"
#include "operation/conv_windows.hpp"
#include "operation/operand_programs.hpp"
#include "platform/parallel.hpp"
#include "providers/host/blocked.hpp"
#include "providers/host/convolution.hpp"
#include "providers/host/panel_sources.hpp"
#include "providers/host/program_writer.hpp"
#include "providers/host/scratch.hpp"

namespace gemmery::host {
namespace {

// One element per element of out's matrix.
void resize(std::vector<double>& elements, const GemmProblem& problem) {
  const auto count = static_cast<std::size_t>(problem.m) * static_cast<std::size_t>(problem.n);
  try {
    elements.resize(count);
  } catch (const std::exception&) {  // bad_alloc, or length_error beyond a vector's limit
    throw_out_of_memory("out", "exact values of one of its matrices", count * sizeof(double));
  }
}

// Copies finished tiles into a packed matrix.
struct Collect {
  double* high;
  double* low;  // nullptr unless compensated
  std::int64_t columns;
  const operation::RowMap& rows;

  void operator()(const FinishedTile<double>& tile) const {
    for (int i = 0; i < tile.rows; ++i) {
      const double* sums = tile.sums + i * tile.row_stride;
      const std::int64_t first = rows[tile.row + i] * columns + tile.column;
      std::copy_n(sums, tile.columns, high + first);
      if (low != nullptr) std::copy_n(sums + tile.plane_stride, tile.columns, low + first);
    }
  }
};

void collect(const BlockedProduct<double>& product, const Collect& into) {
  multiply_blocked(product, finish_with<double>(into));
}

// Normalises high + low of a compensated sum; drops the correction if the sum overflowed or is NaN.
void normalize_pairs(ExactSums& sums) {
  for (std::size_t i = 0; i < sums.high.size(); ++i) {
    const DoubleDouble pair = std::isfinite(sums.high[i]) && std::isfinite(sums.low[i])
                                  ? add_exactly(sums.high[i], sums.low[i])
                                  : DoubleDouble{sums.high[i], 0};
    sums.high[i] = pair.high;
    sums.low[i] = pair.low;
  }
}

double wrapped_to_int32(double sum) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(static_cast<std::int64_t>(sum)));
}

void limit_to_int32(ExactSums& sums, Math math) {
  for (double& sum : sums.high)
    sum = math == Math::saturate ? saturate<std::int32_t>(sum) : wrapped_to_int32(sum);
}

// Adds the products of the deviations of each operand's elements and the magnitudes of the other's.
void add_deviations(BlockedProduct<double> product, PackedValue magnitudes, std::int64_t columns,
                    std::vector<double>& deviations) {
  const operation::RowMap whole;
  std::vector<double> sums(deviations.size());
  const auto add = [&](PackedValue a, PackedValue b) {
    product.packed_a = a;
    product.packed_b = b;
    collect(product, {sums.data(), nullptr, columns, whole});
    for (std::size_t at = 0; at < sums.size(); ++at) deviations[at] += sums[at];
  };
  if (product.a.companions.program != nullptr) add(PackedValue::deviation, magnitudes);
  if (product.b.companions.program != nullptr) add(magnitudes, PackedValue::deviation);
}

// The sums of one part of the product, and their magnitudes.
void collect_part(const ProductPart& part, bool is_compensated, PackedValue magnitudes,
                  std::int64_t columns, ExactSums& sums) {
  BlockedProduct<double> product{
      .a = part.panels.a,
      .b = part.panels.b,
      .kernel = is_compensated ? tile_kernels().compensated : tile_kernels().float64,
      .is_compensated = is_compensated};
  collect(product,
          {sums.high.data(), is_compensated ? sums.low.data() : nullptr, columns, part.rows});
  if (magnitudes == PackedValue::itself) return;
  product.kernel = tile_kernels().float64;
  product.is_compensated = false;
  product.packed_a = product.packed_b = magnitudes;
  collect(product, {sums.magnitude.data(), nullptr, columns, part.rows});
  if (!sums.deviation.empty()) add_deviations(product, magnitudes, columns, sums.deviation);
}

// The same, one element at a time, for convolutions in which products of zeros may be NaN.
void collect_defined(const ProductPart& part, PackedValue magnitudes, std::int64_t columns,
                     ExactSums& sums) {
  platform::parallel_for(part.panels.a.lanes, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row)
      for (std::int64_t column = 0; column < columns; ++column) {
        const DefinedSum sum = defined_sum(part.panels, row, column, magnitudes);
        const auto at = static_cast<std::size_t>(part.rows[row] * columns + column);
        sums.high[at] = sum.high;
        if (!sums.low.empty()) sums.low[at] = sum.low;
        if (!sums.magnitude.empty()) sums.magnitude[at] = sum.magnitude;
        sums.may_be_nan[at] = sum.may_be_nan ? 1 : 0;
      }
  });
}

}  // namespace

bool is_compensated(const GemmProblem& problem) noexcept {
  return problem.a.dtype == DType::float64 || problem.b.dtype == DType::float64 ||
         operation::has_companions(problem);
}

ExactSums exact_sums(const GemmArguments& arguments, std::int64_t batch, PackedValue magnitudes) {
  const GemmProblem& problem = arguments.problem();
  const bool is_pair = is_compensated(problem);
  const bool is_defined = may_multiply_padding(arguments, batch);
  ExactSums sums;
  resize(sums.high, problem);
  if (is_pair) resize(sums.low, problem);
  if (magnitudes != PackedValue::itself) resize(sums.magnitude, problem);
  if (magnitudes != PackedValue::itself && operation::has_operand_programs(problem))
    resize(sums.deviation, problem);
  if (is_defined) sums.may_be_nan.resize(sums.high.size());
  for (const ProductPart& part : product_parts(arguments, batch)) {
    if (is_defined)
      collect_defined(part, magnitudes, problem.n, sums);
    else
      collect_part(part, is_pair, magnitudes, problem.n, sums);
  }
  if (is_pair) normalize_pairs(sums);
  if (problem.accumulator == DType::int32) limit_to_int32(sums, problem.math);
  return sums;
}

EpilogueScalars epilogue_scalars(const GemmArguments& arguments) {
  if (epilogue_compute_type(arguments.problem().accumulator) == DType::float64)
    return {arguments.alpha(), arguments.beta()};
  return {static_cast<float>(arguments.alpha()), static_cast<float>(arguments.beta())};
}

namespace {

// Runs the program in double on the nearest double of each sum.
void run_reference_program(const GemmArguments& arguments) {
  constexpr TileGrid tile{8, most_tile_columns};
  const GemmProblem& problem = arguments.problem();
  ProgramRun<double> run(arguments, tile);
  for (std::int64_t batch = 0; batch < problem.l; ++batch) {
    const ExactSums sums = exact_sums(arguments, batch);
    platform::parallel_for(problem.m, tile.rows, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t column = 0; column < problem.n; column += tile.columns)
        run.write(batch, FinishedTile<double>{.row = begin,
                                              .column = column,
                                              .rows = static_cast<int>(end - begin),
                                              .columns = static_cast<int>(std::min<std::int64_t>(
                                                  tile.columns, problem.n - column)),
                                              .sums = sums.high.data() + begin * problem.n + column,
                                              .row_stride = static_cast<int>(problem.n),
                                              .plane_stride = 0});
    });
  }
  run.finish();
}

}  // namespace

void run_reference(const GemmArguments& arguments) {
  if (has_program(arguments)) return run_reference_program(arguments);
  const GemmProblem& problem = arguments.problem();
  const EpilogueScalars scalars = epilogue_scalars(arguments);
  for (std::int64_t batch = 0; batch < problem.l; ++batch) {
    const ExactSums sums = exact_sums(arguments, batch);
    const EpilogueWriter view(arguments, batch);
    const auto write_row = [&](std::int64_t row) {
      for (std::int64_t column = 0; column < problem.n; ++column) {
        DoubleDouble value = multiply(sums.at(row * problem.n + column), scalars.alpha);
        if (view.c.data != nullptr) {
          const double c = load(view.c.dtype, view.c.data,
                                row * view.c.row_stride + column * view.c.column_stride);
          value = add(value, multiply({c, 0}, scalars.beta));
        }
        store(view.out.dtype, view.out.data,
              row * view.out.row_stride + column * view.out.column_stride, value);
      }
    };
    platform::parallel_for(problem.m, 8, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) write_row(row);
    });
  }
}

}  // namespace gemmery::host
