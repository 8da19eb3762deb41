// SPDX-License-Identifier: Apache-2.0
// One operand in host memory with exactly the size, strides and alignment that its problem states,
// between guard bands.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <gemmery/problem.hpp>
#include <gemmery/tensor.hpp>

#include "api/matrix_starts.hpp"
#include "api/random_numbers.hpp"

namespace gemmery::api {

// The content of bytes that belong to no element: values that show when they are read, or values
// that show when they are overwritten.
enum class Surroundings : std::uint8_t { poison, canary };

// The image is [guard][elements and the gaps between them][guard]. The address of element 0 is a
// multiple of the stated alignment and of no larger power of two up to 32, here and wherever the
// image is copied to a multiple of 256.
class GuardedOperand {
 public:
  struct Place {
    MatrixType type;
    Extents3 extents;
    Surroundings surroundings = Surroundings::poison;
    bool guard_bands = true;  // otherwise the allocation ends where the operand does
  };
  // If Place::type has pointers, its matrices are separate, with guard bytes between them.
  explicit GuardedOperand(const Place& place);
  GuardedOperand(const GuardedOperand& other);  // the same image in other memory
  GuardedOperand(GuardedOperand&&) noexcept = default;

  const MatrixType& type() const noexcept { return type_; }
  const Extents3& extents() const noexcept { return extents_; }
  std::span<std::byte> bytes() noexcept { return {bytes_.get(), size_}; }
  std::span<const std::byte> bytes() const noexcept { return {bytes_.get(), size_}; }

  // The operand in this image, or in a copy of it at `base` on a device. `pointers`, for an operand
  // with pointers, is memory there that contains `pointers_at(base)`.
  Tensor here() const;
  Tensor at(const void* base, const void* pointers, Device device) const;

  bool has_pointers() const noexcept { return starts_.is_pointed(); }
  std::vector<const void*> pointers_at(const void* base) const;
  // The pointers of this image, which `here` uses.
  std::span<const void* const> pointers() const noexcept { return pointers_; }

  // Overwrites the elements; elements that share an address get the number of the last one.
  void fill(const Numbers& numbers);
  // Sets every byte of the elements to NaN, or for integers to a number that no fill draws.
  void poison_elements();
  void poison_element(std::int64_t batch, std::int64_t row, std::int64_t column);

  // The bytes of one element.
  std::span<const std::byte> element(std::int64_t batch, std::int64_t row,
                                     std::int64_t column) const noexcept;

  // Counts bytes outside the elements that differ from `before`, an earlier image of this operand.
  std::int64_t count_changes_outside(std::span<const std::byte> before) const;
  // Counts bytes that differ, elements included.
  std::int64_t count_changes(std::span<const std::byte> before) const;
  std::vector<std::byte> snapshot() const { return {bytes().begin(), bytes().end()}; }

 private:
  struct Free {
    void operator()(std::byte* bytes) const noexcept;
  };

  bool has_separate_rows() const noexcept;
  std::int64_t offset_of(std::int64_t batch, std::int64_t row) const noexcept;
  template <class Visit>
  void for_each_row(const Visit& visit) const;

  MatrixType type_;
  Extents3 extents_;
  MatrixStarts starts_;
  std::size_t size_ = 0;
  std::size_t origin_ = 0;  // position of element 0
  std::unique_ptr<std::byte[], Free> bytes_;
  std::vector<const void*> pointers_;
};

}  // namespace gemmery::api
