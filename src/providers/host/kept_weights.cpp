// SPDX-License-Identifier: Apache-2.0
#include "providers/host/kept_weights.hpp"

#include <xxhash.h>
#include <algorithm>
#include <cstdlib>
#include <random>
#include <utility>
#include <vector>

#include "platform/aligned_memory.hpp"
#include "platform/parallel.hpp"
#include "providers/host/scratch.hpp"

namespace gemmery::host {
namespace {

constexpr std::size_t chunk_bytes = std::size_t{1} << 18;

std::uint64_t seed_of_process() {
  static const std::uint64_t seed = (std::uint64_t{std::random_device{}()} << 32) | 1;
  return seed;
}

XXH128_hash_t hash(const void* data, std::size_t bytes) {
  return XXH3_128bits_withSeed(data, bytes, seed_of_process());
}

KeptWeights::Memory allocate(std::size_t bytes) {
  void* const data = platform::allocate_aligned(bytes);
  if (data == nullptr) throw_out_of_memory("B", "reordered weights", bytes);
  return {data, std::free};
}

}  // namespace

Digest digest_of(const void* data, std::size_t bytes) {
  const std::size_t chunks = (bytes + chunk_bytes - 1) / chunk_bytes;
  std::vector<XXH128_hash_t> parts(chunks);
  platform::parallel_for(static_cast<std::int64_t>(chunks), 1,
                         [&](std::int64_t begin, std::int64_t end) {
                           for (auto chunk = static_cast<std::size_t>(begin);
                                chunk < static_cast<std::size_t>(end); ++chunk) {
                             const std::size_t first = chunk * chunk_bytes;
                             parts[chunk] = hash(static_cast<const std::byte*>(data) + first,
                                                 std::min(chunk_bytes, bytes - first));
                           }
                         });
  const XXH128_hash_t all = hash(parts.data(), parts.size() * sizeof(XXH128_hash_t));
  return {all.low64, all.high64};
}

KeptWeights::Memory KeptWeights::get(const Source& source, std::size_t made_bytes,
                                     const std::function<void(void*)>& make) {
  const Digest digest = digest_of(source.data, source.bytes);
  if (Memory known = find(source.format, digest)) return known;
  Memory memory = take_oldest(source.format);
  if (memory == nullptr) memory = allocate(made_bytes);
  make(memory.get());
  // If another thread wrote to the source meanwhile, only this call is wrong.
  if (digest_of(source.data, source.bytes) == digest)
    add({source.format, digest, memory, made_bytes});
  return memory;
}

KeptWeights::Memory KeptWeights::find(std::uint64_t format, const Digest& digest) {
  const std::scoped_lock lock(mutex_);
  const auto entry = std::ranges::find_if(
      entries_, [&](const Entry& each) { return each.format == format && each.digest == digest; });
  if (entry == entries_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, entry);
  return entry->memory;
}

KeptWeights::Memory KeptWeights::take_oldest(std::uint64_t format) {
  const std::scoped_lock lock(mutex_);
  std::size_t count = 0;
  auto oldest = entries_.end();
  for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
    if (entry->format != format) continue;
    ++count;
    oldest = entry;
  }
  if (count < limits_.each) return nullptr;
  Memory memory = oldest->memory;
  drop(oldest);
  // A call that still reads it keeps it.
  return memory.use_count() == 1 ? memory : nullptr;
}

void KeptWeights::add(Entry entry) {
  const std::scoped_lock lock(mutex_);
  bytes_ += entry.bytes;
  entries_.push_front(std::move(entry));
  while (bytes_ > limits_.bytes) drop(std::prev(entries_.end()));
}

void KeptWeights::drop(std::list<Entry>::iterator entry) {
  bytes_ -= entry->bytes;
  entries_.erase(entry);
}

}  // namespace gemmery::host
