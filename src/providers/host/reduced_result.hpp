// SPDX-License-Identifier: Apache-2.0
// A reduction over parts of out: tiles store partial results at fixed places, which are combined in
// a fixed order, so that equal inputs give equal bits on any number of threads.
#pragma once

#include <cstdint>
#include <vector>

#include <gemmery/arguments.hpp>
#include <gemmery/epilogue.hpp>

namespace gemmery::host {

// The grid of a kernel's tiles: they begin at multiples of these.
struct TileGrid {
  int rows;
  int columns;
};

// A part of a tile: `rows` lines of `columns` values, packed.
template <class T>
struct TileValues {
  std::int64_t batch, row, column;
  int rows, columns;
  const T* values;
};

template <class T>
class ReducedResult {
 public:
  // `tensor` is the view of rank 3 that GemmArguments keeps.
  ReducedResult(epilogue::Reduction kind, const Tensor& tensor, const GemmProblem& problem,
                const TileGrid& grid);

  // Takes the values of a part of a tile. Parts of one tile come one after the other, tiles in any
  // order and from any thread.
  void take(const TileValues<T>& part);

  // Stores the results; those of no elements are 0, -infinity (max) or infinity (min).
  void store() const;

 private:
  T& partial(std::int64_t batch, std::int64_t line, std::int64_t place);
  void take_by_rows(const TileValues<T>& part);
  void take_by_columns(const TileValues<T>& part);
  T reduce(std::vector<T>& values) const noexcept;

  epilogue::Reduction kind_;
  Tensor tensor_;
  std::int64_t batches_, rows_, columns_;  // of out
  TileGrid grid_;
  bool keeps_batches_, keeps_rows_, keeps_columns_;
  // partials_[(batch · lines_ + line) · places_ + place]. A line is a row of out, or a row of tiles
  // if columns are kept and rows are not; a place is a column of out, or of tiles.
  std::int64_t lines_, places_;
  std::vector<T> partials_;
};

extern template class ReducedResult<float>;
extern template class ReducedResult<double>;

}  // namespace gemmery::host
