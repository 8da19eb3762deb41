// SPDX-License-Identifier: Apache-2.0
// The sparse operand A of mma.sp: half of each row is stored, and metadata says which half.
#pragma once

#include <cstdint>

#include "emulator/arithmetic/tensor_core.hpp"
#include "emulator/machine/operation.hpp"

namespace gemmery::emulator {

// Of every four elements of a row two are stored; of tf32 one of every two; of 4-bit elements two
// of every four pairs. (PTX ISA, "Sparse matrix storage".)
class SparseRows {
 public:
  static constexpr std::uint32_t rows = 16;
  // `k`: elements of a row that is not compressed. `selector`: which lanes of each four hold the
  // metadata, below selectors().
  SparseRows(MatrixElement element, std::uint32_t k, std::uint32_t selector) noexcept;
  std::uint32_t selectors() const noexcept { return lanes_per_group / lanes_per_selector_; }
  // The lanes whose metadata is read.
  LaneMask lanes() const noexcept;
  // The elements of B that a row of A is multiplied by: of k they keep those whose places in the
  // row are stored. `from`: `columns` columns of k elements; `to`: of k / 2. Both packed.
  // `metadata`: of each lane. False, with `to` incomplete, if the row's metadata is of a kind whose
  // result is undefined; `is_ordered`: as is metadata in descending order (.sp::ordered_metadata).
  [[nodiscard]] bool select(const std::uint32_t* metadata, bool is_ordered, std::uint32_t row,
                            std::uint32_t columns, const void* from, void* to) const noexcept;

 private:
  static constexpr std::uint32_t lanes_per_group = 4;  // which share two rows, eight apart
  struct Place {
    std::uint32_t lane, shift;
  };
  Place place_of(std::uint32_t row, std::uint32_t chunk) const noexcept;

  std::uint32_t unit_bytes_;   // of what an index names
  std::uint32_t chunk_units_;  // half of them are stored
  std::uint32_t chunks_;       // of a row; 4 bits of metadata each
  bool is_row_whole_;          // a lane's metadata belongs to one row, not to two
  std::uint32_t lanes_per_selector_;
  std::uint32_t selector_;
};

}  // namespace gemmery::emulator
