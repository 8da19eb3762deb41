// SPDX-License-Identifier: Apache-2.0
// Partial results and their pairwise sum.
#include "providers/host/reduced_result.hpp"

#include "core/arithmetic.hpp"
#include "epilogue/reduction.hpp"
#include "providers/host/line.hpp"

namespace gemmery::host {
template <class T>
ReducedResult<T>::ReducedResult(epilogue::Reduction kind, const Tensor& tensor,
                                const GemmProblem& problem, const TileGrid& grid)
    : kind_(kind),
      tensor_(tensor),
      batches_(problem.l),
      rows_(problem.m),
      columns_(problem.n),
      grid_(grid),
      keeps_batches_(tensor.extent(0) == problem.l),
      keeps_rows_(tensor.extent(1) == problem.m),
      keeps_columns_(tensor.extent(2) == problem.n),
      lines_(keeps_columns_ && !keeps_rows_ ? divide_up(rows_, grid.rows) : rows_),
      places_(keeps_columns_ ? columns_ : divide_up(columns_, grid.columns)),
      partials_(static_cast<std::size_t>(batches_ * lines_ * places_),
                epilogue::start_of<T>(kind)) {}

template <class T>
T& ReducedResult<T>::partial(std::int64_t batch, std::int64_t line, std::int64_t place) {
  return partials_[static_cast<std::size_t>((batch * lines_ + line) * places_ + place)];
}

template <class T>
void ReducedResult<T>::take(const TileValues<T>& part) {
  if (keeps_columns_) return take_by_columns(part);
  take_by_rows(part);
}

template <class T>
void ReducedResult<T>::take_by_rows(const TileValues<T>& part) {
  const T* value = part.values;
  for (int row = 0; row < part.rows; ++row) {
    T sum = epilogue::start_of<T>(kind_);
    for (int column = 0; column < part.columns; ++column)
      sum = epilogue::combine(kind_, sum, epilogue::reduced(kind_, *value++));
    partial(part.batch, part.row + row, part.column / grid_.columns) = sum;
  }
}

template <class T>
void ReducedResult<T>::take_by_columns(const TileValues<T>& part) {
  const T* value = part.values;
  for (int row = 0; row < part.rows; ++row) {
    const std::int64_t line = keeps_rows_ ? part.row + row : part.row / grid_.rows;
    for (int column = 0; column < part.columns; ++column) {
      T& sum = partial(part.batch, line, part.column + column);
      sum = epilogue::combine(kind_, sum, epilogue::reduced(kind_, *value++));
    }
  }
}

// Pairwise, neighbours first: the error of a sum grows with the logarithm of their number.
template <class T>
T ReducedResult<T>::reduce(std::vector<T>& values) const noexcept {
  if (values.empty()) return epilogue::start_of<T>(kind_);
  for (std::size_t count = values.size(); count > 1; count = (count + 1) / 2) {
    for (std::size_t i = 0; i < count / 2; ++i)
      values[i] = epilogue::combine(kind_, values[2 * i], values[2 * i + 1]);
    if (count % 2 != 0) values[count / 2] = values[count - 1];
  }
  return values.front();
}

template <class T>
void ReducedResult<T>::store() const {
  const auto from = [](bool is_kept, std::int64_t at) { return is_kept ? at : 0; };
  const auto to = [](bool is_kept, std::int64_t at, std::int64_t count) {
    return is_kept ? at + 1 : count;
  };
  std::vector<T> values;
  for (std::int64_t l = 0; l < tensor_.extent(0); ++l)
    for (std::int64_t m = 0; m < tensor_.extent(1); ++m)
      for (std::int64_t n = 0; n < tensor_.extent(2); ++n) {
        values.clear();
        for (auto batch = from(keeps_batches_, l); batch < to(keeps_batches_, l, batches_); ++batch)
          for (auto line = from(keeps_rows_, m); line < to(keeps_rows_, m, lines_); ++line)
            for (auto place = from(keeps_columns_, n); place < to(keeps_columns_, n, places_);
                 ++place)
              values.push_back(
                  partials_[static_cast<std::size_t>((batch * lines_ + line) * places_ + place)]);
        const T result = reduce(values);
        const std::int64_t at =
            l * tensor_.stride(0) + m * tensor_.stride(1) + n * tensor_.stride(2);
        store_line({tensor_.dtype(), tensor_.data(), at, 1, 1}, &result);
      }
}

template class ReducedResult<float>;
template class ReducedResult<double>;

}  // namespace gemmery::host
