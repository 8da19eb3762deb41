// SPDX-License-Identifier: Apache-2.0
#include "platform/aligned_memory.hpp"

#include <sys/mman.h>
#include <algorithm>
#include <cstdlib>

namespace gemmery::platform {
namespace {

constexpr std::size_t large_page = std::size_t{2} << 20;

std::size_t round_up(std::size_t bytes, std::size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

}  // namespace

void* allocate_aligned(std::size_t bytes) {
  if (bytes < 2 * large_page)
    return std::aligned_alloc(64, std::max(round_up(bytes, 64), std::size_t{64}));
  const std::size_t size = round_up(bytes, large_page);
  void* const data = std::aligned_alloc(large_page, size);
#ifdef MADV_HUGEPAGE
  // Advice: where it is refused, pages are small.
  if (data != nullptr) static_cast<void>(madvise(data, size, MADV_HUGEPAGE));
#endif
  return data;
}

}  // namespace gemmery::platform
