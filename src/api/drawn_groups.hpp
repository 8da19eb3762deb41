// SPDX-License-Identifier: Apache-2.0
// Sizes of groups for trials and measurements: a problem line has the number of groups and the form
// of the sizes, not the sizes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <gemmery/grouped.hpp>
#include <gemmery/problem.hpp>

namespace gemmery::api {

// M, N and K of one problem of a list.
struct ListedExtents {
  std::int64_t m, n, k;
};

class DrawnGroups {
 public:
  // Random sizes: even, skewed, mostly empty, or one group that has nearly everything; sometimes a
  // rest belongs to no group. Labels are in any order, with gaps.
  static DrawnGroups varied(const GemmProblem& problem, std::uint64_t seed);
  // Groups of equal size that together have all elements, or the size that the problem expects.
  static DrawnGroups even(const GemmProblem& problem);

  // The sizes in the problem's form, as bytes in memory.
  std::span<const std::byte> bytes() const noexcept { return bytes_; }
  GroupIndices at(const void* data, Device device) const noexcept;
  GroupIndices here() const noexcept { return at(bytes_.data(), Device::cpu()); }
  // The indices of elements, likewise; empty if there are none. Indices of elements in no group are
  // arbitrary.
  std::span<const std::byte> gather_bytes() const noexcept { return gather_; }
  std::span<const std::byte> scatter_bytes() const noexcept { return scatter_; }
  // The problems of a list.
  const std::vector<ListedExtents>& list() const noexcept { return list_; }

 private:
  DrawnGroups(const GemmProblem& problem, const std::vector<std::int64_t>& sizes);

  // `padding`: true if some are -1.
  void draw_indices(const GemmProblem& problem, std::uint64_t seed, bool padding);

  std::vector<std::byte> bytes_, gather_, scatter_;
  std::vector<ListedExtents> list_;
  int bits_;
  std::int64_t count_;
};

}  // namespace gemmery::api
