// SPDX-License-Identifier: Apache-2.0
// Checks a large product by matrix-vector products: O(MN + MK + KN) instead of O(MNK).
//
// For a vector r of signs, (out·r)_i must equal (alpha · A·(B·r) + beta · C·r)_i within the sum
// over j of the elements' allowed errors. That sum needs (|A||B|)·1, which is |A|·(|B|·1): two more
// matrix-vector products.
#include <algorithm>
#include <cmath>
#include <vector>

#include "operation/companions.hpp"
#include "platform/parallel.hpp"
#include "providers/host/epilogue_writer.hpp"
#include "providers/host/oracle.hpp"
#include "providers/host/panel_sources.hpp"
#include "providers/host/reference.hpp"

namespace gemmery::host {
namespace {

using Vector = std::vector<double>;

struct RowsAndColumns {
  std::int64_t rows, columns;
};

// matrix · x, row by row in double. The error of a row is at most columns · 2^-53 of the same
// product in magnitudes.
Vector multiply_vector(const MatrixView& matrix, const RowsAndColumns& extents, const Vector& x,
                       PackedValue entries) {
  Vector y(static_cast<std::size_t>(extents.rows));
  const MagnitudeRange kept = magnitude_range(matrix.dtype, entries);
  platform::parallel_for(extents.rows, 16, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      double sum = 0;
      for (std::int64_t column = 0; column < extents.columns; ++column) {
        const double value = load(matrix.dtype, matrix.data,
                                  row * matrix.row_stride + column * matrix.column_stride);
        sum += (entries == PackedValue::itself ? value : kept.clamp(value)) *
               x[static_cast<std::size_t>(column)];
      }
      y[static_cast<std::size_t>(row)] = sum;
    }
  });
  return y;
}

// The same of an operand with scales; `is_of_lanes`: rows are its lanes.
Vector multiply_scaled(const PanelSource& source, bool is_of_lanes, const Vector& x,
                       PackedValue entries) {
  const std::int64_t rows = is_of_lanes ? source.lanes : source.depth;
  const std::int64_t columns = is_of_lanes ? source.depth : source.lanes;
  Vector y(static_cast<std::size_t>(rows));
  platform::parallel_for(rows, 16, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      double sum = 0;
      for (std::int64_t column = 0; column < columns; ++column)
        sum += packed_element(source, is_of_lanes ? row : column, is_of_lanes ? column : row,
                              entries) *
               x[static_cast<std::size_t>(column)];
      y[static_cast<std::size_t>(row)] = sum;
    }
  });
  return y;
}

Vector random_signs(std::mt19937_64& random, std::int64_t count) {
  Vector signs(static_cast<std::size_t>(count));
  std::ranges::generate(signs, [&] { return (random() & 1) != 0 ? 1.0 : -1.0; });
  return signs;
}

// One matrix of a batch and the error bounds of its rows.
class RowCheck {
 public:
  RowCheck(const GemmArguments& arguments, const DeclaredMath& declared, std::int64_t batch)
      : problem_(arguments.problem()),
        scalars_(epilogue_scalars(arguments)),
        a_(matrix_of(arguments.a(), batch)),
        b_(matrix_of(arguments.b(), batch)),
        panels_(panel_sources(arguments, batch)),
        view_(arguments, batch),
        batch_(batch),
        reads_products_(arguments.alpha() != 0),
        allowed_(allowed_errors(declared)) {}

  Comparison check(std::mt19937_64& random) const {
    const Vector signs = random_signs(random, problem_.n);
    const Vector got =
        multiply_vector(view_.out, {problem_.m, problem_.n}, signs, PackedValue::itself);
    const Vector expected = expected_rows(signs, PackedValue::itself);
    Comparison comparison;
    for (std::int64_t row = 0; row < problem_.m; ++row) {
      const auto i = static_cast<std::size_t>(row);
      count(comparison, {batch_, row, -1, got[i], expected[i], allowed_[i]});
    }
    comparison.elements = problem_.m * problem_.n;
    return comparison;
  }

