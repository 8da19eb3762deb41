// SPDX-License-Identifier: Apache-2.0
#include "tests/runtime/allocation_count.hpp"

#include <cstdlib>
#include <new>

namespace {
thread_local long count = 0;
}

namespace gemmery::tests {
long allocation_count() noexcept { return count; }
}  // namespace gemmery::tests

void* operator new(std::size_t bytes) {
  ++count;
  if (void* const memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
