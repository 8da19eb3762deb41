// SPDX-License-Identifier: Apache-2.0
// The places of a batch's matrices in memory that is allocated for them: a batch stride apart, or,
// for a batch by pointers, in another order with different gaps.
#pragma once

#include <gemmery/problem.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace gemmery::api {

// A batch of matrices.
struct Extents3 {
  std::int64_t batch = 1;
  std::int64_t rows = 0;
  std::int64_t columns = 0;

  bool is_empty() const noexcept { return batch == 0 || rows == 0 || columns == 0; }
  std::int64_t count() const noexcept { return batch * rows * columns; }
};

class MatrixStarts {
 public:
  MatrixStarts() = default;
  MatrixStarts(const MatrixType& type, const Extents3& extents);

  // Elements from the origin to the first one of a matrix. In a batch by pointers, each distance is
  // a multiple of the promised alignment.
  std::int64_t operator[](std::int64_t batch) const noexcept {
    return is_pointed_ ? pointed_[static_cast<std::size_t>(batch)] : batch * stride_;
  }
  bool is_pointed() const noexcept { return is_pointed_; }

  // Elements of all matrices below and above the origin.
  std::int64_t below() const noexcept { return below_; }
  std::int64_t above() const noexcept { return above_; }

  // The addresses of matrices whose origin lies at `origin`; none for a batch stride.
  std::vector<const void*> pointers(const void* origin) const;

 private:
  void place_apart(const MatrixType& type, std::int64_t count);

  bool is_pointed_ = false;
  std::int64_t stride_ = 0;
  std::int64_t below_ = 0;
  std::int64_t above_ = -1;
  DType dtype_ = DType::float32;
  std::vector<std::int64_t> pointed_;
};

}  // namespace gemmery::api
