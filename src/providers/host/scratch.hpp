// SPDX-License-Identifier: Apache-2.0
// Memory for packed operands that a thread keeps between calls: fresh pages would cost more than
// the packing.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <new>

namespace gemmery::host {

// Uninitialised memory of one thread, aligned to 64 bytes. What was asked for last stays until the
// thread ends, up to a limit.
class Scratch {
 public:
  Scratch() = default;
  ~Scratch() { std::free(data_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  // Valid until the next call; the contents are lost.
  template <class T>
  T* reserve(std::size_t count) {
    const std::size_t bytes = (count * sizeof(T) + 63) / 64 * 64;
    if (bytes > capacity_ || (capacity_ > most_kept && bytes <= most_kept)) replace(bytes);
    return static_cast<T*>(data_);
  }

 private:
  static constexpr std::size_t most_kept = std::size_t{256} << 20;

  void replace(std::size_t bytes) {
    std::free(data_);
    capacity_ = 0;
    data_ = std::aligned_alloc(64, bytes == 0 ? 64 : bytes);
    if (data_ == nullptr) throw std::bad_alloc();
    capacity_ = bytes;
  }

  void* data_ = nullptr;
  std::size_t capacity_ = 0;
};

}  // namespace gemmery::host
