// SPDX-License-Identifier: Apache-2.0
#include "emulator/instruction/matrix/wgmma_tile.hpp"

#include <array>
#include <cstring>

namespace gemmery::emulator {
namespace {

constexpr std::uint32_t chunk_bytes = 16;

// Merges adjacent pieces, so that each run of bytes is checked once.
class RunReader {
 public:
  RunReader(SharedMemory& memory, const Accessor& who) : memory_(memory), who_(who) {}
  const std::byte* add(std::uint32_t at) {
    if (at == end_) {
      end_ += chunk_bytes;
    } else if (at + chunk_bytes == begin_) {
      begin_ = at;
    } else {
      check();
      begin_ = at;
      end_ = at + chunk_bytes;
    }
    // Nothing outside of memory is copied: check() throws.
    memory_.check_bounds(at, chunk_bytes, chunk_bytes);
    return memory_.data(at);
  }
  void check() {
    if (end_ > begin_) memory_.read(begin_, end_ - begin_, chunk_bytes, who_, true);
  }

 private:
  SharedMemory& memory_;
  const Accessor& who_;
  std::uint32_t begin_ = 0, end_ = 0;
};

void read_k_major(RunReader& reader, const MatrixDescriptor& descriptor, const TileRows& rows,
                  std::byte* to) {
  for (std::uint32_t row = 0; row < rows.count; ++row)
    for (std::uint32_t half = 0; half < 2; ++half) {
      std::memcpy(to, reader.add(descriptor.k_major(rows.first + row, half)), chunk_bytes);
      to += chunk_bytes;
    }
}

void read_mn_major(RunReader& reader, const MatrixDescriptor& descriptor, const TileRows& rows,
                   std::byte* to) {
  constexpr std::uint32_t k = wgmma_row_bytes / 2;
  for (std::uint32_t at = 0; at < k; ++at)
    for (std::uint32_t group = 0; group < rows.count / 8; ++group) {
      std::array<std::uint16_t, 8> column;
      std::memcpy(column.data(), reader.add(descriptor.mn_major(rows.first / 8 + group, at)),
                  chunk_bytes);
      std::byte* place = to + (group * 8 * k + at) * 2;
      for (const std::uint16_t element : column) {
        std::memcpy(place, &element, 2);
        place += wgmma_row_bytes;
      }
    }
}

}  // namespace

void read_tile(SharedMemory& memory, const MatrixDescriptor& descriptor, const TileRows& rows,
               const Accessor& who, std::span<std::byte> to) {
  RunReader reader(memory, who);
  if (rows.is_mn_major)
    read_mn_major(reader, descriptor, rows, to.data());
  else
    read_k_major(reader, descriptor, rows, to.data());
  reader.check();
}

}  // namespace gemmery::emulator
