// SPDX-License-Identifier: Apache-2.0
// Memory for packed operands that a thread keeps between calls: fresh pages would cost more than
// the packing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include <gemmery/error.hpp>

#include "platform/aligned_memory.hpp"

namespace gemmery::host {

[[noreturn]] inline void throw_out_of_memory(std::string_view operand, std::string_view content,
                                             std::size_t bytes) {
  throw Error(
      {.kind = ErrorKind::out_of_memory,
       .operand = std::string(operand),
       .expected = std::to_string(bytes) + " bytes of host memory for " + std::string(content),
       .got = "no memory"});
}

// Uninitialised memory of one thread, aligned to 64 bytes. The last allocation stays until the
// thread ends, up to a limit.
class Scratch {
 public:
  Scratch() = default;
  ~Scratch() { std::free(data_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  // Valid until the next call; the contents are lost. Throws Error (out_of_memory), which names the
  // operand and the purpose of the memory.
  template <class T>
  T* reserve(std::int64_t count, std::string_view operand, std::string_view content) {
    const std::size_t bytes = (static_cast<std::size_t>(count) * sizeof(T) + 63) / 64 * 64;
    if (bytes > capacity_ || (capacity_ > most_kept && bytes <= most_kept))
      replace(bytes, operand, content);
    return static_cast<T*>(data_);
  }

 private:
  static constexpr std::size_t most_kept = std::size_t{256} << 20;

  void replace(std::size_t bytes, std::string_view operand, std::string_view content) {
    std::free(data_);
    capacity_ = 0;
    data_ = platform::allocate_aligned(bytes);
    if (data_ == nullptr) throw_out_of_memory(operand, content, bytes);
    capacity_ = bytes;
  }

  void* data_ = nullptr;
  std::size_t capacity_ = 0;
};

}  // namespace gemmery::host
