// SPDX-License-Identifier: Apache-2.0
// Reordered weights of recent calls, which later calls with the same contents use again.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>

namespace gemmery::host {

// What identifies bytes: 128 bits of XXH3, seeded anew in each process. Read on all cores.
using Digest = std::array<std::uint64_t, 2>;
Digest digest_of(const void* data, std::size_t bytes);

// Usable from many threads at a time.
class KeptWeights {
 public:
  struct Limits {
    std::size_t bytes = std::size_t{256} << 20;  // of all weights
    std::size_t each = 8;                        // of one format
  };
  using Memory = std::shared_ptr<void>;

  KeptWeights() = default;
  explicit KeptWeights(const Limits& limits) : limits_(limits) {}

  // What was made of `source` in a format before, or what `make` writes to memory of `made_bytes`
  // now. A caller may write to its weights between two calls: their contents decide. Throws Error
  // (out_of_memory), and what `make` throws.
  struct Source {
    std::uint64_t format;
    const void* data;
    std::size_t bytes;
  };
  Memory get(const Source& source, std::size_t made_bytes, const std::function<void(void*)>& make);

 private:
  struct Entry {
    std::uint64_t format;
    Digest digest;
    Memory memory;
    std::size_t bytes;
  };

  Memory find(std::uint64_t format, const Digest& digest);
  // Memory that the format has too much of; fresh pages would take longer than a reorder.
  Memory take_oldest(std::uint64_t format);
  void add(Entry entry);
  void drop(std::list<Entry>::iterator entry);

  Limits limits_;
  std::mutex mutex_;
  std::list<Entry> entries_;  // the most recent first
  std::size_t bytes_ = 0;
};

}  // namespace gemmery::host
