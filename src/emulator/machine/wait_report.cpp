// SPDX-License-Identifier: Apache-2.0
// Reports on waiting warps and on the other access of a conflict.
#include "emulator/machine/wait_report.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdio>

namespace gemmery::emulator {

namespace {

std::string to_string(const std::array<std::uint32_t, 3>& position) {
  return "(" + std::to_string(position[0]) + "," + std::to_string(position[1]) + "," +
         std::to_string(position[2]) + ")";
}

std::string lanes_in_words(LaneMask lanes) {
  if (lanes == all_lanes) return "all lanes";
  if (std::has_single_bit(lanes)) return "lane " + std::to_string(std::countr_zero(lanes));
  std::array<char, 24> text{};
  std::snprintf(text.data(), text.size(), "lanes 0x%08x", lanes);
  return text.data();
}

std::string warp_in_words(const Warp& warp) {
  return "CTA " + to_string(warp.cta.position) + ", warp " + std::to_string(warp.index);
}

std::string fragment_in_words(const Warp& warp, const Fragment& fragment) {
  std::string text = warp_in_words(warp) + ", " + lanes_in_words(fragment.lanes) + " at " +
                     line_in_words(*warp.cta.cluster.grid.image, fragment.pc);
  if (fragment.waits_for_warp)
    text += " — waits for the warp's other lanes";
  else if (fragment.is_blocked && fragment.describe_wait != nullptr)
    text += " — waits for " + fragment.describe_wait(warp, fragment);
  else if (fragment.is_blocked)
    text += " — waits";
  return text;
}

void append_line(std::string& text, const std::string& line) {
  if (!text.empty()) text += '\n';
  text += line;
}

std::string describe_fragments(const Warp& warp) {
  std::string text;
  for (const Fragment& fragment : warp.fragments)
    append_line(text, fragment_in_words(warp, fragment));
  return text;
}

// The position of the CTA with rank `rank` in a cluster of this grid.
std::array<std::uint32_t, 3> position_in(const Grid& grid, std::uint32_t cluster,
                                         std::uint32_t rank) {
  std::array<std::uint32_t, 3> position{};
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const std::uint32_t clusters = grid.grid[axis] / grid.cluster[axis];
    position[axis] = cluster % clusters * grid.cluster[axis] + rank % grid.cluster[axis];
    cluster /= clusters;
    rank /= grid.cluster[axis];
  }
  return position;
}

// Fields that do not follow from the epoch keep their defaults.
FaultPlace place_of_other_side(const Conflict& conflict, const Cluster& cluster) {
  const Grid& grid = cluster.grid;
  FaultPlace place = grid.image->place_of(conflict.other_pc);
  if (conflict.other_lane < lanes_per_warp) place.lane = conflict.other_lane;
  const AgentIndex agent = conflict.other.agent();
  const bool is_warp = agent < grid.ctas_per_cluster() * grid.warps_per_cta();
  if (is_warp) place.warp = static_cast<int>(agent % grid.warps_per_cta());
  const std::uint32_t rank = is_warp ? agent / grid.warps_per_cta() : 0;
  if (is_warp || grid.ctas_per_cluster() == 1)
    place.cta = position_in(grid, conflict.other.cluster(), rank);
  return place;
}

void add_first_waiting_place(Fault& fault, const Cluster& cluster) {
  for (const auto& cta : cluster.ctas)
    for (const auto& warp : cta->warps)
      if (!warp->fragments.empty()) return add_place(fault, *warp, warp->fragments.front().pc);
}

}  // namespace

std::string line_in_words(const KernelImage& image, std::uint32_t pc) {
  FaultPlace place = image.place_of(pc);
  if (place.ptx_line == 0) return "pc " + std::to_string(pc);
  place.kernel.clear();  // the report's line has kernel and CTA already
  std::string text = to_string(place);
  return text.substr(text.find_first_not_of(", "));
}

void add_place(Fault& fault, const Warp& warp, std::uint32_t pc) {
  if (fault.place.ptx_line != 0) return;
  const int lane = fault.place.lane;
  fault.place = warp.cta.cluster.grid.image->place_of(pc);
  fault.place.cta = warp.cta.position;
  fault.place.warp = static_cast<int>(warp.index);
  fault.place.lane = lane;
}

