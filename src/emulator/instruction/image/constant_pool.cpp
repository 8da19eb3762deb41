// SPDX-License-Identifier: Apache-2.0
// Lane vectors of constants, 64-byte aligned.
#include "emulator/instruction/image/constant_pool.hpp"

#include <algorithm>
#include <cstring>

namespace gemmery::emulator {

std::uint32_t ConstantPool::append(std::uint64_t bits, std::uint32_t lane_bytes) {
  const std::size_t at = bytes_.size();
  bytes_.resize(at + std::size_t{lane_bytes} * lanes_per_warp);
  for (std::size_t lane = 0; lane < lanes_per_warp; ++lane)
    std::memcpy(bytes_.data() + at + lane * lane_bytes, &bits,
                std::min<std::size_t>(lane_bytes, sizeof bits));
  return static_cast<std::uint32_t>(at);
}

std::uint32_t ConstantPool::add(std::uint64_t bits, std::uint32_t lane_bytes) {
  const auto [place, is_new] = places_.try_emplace({bits, lane_bytes}, 0);
  if (is_new) place->second = append(bits, lane_bytes);
  return place->second;
}

std::uint32_t ConstantPool::add_predicate(bool value) {
  return add(value ? all_lanes : 0, 4);  // a predicate is a LaneMask in the vector's first lane
}

std::uint32_t ConstantPool::add_shared_address(std::uint64_t address, std::uint32_t lane_bytes) {
  const auto [place, is_new] = shared_places_.try_emplace({address, lane_bytes}, 0);
  if (is_new) {
    place->second = append(address, lane_bytes);
    shared_constants_.push_back({place->second, lane_bytes});
  }
  return place->second;
}

void ConstantPool::move_into(KernelImage& image) && {
  image.constants = std::move(bytes_);
  image.shared_constants = std::move(shared_constants_);
}

}  // namespace gemmery::emulator
