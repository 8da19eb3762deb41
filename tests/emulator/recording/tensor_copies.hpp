// SPDX-License-Identifier: Apache-2.0
// Tensor copies whose results are recorded on hardware: boxes of random tensor maps, tiled and
// im2col, loaded to shared memory or stored from it. A case is determined by its number, so that
// only digests of results must be kept.
#pragma once

#include <gemmery/device.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "emulator/memory/tensor_map.hpp"

namespace gemmery::recording {

struct TensorCopy {
  // The address is that of the tensor in a buffer of `memory_bytes`, once that exists.
  emulator::TensorMapFields map;
  bool is_store = false;
  std::array<std::int32_t, 5> coordinates{};
  std::array<std::uint16_t, 3> offsets{};  // im2col loads, W first
  std::size_t memory_bytes = 0;
};

// The maximum of a box's bytes.
inline constexpr std::uint32_t largest_box = 4096;

// Valid copies by the PTX ISA's rules of coordinates, offsets and corners.
std::vector<TensorCopy> all_tensor_copies();
// Copies that the ISA does not define, by the rule that each violates. Hardware may destroy the
// context.
enum class BrokenCopy {
  base_pixel_outside,  // im2col: the first pixel lies outside of the pixel box
  wide_offset,         // im2col, rank 4 and 5: an offset beyond its field
  stride_of_images,    // im2col: an element stride of N
  negative_store,      // a negative coordinate of a tile that is stored
  corners_of_store,    // im2col store: lower < 0 or upper > 0
  begins_amid_chunk,   // a coordinate of dimension 0 within a unit of 16 bytes
};
inline constexpr int broken_copy_kinds = 6;
std::vector<TensorCopy> broken_tensor_copies(BrokenCopy kind);

// Runs copies on a device, hardware or emulated.
class TensorCopyRunner {
 public:
  explicit TensorCopyRunner(Device device);
  ~TensorCopyRunner();
  TensorCopyRunner(const TensorCopyRunner&) = delete;
  TensorCopyRunner& operator=(const TensorCopyRunner&) = delete;

  // Returns the box in shared memory after a load, or the whole memory after a store. Both
  // initially have random bytes from the seed. Throws Error if the device refuses the map or the
  // launch fails.
  std::vector<std::byte> run(const TensorCopy& copy, std::uint64_t seed);

 private:
  struct Machine;
  std::unique_ptr<Machine> machine_;
};

std::uint32_t digest(const std::vector<std::byte>& bytes);

}  // namespace gemmery::recording
