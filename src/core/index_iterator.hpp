// SPDX-License-Identifier: Apache-2.0
// An iterator over elements that their owner makes on demand, by number.
#pragma once

#include <cstddef>
#include <utility>

namespace gemmery {

// `Owner` has operator[](std::size_t) and outlives the iterator.
template <class Owner>
class IndexIterator {
 public:
  using value_type = decltype(std::declval<const Owner&>()[std::size_t{0}]);
  using difference_type = std::ptrdiff_t;

  IndexIterator() = default;
  IndexIterator(const Owner& owner, std::size_t index) noexcept : owner_(&owner), index_(index) {}

  value_type operator*() const { return (*owner_)[index_]; }
  IndexIterator& operator++() noexcept {
    ++index_;
    return *this;
  }
  IndexIterator operator++(int) noexcept {
    IndexIterator before = *this;
    ++index_;
    return before;
  }
  friend bool operator==(const IndexIterator& a, const IndexIterator& b) noexcept {
    return a.index_ == b.index_;
  }

 private:
  const Owner* owner_ = nullptr;
  std::size_t index_ = 0;
};

}  // namespace gemmery
