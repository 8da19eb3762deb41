// SPDX-License-Identifier: Apache-2.0
// Immediates and addresses as lane vectors; equal values share one vector.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "emulator/machine/kernel_image.hpp"

namespace gemmery::emulator {

class ConstantPool {
 public:
  // Returns the offset of a vector of 32 values of 4, 8 or 16 bytes; the upper half of 16 bytes is
  // zero.
  std::uint32_t add(std::uint64_t bits, std::uint32_t lane_bytes);
  // A predicate that is true or false in all lanes.
  std::uint32_t add_predicate(bool value);
  // A vector of an offset into shared memory, to which the CTA's rank is added (see KernelImage).
  std::uint32_t add_shared_address(std::uint64_t address, std::uint32_t lane_bytes);

  void move_into(KernelImage& image) &&;

 private:
  std::uint32_t append(std::uint64_t bits, std::uint32_t lane_bytes);

  using Places = std::map<std::pair<std::uint64_t, std::uint32_t>, std::uint32_t>;
  Places places_;
  Places shared_places_;
  AlignedBytes bytes_;
  std::vector<KernelImage::SharedConstant> shared_constants_;
};

}  // namespace gemmery::emulator
