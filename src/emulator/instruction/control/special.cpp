// SPDX-License-Identifier: Apache-2.0
// Values of the special registers (PTX ISA, "Special Registers").
#include "emulator/instruction/control/special.hpp"

#include <bit>

#include "emulator/instruction/form.hpp"
#include "emulator/machine/warp.hpp"
#include "emulator/memory/address.hpp"
#include "emulator/program/special_register.hpp"

namespace gemmery::emulator {
namespace {

using LaneValues = std::array<std::uint64_t, lanes_per_warp>;

constexpr std::uint32_t warps_per_multiprocessor = 64;  // %nwarpid of sm_80 and sm_90
constexpr std::uint32_t shared_granularity = 128;       // of %total_smem_size

template <class Value>
LaneValues each_lane(Value value) {
  LaneValues values{};
  for (std::uint32_t lane = 0; lane < lanes_per_warp; ++lane) values[lane] = value(lane);
  return values;
}

LaneValues all_lanes_of(std::uint64_t value) {
  LaneValues values{};
  values.fill(value);
  return values;
}

// Extents and positions have three dimensions; .w reads 0.
std::uint32_t dimension_of(const std::array<std::uint32_t, 3>& vector, std::uint32_t dimension) {
  return dimension < vector.size() ? vector[dimension] : 0;
}

LaneValues thread_index(const Warp& warp, std::uint32_t dimension) {
  const std::array<std::uint32_t, 3>& block = warp.cta.cluster.grid.block;
  return each_lane([&](std::uint32_t lane) -> std::uint64_t {
    const std::uint32_t thread = warp.index * lanes_per_warp + lane;
    switch (dimension) {
      case 0:
        return thread % block[0];
      case 1:
        return thread / block[0] % block[1];
      case 2:
        return thread / block[0] / block[1];
      default:
        return 0;
    }
  });
}

std::uint32_t linear_cta(const Cta& cta) {
  const std::array<std::uint32_t, 3>& grid = cta.cluster.grid.grid;
  return (cta.position[2] * grid[1] + cta.position[1]) * grid[0] + cta.position[0];
}

std::uint32_t cluster_value(SpecialRegister which, std::uint32_t position, std::uint32_t extent,
                            std::uint32_t cluster) {
  switch (which) {
    case SpecialRegister::clusterid:
      return position / cluster;
    case SpecialRegister::nclusterid:
      return extent / cluster;
    case SpecialRegister::cluster_ctaid:
      return position % cluster;
    default:
      return cluster;
  }
}

LaneValues cluster_register(const Warp& warp, SpecialRegister which, std::uint32_t dimension) {
  const Grid& grid = warp.cta.cluster.grid;
  if (dimension > 2) return {};
  return all_lanes_of(cluster_value(which, warp.cta.position[dimension], grid.grid[dimension],
                                    grid.cluster[dimension]));
}

LaneValues lane_mask(SpecialRegister which) {
  return each_lane([&](std::uint32_t lane) -> std::uint64_t {
    const LaneMask own = LaneMask{1} << lane;
    switch (which) {
      case SpecialRegister::lanemask_eq:
        return own;
      case SpecialRegister::lanemask_lt:
        return own - 1;
      case SpecialRegister::lanemask_le:
        return own | (own - 1);
      case SpecialRegister::lanemask_ge:
        return ~(own - 1);
      default:
        return ~(own | (own - 1));
    }
  });
}

// The cluster's instruction count stands for cycles and for nanoseconds, so times repeat with the
// seed.
LaneValues time_register(const Warp& warp, SpecialRegister which) {
  const std::uint64_t steps = warp.cta.cluster.steps;
  const bool is_high =
      which == SpecialRegister::clock_hi || which == SpecialRegister::globaltimer_hi;
  return all_lanes_of(is_high ? steps >> 32 : steps);
}

std::uint32_t total_shared_bytes(const Grid& grid) {
  const std::uint32_t bytes = grid.shared_bytes_per_cta();
  return (bytes + shared_granularity - 1) / shared_granularity * shared_granularity;
}

LaneValues size_register(const Warp& warp, SpecialRegister which) {
  const Grid& grid = warp.cta.cluster.grid;
  switch (which) {
    case SpecialRegister::dynamic_smem_size:
      return all_lanes_of(grid.dynamic_shared_bytes);
    case SpecialRegister::total_smem_size:
      return all_lanes_of(total_shared_bytes(grid));
    case SpecialRegister::aggr_smem_size:
      return all_lanes_of(total_shared_bytes(grid) + shared_reserved_bytes);
    case SpecialRegister::reserved_smem_offset_end:
    case SpecialRegister::reserved_smem_offset_cap:
      return all_lanes_of(shared_reserved_bytes);
    default:
      return {};
  }
}

// 1 and 2 hold the address of the grid's workspace, the high word first
// (cooperative_groups/details/driver_abi.h); 0 in launches that are not cooperative.
std::uint64_t environment_register(const Grid& grid, std::uint32_t number) noexcept {
  if (number == 1) return grid.workspace >> 32;
  return number == 2 ? grid.workspace & 0xffff'ffff : 0;
}

LaneValues values_of(const Warp& warp, SpecialRegister which, std::uint32_t dimension) {
  const Grid& grid = warp.cta.cluster.grid;
  switch (which) {
    case SpecialRegister::tid:
      return thread_index(warp, dimension);
    case SpecialRegister::ntid:
      return all_lanes_of(dimension_of(grid.block, dimension));
    case SpecialRegister::ctaid:
      return all_lanes_of(dimension_of(warp.cta.position, dimension));
    case SpecialRegister::nctaid:
      return all_lanes_of(dimension_of(grid.grid, dimension));
    case SpecialRegister::laneid:
      return each_lane([](std::uint32_t lane) { return lane; });
    case SpecialRegister::warpid:
      return all_lanes_of(warp.index);
    case SpecialRegister::nwarpid:
      return all_lanes_of(warps_per_multiprocessor);
    case SpecialRegister::smid:
      return all_lanes_of(linear_cta(warp.cta) % grid.multiprocessors);
    case SpecialRegister::nsmid:
      return all_lanes_of(grid.multiprocessors);
    case SpecialRegister::gridid:
      return all_lanes_of(grid.launch_index);
    case SpecialRegister::clusterid:
    case SpecialRegister::nclusterid:
    case SpecialRegister::cluster_ctaid:
    case SpecialRegister::cluster_nctaid:
      return cluster_register(warp, which, dimension);
    case SpecialRegister::cluster_ctarank:
      return all_lanes_of(warp.cta.rank);
    case SpecialRegister::cluster_nctarank:
      return all_lanes_of(grid.ctas_per_cluster());
    case SpecialRegister::is_explicit_cluster:
      return all_lanes_of(grid.ctas_per_cluster() > 1);
    case SpecialRegister::lanemask_eq:
    case SpecialRegister::lanemask_le:
    case SpecialRegister::lanemask_lt:
    case SpecialRegister::lanemask_ge:
    case SpecialRegister::lanemask_gt:
      return lane_mask(which);
    case SpecialRegister::clock:
    case SpecialRegister::clock_hi:
    case SpecialRegister::clock64:
    case SpecialRegister::globaltimer:
    case SpecialRegister::globaltimer_lo:
    case SpecialRegister::globaltimer_hi:
      return time_register(warp, which);
    case SpecialRegister::dynamic_smem_size:
    case SpecialRegister::total_smem_size:
    case SpecialRegister::aggr_smem_size:
    case SpecialRegister::reserved_smem_offset_begin:
    case SpecialRegister::reserved_smem_offset_end:
    case SpecialRegister::reserved_smem_offset_cap:
      return size_register(warp, which);
    case SpecialRegister::reserved_smem_offset:
      return all_lanes_of(dimension == 1 ? shared_runtime_offset : 0);
    case SpecialRegister::envreg:
      return all_lanes_of(environment_register(grid, dimension));
    // Always 0: the emulator has no performance counters and no graphs launched from the device.
    case SpecialRegister::current_graph_exec:
    case SpecialRegister::pm:
      return {};
  }
  return {};
}

LaneValues values_of(const Warp& warp, const Operation& operation) {
  return values_of(warp, static_cast<SpecialRegister>(operation.immediate), operation.flags);
}

template <class T>
Step run_special_move(Warp& warp, const Operation& operation, LaneMask active) {
  const LaneValues values = values_of(warp, operation);
  T* const to = warp.destination<T>(operation, 0);
  for (LaneMask rest = active; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<std::size_t>(std::countr_zero(rest));
    to[lane] = static_cast<T>(values[lane]);
  }
  return Step::next;
}

Step run_special_move_to_16_bits(Warp& warp, const Operation& operation, LaneMask active) {
  const LaneValues values = values_of(warp, operation);
  auto* const to = warp.destination<std::uint32_t>(operation, 0);
  for (LaneMask rest = active; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<std::size_t>(std::countr_zero(rest));
    to[lane] = static_cast<std::uint16_t>(values[lane]);
  }
  return Step::next;
}

Step run_special_move_to_predicate(Warp& warp, const Operation& operation, LaneMask active) {
  const bool value = values_of(warp, operation)[0] != 0;  // the same in all lanes
  LaneMask& to = *warp.destination<LaneMask>(operation, 0);
  to = value ? to | active : to & ~active;
  return Step::next;
}

Execute handler_of(Form& form, ScalarType type) {
  if (type == ScalarType::pred) return run_special_move_to_predicate;
  switch (bits_of(type)) {
    case 16:
      return run_special_move_to_16_bits;
    case 32:
      return run_special_move<std::uint32_t>;
    case 64:
      return run_special_move<std::uint64_t>;
    default:
      form.refuse("a special register has 16, 32 or 64 bits");
  }
}

}  // namespace

bool decode_special_move(DecodeContext& context, const Instruction& instruction,
                         Operation& operation) {
  if (instruction.operands.size() != 2 || instruction.operands[1].kind != Operand::Kind::special)
    return false;
  Form form(context, instruction, operation);
  const ScalarType type = form.take_type();
  form.finish();
  const auto special = find_special_register(instruction.operands[1].text);
  if (!special) form.refuse("no such special register is known");
  operation.immediate = static_cast<std::uint64_t>(special->which);
  operation.flags = special->dimension;
  if (special->which == SpecialRegister::reserved_smem_offset && special->dimension == 1)
    context.require_reserved_shared();
  if (special->which == SpecialRegister::envreg) context.require_grid_workspace();
  operation.execute = handler_of(form, type);
  context.add_destination(operation, form.operand(0), type);
  return true;
}

}  // namespace gemmery::emulator
