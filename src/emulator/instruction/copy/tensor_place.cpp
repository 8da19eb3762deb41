// SPDX-License-Identifier: Apache-2.0
// The rules for legal boxes, each one found with random boxes on an H100.
#include "emulator/instruction/copy/tensor_place.hpp"

#include <string>

#include "emulator/instruction/copy/copy_operands.hpp"

namespace gemmery::emulator {
namespace {

[[noreturn]] void throw_illegal(int lane, const std::string& what) {
  throw_fault(FaultKind::illegal_instruction, lane, "a tensor copy " + what);
}

void require_whole_chunks(const TensorMapFields& map, const BoxPlace& place, int lane) {
  const std::int64_t at = std::int64_t{place.start[0]} * bytes_of(map.element);
  if (at % tensor_unit_bytes == 0) return;
  throw_illegal(lane, "begins at coordinate " + std::to_string(place.start[0]) +
                          " of dimension 0, byte " + std::to_string(at) +
                          " of a row; hardware takes multiples of 16 bytes only");
}

void require_base_pixel_inside(const TensorMapFields& map, const BoxPlace& place, int lane) {
  for (std::uint32_t spatial = 0; spatial + 2 < map.rank; ++spatial) {
    const std::int64_t lower = map.lower_corner[spatial];
    const std::int64_t last =
        static_cast<std::int64_t>(map.extents[spatial + 1]) - 1 + map.upper_corner[spatial];
    const std::int64_t at = place.start[spatial + 1];
    if (at >= lower && at <= last) continue;
    throw_illegal(lane, "in im2col mode begins at pixel " + std::to_string(at) + " of dimension " +
                            std::to_string(spatial + 1) + ", outside of the map's pixel box, " +
                            std::to_string(lower) + " … " + std::to_string(last));
  }
}

void require_narrow_offsets(const TensorMapFields& map, const BoxPlace& place, int lane) {
  constexpr std::array<std::uint16_t, 3> largest{0xffff, 0xff, 0x1f};
  const std::uint16_t most = largest[map.rank - 3];
  for (std::uint32_t spatial = 0; spatial + 2 < map.rank; ++spatial) {
    if (place.offsets[spatial] <= most) continue;
    throw_illegal(lane, "in im2col mode has the offset " + std::to_string(place.offsets[spatial]) +
                            "; in " + std::to_string(map.rank) +
                            " dimensions hardware reads offsets up to " + std::to_string(most));
  }
}

void require_no_negative_coordinate(const TensorMapFields& map, const BoxPlace& place, int lane) {
  for (std::uint32_t d = 0; d < map.rank; ++d) {
    if (place.start[d] >= 0) continue;
    throw_illegal(lane, "to global memory begins at coordinate " + std::to_string(place.start[d]) +
                            " of dimension " + std::to_string(d) +
                            "; stores take coordinates from 0 on");
  }
}

void require_inner_corners(const TensorMapFields& map, int lane) {
  for (std::uint32_t spatial = 0; spatial + 2 < map.rank; ++spatial) {
    if (map.lower_corner[spatial] >= 0 && map.upper_corner[spatial] <= 0) continue;
    throw_illegal(lane,
                  "to global memory in im2col mode has a pixel box that begins before the tensor "
                  "or ends behind it in dimension " +
                      std::to_string(spatial + 1));
  }
}

}  // namespace

void require_legal_load(const TensorMapFields& map, const BoxPlace& place, int lane) {
  require_whole_chunks(map, place, lane);
  if (!map.is_im2col) return;
  require_base_pixel_inside(map, place, lane);
  require_narrow_offsets(map, place, lane);
}

void require_legal_store(const TensorMapFields& map, const BoxPlace& place, int lane) {
  require_whole_chunks(map, place, lane);
  require_no_negative_coordinate(map, place, lane);
  if (!map.is_im2col) return;
  require_inner_corners(map, lane);
  require_base_pixel_inside(map, place, lane);
}

}  // namespace gemmery::emulator