void add_place_of_running(Fault& fault, const Cluster& cluster) {
  if (cluster.async.completing != nullptr)
    return add_place(fault, cluster, *cluster.async.completing);
  if (cluster.running != nullptr && cluster.running->running != nullptr)
    add_place(fault, *cluster.running, cluster.running->running->pc);
}

void add_other_side(ConflictFault& fault, const Cluster& cluster) {
  if (!fault.other_side.empty()) return;
  fault.other_side = "with " + describe_other_side(fault.conflict, cluster);
  fault.other = place_of_other_side(fault.conflict, cluster);
}

std::string describe_other_side(const Conflict& conflict, const Cluster& cluster) {
  const Grid& grid = cluster.grid;
  std::string text = conflict.other_was_write ? "the write by " : "the read by ";
  const AgentIndex warps = grid.ctas_per_cluster() * grid.warps_per_cta();
  const AgentIndex agent = conflict.other.agent();
  if (conflict.other.is_never()) {
    text += "somebody";
  } else if (agent < warps) {
    text += "CTA " +
            to_string(position_in(grid, conflict.other.cluster(), agent / grid.warps_per_cta())) +
            ", warp " + std::to_string(agent % grid.warps_per_cta()) + ", " +
            (conflict.other_lane == several_lanes ? std::string("several lanes")
                                                  : "lane " + std::to_string(conflict.other_lane));
  } else if (grid.ctas_per_cluster() == 1) {
    text += "an asynchronous operation of CTA " +
            to_string(position_in(grid, conflict.other.cluster(), 0));
    if (conflict.other_lane < lanes_per_warp)
      text += ", lane " + std::to_string(conflict.other_lane);
  } else {
    text += "an asynchronous operation";
    if (conflict.other.cluster() != cluster.index)
      text += " of cluster " + std::to_string(conflict.other.cluster());
  }
  return text + " at " + line_in_words(*grid.image, conflict.other_pc);
}

std::string describe_waits(const Cluster& cluster) {
  std::string text;
  for (const auto& cta : cluster.ctas)
    for (const auto& warp : cta->warps)
      if (!warp->fragments.empty()) append_line(text, describe_fragments(*warp));
  return text;
}

Fault deadlock_fault(const Cluster& cluster) {
  Fault fault(FaultKind::deadlock,
              "every warp of the cluster waits and nothing under way can end a wait; compare what "
              "each waits for with who should arrive");
  fault.other_side = describe_waits(cluster);
  add_first_waiting_place(fault, cluster);
  return fault;
}

Fault timeout_fault(const Cluster& cluster, std::uint64_t step_limit) {
  Fault fault(FaultKind::timeout,
              "the cluster has not ended after " + std::to_string(step_limit) +
                  " warp instructions; look for a loop that waits for a value that nobody writes, "
                  "or raise the step limit");
  fault.other_side = describe_waits(cluster);
  add_first_waiting_place(fault, cluster);
  return fault;
}

Fault divergence_fault(const Warp& warp) {
  const LaneMask gone = warp.existing & ~warp.live;
  const bool has_parted = warp.fragments.size() > 1;
  Fault fault(FaultKind::divergent_barrier,
              has_parted
                  ? "the lanes of one warp wait for one another at different instructions, "
                    "each of which all of them must reach together; take the same path to it "
                    "with all lanes"
                  : lanes_in_words(gone) +
                        " of the warp left the kernel without this instruction, which all of "
                        "a warp must execute; leave behind it, or use a form that is not "
                        ".aligned");
  fault.other_side = describe_fragments(warp);
  add_place(fault, warp, warp.fragments.front().pc);
  return fault;
}

Fault guarded_divergence_fault(const Warp& warp, std::uint32_t pc, LaneMask lanes,
                               LaneMask active) {
  Fault fault(FaultKind::divergent_barrier,
              "the guard of an instruction that a whole warp must execute holds for " +
                  lanes_in_words(active) + " but not for " + lanes_in_words(lanes & ~active) +
                  "; make the predicate the same for the whole warp");
  fault.place.lane = std::countr_zero(lanes & ~active);
  add_place(fault, warp, pc);
  return fault;
}

}  // namespace gemmery::emulator
