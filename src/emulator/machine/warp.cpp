// SPDX-License-Identifier: Apache-2.0
// A warp's registers and knowledge: construction, reset, and definedness of values.
#include "emulator/machine/warp.hpp"

#include <algorithm>
#include <bit>
#include <string>
#include <utility>

#include "emulator/check/fault_handler.hpp"

namespace gemmery::emulator {

namespace {

LaneMask first_lanes(std::uint32_t count) noexcept {
  return count >= lanes_per_warp ? all_lanes : (LaneMask{1} << count) - 1;
}

void report_undefined(const Warp& warp, const OperandSlot& slot, int lane, const char* what) {
  const std::vector<std::string>& names = warp.cta.cluster.grid.image->register_name;
  const std::string name = slot.reg < names.size() ? names[slot.reg] : "a register";
  Fault fault(FaultKind::unwritten_register,
              name + " of lane " + std::to_string(lane) + " decides " + what +
                  ", but its value comes from a register or memory that nobody wrote; write it "
                  "on every path that leads here");
  fault.place.lane = lane;
  take_or_throw(std::move(fault));
}

}  // namespace

Warp::Warp(Cta& cta_, std::uint32_t index_) : cta(cta_), index(index_) {
  fragments.reserve(lanes_per_warp + 1);
  sent.reserve(lanes_per_warp);
  reset();
}

void Warp::reset() {
  const Grid& grid = cta.cluster.grid;
  const KernelImage& image = *grid.image;
  // Registers are zeroed, so that the effect of undefined values does not depend on earlier
  // kernels.
  storage_.assign(image.register_bytes, std::byte{0});
  registers = storage_.data();
  constants = cta.constants();
  defined.assign(image.register_count, 0);

  live = existing = first_lanes(grid.threads_per_cta() - index * lanes_per_warp);
  fragments.assign(1, Fragment{.pc = image.entry_pc, .lanes = live});
  running = nullptr;
  describe_wait = nullptr;
  may_time_out = has_timed_out = false;
  sent.clear();
  tried_at_wakes = ~std::uint64_t{0};

  agent = cta.rank * grid.warps_per_cta() + index;
  clock = 1;
  known = {};
  known.happened.raise(agent, clock);
  unfenced_lanes = 0;
  synchronised_clock = 0;
  fence = {};

  wgmma = {};
  bulk = {};
  cp_async = {};
  local_memory.assign(std::size_t{image.local_bytes} * lanes_per_warp, std::byte{0});
  local_written.assign((local_memory.size() + 63) / 64, 0);
  call_stacks.clear();
  register_quota = 0;
}

void Warp::require_defined(const OperandSlot& slot, LaneMask active, const char* what) const {
  const LaneMask missing = active & ~defined_lanes(slot);
  if (missing == 0) return;
  report_undefined(*this, slot, std::countr_zero(missing), what);
  cta.warps[index]->defined[slot.reg] |= missing;  // one report is enough
}

void Warp::send(LaneMask which, std::uint32_t pc) { sent.push_back({which, pc}); }

void Warp::exit(LaneMask which) {
  live &= ~which;
  Cluster& cluster = cta.cluster;
  ++cluster.progress;
  ++cluster.wakes;
  if (live != 0) return;
  cta.remote_uses.learn(known.happened);
  if (--cta.live_warps != 0) return;
  cta.has_left = true;
  cta.remote_uses.check_exit(cta.rank);
}

Accessor Warp::accessor(const Operation& operation, int lane) const noexcept {
  const std::uint32_t cluster = cta.cluster.index;
  return {.epoch = Epoch(cluster, agent, clock),
          .known = &known,
          .cluster = cluster,
          .pc = operation.pc,
          .lane = static_cast<std::uint8_t>(lane)};
}

void Warp::release(Knowledge& to) {
  to.join(known);
  ++clock;
  known.happened.raise(agent, clock);
}

void Warp::synchronise_lanes() noexcept {
  synchronised_clock = clock;
  unfenced_lanes = 0;
  ++clock;
  known.happened.raise(agent, clock);
}

}  // namespace gemmery::emulator
