// SPDX-License-Identifier: Apache-2.0
// Clusters and their CTAs: construction, reset for the next position in the grid, addressing.
#include <cstring>
#include <string>

#include "emulator/machine/warp.hpp"

namespace gemmery::emulator {

namespace {

using Triple = std::array<std::uint32_t, 3>;

// x runs fastest, as in %ctaid and %cluster_ctarank.
Triple position_of(std::uint32_t index, const Triple& extents) noexcept {
  return {index % extents[0], index / extents[0] % extents[1], index / extents[0] / extents[1]};
}

std::uint32_t align_up(std::uint32_t value, std::uint32_t alignment) noexcept {
  return (value + alignment - 1) / alignment * alignment;
}

template <class Lane>
void add_to_lanes(std::byte* vector, Lane addend) {
  Lane lanes[lanes_per_warp];
  std::memcpy(lanes, vector, sizeof lanes);
  for (Lane& lane : lanes) lane += addend;
  std::memcpy(vector, lanes, sizeof lanes);
}

AlignedBytes constants_of_rank(const KernelImage& image, std::uint32_t rank) {
  if (rank == 0 || image.shared_constants.empty()) return {};
  AlignedBytes constants = image.constants;
  for (const KernelImage::SharedConstant& shared : image.shared_constants) {
    std::byte* const vector = constants.data() + shared.offset;
    const std::uint32_t addend = shared_address(rank, 0);
    if (shared.lane_bytes == 8)
      add_to_lanes<std::uint64_t>(vector, addend);
    else
      add_to_lanes<std::uint32_t>(vector, addend);
  }
  return constants;
}

std::string hexadecimal(std::uint32_t value) {
  constexpr char digits[] = "0123456789abcdef";
  std::string text;
  do text.insert(text.begin(), digits[value & 15]);
  while ((value >>= 4) != 0);
  return "0x" + text;
}

}  // namespace

std::uint32_t Grid::shared_bytes_per_cta() const noexcept {
  const std::uint32_t behind_static = shared_reserved_bytes + image->static_shared_bytes;
  if (dynamic_shared_bytes == 0) return image->static_shared_bytes;
  return align_up(behind_static, image->dynamic_shared_alignment) + dynamic_shared_bytes -
         shared_reserved_bytes;
}

Cta::Cta(Cluster& cluster_, std::uint32_t rank_)
    : cluster(cluster_),
      rank(rank_),
      shared(cluster_.grid.shared_bytes_per_cta(), cluster_.grid.image->shared_begin),
      own_constants_(constants_of_rank(*cluster_.grid.image, rank_)) {
  const std::uint32_t count = cluster.grid.warps_per_cta();
  warps.reserve(count);
  for (std::uint32_t index = 0; index < count; ++index)
    warps.push_back(std::make_unique<Warp>(*this, index));
  live_warps = count;
}

const std::byte* Cta::constants() const noexcept {
  return own_constants_.empty() ? cluster.grid.image->constants.data() : own_constants_.data();
}

void Cta::reset() {
  shared = SharedMemory(cluster.grid.shared_bytes_per_cta(), cluster.grid.image->shared_begin);
  named_barriers = {};
  mbarriers.clear();
  registers = {};
  remote_uses.clear();
  for (const auto& warp : warps) warp->reset();
  live_warps = static_cast<std::uint32_t>(warps.size());
  has_left = false;
}

Cluster::Cluster(Grid& grid_, std::uint32_t index_, std::uint64_t seed)
    : grid(grid_), index(index_) {
  const std::uint32_t count = grid.ctas_per_cluster();
  ctas.reserve(count);
  for (std::uint32_t rank = 0; rank < count; ++rank)
    ctas.push_back(std::make_unique<Cta>(*this, rank));
  place(seed);
}

void Cluster::reset(std::uint32_t index_, std::uint64_t seed) {
  index = index_;
  for (const auto& cta : ctas) cta->reset();
  barrier = {};
  async = {};
  progress = wakes = steps = 0;
  place(seed);
}

void Cluster::place(std::uint64_t seed) {
  const Triple clusters = {grid.grid[0] / grid.cluster[0], grid.grid[1] / grid.cluster[1],
                           grid.grid[2] / grid.cluster[2]};
  const Triple origin = position_of(index, clusters);
  for (const auto& cta : ctas) {
    const Triple within = position_of(cta->rank, grid.cluster);
    for (std::size_t axis = 0; axis < 3; ++axis)
      cta->position[axis] = origin[axis] * grid.cluster[axis] + within[axis];
  }
  agent_count = static_cast<AgentIndex>(ctas.size()) * grid.warps_per_cta();
  // Neighbouring clusters of one launch must have different schedules.
  random.seed(seed + index * std::uint64_t{0x9e3779b97f4a7c15});
}

AgentIndex Cluster::add_agent() {
  if (agent_count >= max_agents)
    throw Fault(FaultKind::illegal_instruction,
                "a cluster has more than " + std::to_string(max_agents) +
                    " warps, mbarriers and threads with asynchronous copies, which is the most "
                    "that the emulator follows; use fewer threads or mbarriers");
  return agent_count++;
}

Cluster::SharedPlace Cluster::shared_place(std::uint32_t address) {
  const std::uint32_t rank = address >> shared_rank_shift;
  if (rank >= ctas.size())
    throw Fault(FaultKind::out_of_bounds,
                "shared address " + hexadecimal(address) + " belongs to CTA " +
                    std::to_string(rank) + " of a cluster that has " + std::to_string(ctas.size()) +
                    "; map it with mapa from a rank of the cluster");
  Cta& cta = *ctas[rank];
  if (cta.has_left)
    throw Fault(FaultKind::early_exit,
                "shared address " + hexadecimal(address) + " belongs to CTA " +
                    std::to_string(rank) +
                    " of the cluster, all of whose threads have left the kernel; its shared memory "
                    "is gone: keep it until nobody uses it any more (barrier.cluster or a wait "
                    "before the end)");
  return {&cta, address & shared_offset_mask};
}

}  // namespace gemmery::emulator
