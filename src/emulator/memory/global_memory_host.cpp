// SPDX-License-Identifier: Apache-2.0
// Accesses of the host: fills, and copies that preserve which bytes were written.
#include <bit>
#include <cstring>

#include "emulator/memory/global_memory_insides.hpp"

namespace gemmery::emulator {
namespace {

// Records a write of the host. Earlier accesses of kernels are complete then.
void note_host_write(Chunk& chunk, std::uint64_t offset, std::uint64_t bytes) {
  chunk.shadow.mark_written(offset, bytes);
  if (offset == 0 && bytes == chunk.bytes) chunk.is_all_written = true;
  if (chunk.has_accesses) chunk.shadow.forget_accesses(offset, bytes);
}

}  // namespace

// Calls `visit(view, offset in the view, bytes, bytes before)` for each chunk; false if the range
// is not within one allocation.
template <class Visit>
bool GlobalMemory::Insides::for_each_piece(std::uint64_t address, std::uint64_t bytes,
                                           Visit visit) {
  if (bytes == 0) return true;
  const AllocationPointer allocation = find(address);
  if (allocation == nullptr || bytes > allocation->bytes - (address - allocation->address)) {
    return false;
  }
  std::uint64_t done = 0;
  while (done < bytes) {
    const std::uint64_t from_start = address + done - allocation->address;
    const std::uint64_t index = from_start / chunk_bytes;
    const std::uint64_t offset = from_start % chunk_bytes;
    Chunk* const chunk = allocation->chunk(index);
    if (chunk == nullptr) return false;
    const std::lock_guard lock(chunk->lock);
    if (allocation->is_freed.load(std::memory_order_relaxed)) return false;
    const std::uint64_t piece = std::min(bytes - done, allocation->chunk_size(index) - offset);
    visit(*chunk, allocation->data.get() + index * chunk_bytes, offset, piece, done);
    done += piece;
  }
  return true;
}

bool GlobalMemory::copy_in(std::uint64_t to, const void* from, std::uint64_t bytes) {
  const auto* const source = static_cast<const std::byte*>(from);
  return insides_->for_each_piece(to, bytes,
                                  [&](Chunk& chunk, std::byte* data, std::uint64_t offset,
                                      std::uint64_t piece, std::uint64_t done) {
                                    std::memcpy(data + offset, source + done, piece);
                                    note_host_write(chunk, offset, piece);
                                  });
}

bool GlobalMemory::copy_out(void* to, std::uint64_t from, std::uint64_t bytes) const {
  auto* const target = static_cast<std::byte*>(to);
  return insides_->for_each_piece(
      from, bytes,
      [&](Chunk&, std::byte* data, std::uint64_t offset, std::uint64_t piece, std::uint64_t done) {
        std::memcpy(target + done, data + offset, piece);
      });
}

std::uint64_t GlobalMemory::count_unwritten(std::uint64_t address, std::uint64_t bytes) const {
  std::uint64_t count = 0;
  insides_->for_each_piece(
      address, bytes,
      [&](Chunk& chunk, std::byte*, std::uint64_t offset, std::uint64_t piece, std::uint64_t) {
        if (chunk.is_all_written) return;
        for (std::uint64_t at = 0; at < piece; at += 64) {
          const auto width = static_cast<std::uint32_t>(std::min<std::uint64_t>(64, piece - at));
          const std::uint64_t written = chunk.shadow.written_mask(offset + at, width);
          count += width - static_cast<std::uint32_t>(std::popcount(written));
        }
      });
  return count;
}

bool GlobalMemory::fill(std::uint64_t to, std::uint8_t value, std::uint64_t bytes) {
  return insides_->for_each_piece(
      to, bytes,
      [&](Chunk& chunk, std::byte* data, std::uint64_t offset, std::uint64_t piece, std::uint64_t) {
        std::memset(data + offset, value, piece);
        note_host_write(chunk, offset, piece);
      });
}

bool GlobalMemory::make_unwritten(std::uint64_t address, std::uint64_t bytes) {
  return insides_->for_each_piece(
      address, bytes,
      [&](Chunk& chunk, std::byte* data, std::uint64_t offset, std::uint64_t piece, std::uint64_t) {
        std::memset(data + offset, 0, piece);
        chunk.mark_unwritten(offset, piece);
      });
}

bool GlobalMemory::Insides::take(std::uint64_t from, std::uint64_t bytes, Carried& carried) {
  return for_each_piece(from, bytes,
                        [&](Chunk& chunk, std::byte* data, std::uint64_t offset,
                            std::uint64_t piece, std::uint64_t done) {
                          std::memcpy(carried.values.data() + done, data + offset, piece);
                          for (std::uint64_t at = 0; at < piece; ++at) {
                            carried.is_written[done + at] =
                                chunk.is_all_written || chunk.shadow.is_written(offset + at, 1);
                          }
                        });
}

bool GlobalMemory::Insides::put(std::uint64_t to, std::uint64_t bytes, const Carried& carried) {
  return for_each_piece(to, bytes,
                        [&](Chunk& chunk, std::byte* data, std::uint64_t offset,
                            std::uint64_t piece, std::uint64_t done) {
                          std::memcpy(data + offset, carried.values.data() + done, piece);
                          note_host_write(chunk, offset, piece);
                          for (std::uint64_t at = 0; at < piece; ++at) {
                            if (!carried.is_written[done + at])
                              chunk.mark_unwritten(offset + at, 1);
                          }
                        });
}

bool GlobalMemory::copy(std::uint64_t to, std::uint64_t from, std::uint64_t bytes) {
  if (bytes == 0) return true;
  const auto fits = [&](std::uint64_t address) {
    const auto extent = find(address);
    return extent && bytes <= extent->bytes - (address - extent->address);
  };
  if (!fits(to) || !fits(from)) return false;
  Carried carried;
  for (std::uint64_t done = 0; done < bytes; done += chunk_bytes) {
    const std::uint64_t piece = std::min(chunk_bytes, bytes - done);
    if (!insides_->take(from + done, piece, carried) || !insides_->put(to + done, piece, carried)) {
      return false;
    }
  }
  return true;
}

}  // namespace gemmery::emulator