 private:
  // alpha · A·(B·x) + beta · C·x, of entries or magnitudes.
  Vector expected_rows(const Vector& x, PackedValue entries) const {
    const auto scalar = [&](double value) {
      return entries == PackedValue::itself ? value : std::fabs(value);
    };
    Vector rows(static_cast<std::size_t>(problem_.m));
    if (reads_products_) rows = times_a(times_b(x, entries), entries);
    for (double& row : rows) row *= scalar(scalars_.alpha);
    if (view_.c.data == nullptr) return rows;
    const Vector addend = multiply_vector(
        view_.c, {problem_.m, problem_.n}, x,
        entries == PackedValue::itself ? PackedValue::itself : PackedValue::magnitude);
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i] += scalar(scalars_.beta) * addend[i];
    return rows;
  }

  Vector times_a(const Vector& x, PackedValue entries) const {
    if (panels_.a.companions.are_used()) return multiply_scaled(panels_.a, true, x, entries);
    return multiply_vector(a_, {problem_.m, problem_.k}, x, entries);
  }
  Vector times_b(const Vector& x, PackedValue entries) const {
    if (panels_.b.companions.are_used()) return multiply_scaled(panels_.b, false, x, entries);
    return multiply_vector(b_, {problem_.k, problem_.n}, x, entries);
  }

  // The sums of the elements' allowed errors by row, and the rounding of this check.
  Vector allowed_errors(const DeclaredMath& declared) const {
    const ErrorModel model = error_model(declared);
    const Rounding rounding = rounding_of(view_.out.dtype);
    const auto n = static_cast<double>(problem_.n);
    const auto k = static_cast<double>(problem_.k);
    const double output_unit = is_integer(view_.out.dtype) ? 0 : rounding.unit;
    const double kernel_factor = model.product_factor(problem_.k) + decoding_factor(problem_) +
                                 2 * model.accumulator_unit + 0x1p-51;
    const double own_factor = 4 * (n + k + 10) * 0x1p-53;
    const PackedValue magnitudes = magnitude_of(declared);
    Vector allowed =
        expected_rows(Vector(static_cast<std::size_t>(problem_.n), 1.0),
                      magnitudes == PackedValue::itself ? PackedValue::magnitude : magnitudes);
    for (double& row : allowed) {
      const double error = kernel_factor * row +
                           n * (k + 2) * std::max(1.0, std::fabs(scalars_.alpha)) * model.underflow;
      row = error + output_unit * (row + error) +
            n * (is_integer(view_.out.dtype) ? 0.5 : rounding.smallest / 2) + own_factor * row;
    }
    return allowed;
  }

  static void count(Comparison& comparison, const Mismatch& row) {
    const double error = std::fabs(row.got - row.exact);
    const bool both_nonfinite = !std::isfinite(row.exact) && !std::isfinite(row.got);
    const bool is_open = !std::isfinite(row.allowed);
    const bool is_right = both_nonfinite || is_open || error <= row.allowed;
    if (std::isfinite(error)) comparison.worst_error = std::max(comparison.worst_error, error);
    if (row.allowed > 0 && std::isfinite(error))
      comparison.worst_ratio = std::max(comparison.worst_ratio, error / row.allowed);
    if (is_right) return;
    ++comparison.mismatches;
    if (!std::isfinite(error)) comparison.worst_ratio = std::numeric_limits<double>::infinity();
    if (!comparison.first) comparison.first = row;
  }

  const GemmProblem& problem_;
  EpilogueScalars scalars_;
  MatrixView a_, b_;
  PanelPair panels_;
  EpilogueWriter view_;
  std::int64_t batch_;
  bool reads_products_;
  Vector allowed_;
};

// One row of the problem as a problem of its own.
Tensor row_tensor(const Tensor& view, std::int64_t batch, std::int64_t row) {
  const std::int64_t offset = storage_bytes(view.dtype(), row * view.stride(1));
  return Tensor(static_cast<const std::byte*>(first_of(view, batch)) + offset, view.dtype(),
                {1, view.extent(2)}, {0, view.stride(2)});
}

Tensor matrix_tensor(const Tensor& view, std::int64_t batch) {
  return Tensor(first_of(view, batch), view.dtype(), {view.extent(1), view.extent(2)},
                {view.stride(1), view.stride(2)});
}

Comparison check_product_row(const GemmArguments& arguments, const DeclaredMath& declared,
                             std::int64_t batch, std::int64_t row) {
  GemmOptions options{.c = std::nullopt,
                      .alpha = arguments.alpha(),
                      .beta = arguments.beta(),
                      .math = arguments.problem().math};
  if (arguments.c()) options.c = row_tensor(*arguments.c(), batch, row);
  const GemmArguments one(
      row_tensor(arguments.a(), batch, row), matrix_tensor(arguments.b(), batch),
      row_tensor(arguments.out(), batch, row), arguments.problem().accumulator, options);
  Comparison comparison = compare_with_oracle(one, declared);
  comparison.elements = 0;  // the vectors have counted them
  if (comparison.first) {
    comparison.first->batch = batch;
    comparison.first->row = row;
  }
  return comparison;
}

}  // namespace

Comparison check_by_freivalds(const GemmArguments& arguments, const DeclaredMath& declared,
                              const FreivaldsOptions& options) {
  std::mt19937_64 random(options.seed);
  const GemmProblem& problem = arguments.problem();
  Comparison all;
  for (std::int64_t batch = 0; batch < problem.l; ++batch) {
    const RowCheck rows(arguments, declared, batch);
    for (int vector = 0; vector < options.vectors; ++vector) {
      Comparison some = rows.check(random);
      if (vector > 0) some.elements = 0;
      all.merge(some);
    }
    // Rows of scales are not problems of their own; the vectors have checked every row.
    if (problem.m == 0 || operation::has_companions(problem)) continue;
    for (int sample = 0; sample < options.rows; ++sample)
      all.merge(check_product_row(
          arguments, declared, batch,
          whole_row(arguments.a(),
                    static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(problem.m)))));
  }
  return all;
}

}  // namespace gemmery::host
