// SPDX-License-Identifier: Apache-2.0
// Counters that forked processes share.
#pragma once

#include <sys/mman.h>

#include <cstdlib>
#include <new>

namespace gemmery::tests {

// A Tally of atomics in memory that children share with their parent.
template <class Tally>
class SharedTally {
 public:
  SharedTally()
      : memory_(mmap(nullptr, sizeof(Tally), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
                     0)) {
    if (memory_ == MAP_FAILED) std::abort();
    tally_ = new (memory_) Tally;
  }
  ~SharedTally() { munmap(memory_, sizeof(Tally)); }
  SharedTally(const SharedTally&) = delete;
  SharedTally& operator=(const SharedTally&) = delete;
  Tally* operator->() const { return tally_; }

 private:
  void* memory_;
  Tally* tally_ = nullptr;
};

}  // namespace gemmery::tests
