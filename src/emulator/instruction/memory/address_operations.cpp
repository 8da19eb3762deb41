// SPDX-License-Identifier: Apache-2.0
#include "emulator/instruction/memory/address_operations.hpp"

#include <bit>
#include <string_view>

#include "emulator/instruction/memory/memory_access.hpp"
#include "emulator/memory/address.hpp"

namespace gemmery::emulator {
namespace {

// Writes `compute(lane)` to each active lane of a destination of 32- or 64-bit lanes.
template <class Lane, class Compute>
void fill_lanes(Lane* to, LaneMask active, Compute compute) {
  for (std::size_t lane = 0; lane < lanes_per_warp; ++lane)
    if ((active >> lane & 1) != 0) to[lane] = compute(lane);
}

// --- cvta ---------------------------------------------------------------------------------------

// Adds `immediate` to 64-bit addresses.
Step execute_convert_address(Warp& warp, const Operation& operation, LaneMask active) {
  const auto* const from = warp.source<std::uint64_t>(operation, 1);
  auto* const to = warp.destination<std::uint64_t>(operation, 0);
  fill_lanes(to, active, [&](std::size_t lane) { return from[lane] + operation.immediate; });
  return Step::next;
}

// In global and constant memory a generic address equals the address in the space.
std::uint64_t window_of(Form& form, Space space) {
  switch (space) {
    case Space::global:
    case Space::constant:
      return 0;
    case Space::shared:
    case Space::shared_cluster:
      return shared_window;
    case Space::local:
      return local_window;
    case Space::param:
      return param_window;
    case Space::generic:
      break;
  }
  form.refuse("a state space is missing");
}

// --- isspacep -----------------------------------------------------------------------------------

struct SpaceDetail final : OperationDetail {
  Space space = Space::generic;
};

bool is_in_space(Space space, std::uint64_t address, std::uint32_t rank) noexcept {
  const bool is_shared = address - shared_window < window_bytes;
  const bool is_local = address - local_window < window_bytes;
  const bool is_param = address >= param_window && address < param_window_end;
  switch (space) {
    case Space::shared:
      return is_shared && (address - shared_window) >> shared_rank_shift == rank;
    case Space::shared_cluster:
      return is_shared;
    case Space::local:
      return is_local;
    case Space::param:
      return is_param;
    case Space::global:
      return !is_shared && !is_local && !is_param;
    default:
      return false;  // the emulator keeps constants in global memory
  }
}

Step execute_is_space(Warp& warp, const Operation& operation, LaneMask active) {
  const Space space = static_cast<const SpaceDetail&>(*operation.detail).space;
  const auto* const from = warp.source<std::uint64_t>(operation, 1);
  LaneMask result = 0;
  for (std::size_t lane = 0; lane < lanes_per_warp; ++lane)
    result |= static_cast<LaneMask>(is_in_space(space, from[lane], warp.cta.rank)) << lane;
  LaneMask& to = *warp.destination<LaneMask>(operation, 0);
  to = (to & ~active) | (result & active);
  return Step::next;
}

// --- mapa, getctarank ---------------------------------------------------------------------------

template <class Lane>
Step execute_map_address(Warp& warp, const Operation& operation, LaneMask active) {
  const auto* const from = warp.source<Lane>(operation, 1);
  const auto* const rank = warp.source<std::uint32_t>(operation, 2);
  const Lane window = static_cast<Lane>(operation.immediate);
  fill_lanes(warp.destination<Lane>(operation, 0), active, [&](std::size_t lane) {
    const auto offset = static_cast<std::uint32_t>(from[lane] - window) & shared_offset_mask;
    return static_cast<Lane>(window + shared_address(rank[lane], offset));
  });
  return Step::next;
}

template <class Lane>
Step execute_cta_rank_of(Warp& warp, const Operation& operation, LaneMask active) {
  const auto* const from = warp.source<Lane>(operation, 1);
  const Lane window = static_cast<Lane>(operation.immediate);
  fill_lanes(warp.destination<std::uint32_t>(operation, 0), active, [&](std::size_t lane) {
    return static_cast<std::uint32_t>(from[lane] - window) >> shared_rank_shift;
  });
  return Step::next;
}

// True for .shared::cluster, which takes shared addresses; other forms take generic ones.
bool takes_shared_addresses(Form& form) {
  const bool is_shared = form.take("shared::cluster") || form.take("shared");
  form.operation().immediate = is_shared ? 0 : shared_window;
  return is_shared;
}

// --- caches -------------------------------------------------------------------------------------

struct DiscardDetail final : OperationDetail {
  AddressOperand address;
};
constexpr std::uint32_t discarded_bytes = 128;

Step execute_discard(Warp& warp, const Operation& operation, LaneMask active) {
  const auto& detail = static_cast<const DiscardDetail&>(*operation.detail);
  LaneAddresses addresses;
  find_addresses(warp, operation, detail.address, active, addresses);
  for (LaneMask rest = active; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    warp.cta.cluster.grid.memory->discard(addresses[static_cast<std::size_t>(lane)],
                                          discarded_bytes, warp.accessor(operation, lane));
  }
  return Step::next;
}

Step execute_create_policy(Warp& warp, const Operation& operation, LaneMask active) {
  fill_lanes(warp.destination<std::uint64_t>(operation, 0), active,
             [](std::size_t) { return std::uint64_t{0}; });
  return Step::next;
}

}  // namespace

void decode_convert_address(DecodeContext& context, const Instruction& instruction,
                            Operation& operation) {
  Form form(context, instruction, operation);
  const bool is_to = form.take("to");
  const Space space = take_access_words(form).space;
  const ScalarType type = form.take_type();
  if (bits_of(type) != 64) form.refuse("generic addresses have 64 bits here");
  const std::uint64_t window = window_of(form, space);
  operation.immediate = is_to ? 0 - window : window;
  form.assign(execute_convert_address, ScalarType::b64, {ScalarType::b64});
}

void decode_is_space(DecodeContext& context, const Instruction& instruction, Operation& operation) {
  Form form(context, instruction, operation);
  auto detail = std::make_shared<SpaceDetail>();
  detail->space = take_access_words(form).space;
  operation.detail = std::move(detail);
  form.assign(execute_is_space, ScalarType::pred, {ScalarType::b64});
}

void decode_map_address(DecodeContext& context, const Instruction& instruction,
                        Operation& operation) {
  Form form(context, instruction, operation);
  const bool is_shared = takes_shared_addresses(form);
  const bool is_64_bit = bits_of(form.take_type()) == 64;
  if (!is_shared && !is_64_bit) form.refuse("generic addresses have 64 bits here");
  const ScalarType type = is_64_bit ? ScalarType::b64 : ScalarType::b32;
  form.assign(is_64_bit ? execute_map_address<std::uint64_t> : execute_map_address<std::uint32_t>,
              type, {type, ScalarType::b32});
}

void decode_cta_rank_of(DecodeContext& context, const Instruction& instruction,
                        Operation& operation) {
  Form form(context, instruction, operation);
  const bool is_shared = takes_shared_addresses(form);
  const bool is_64_bit = bits_of(form.take_type()) == 64;
  if (!is_shared && !is_64_bit) form.refuse("generic addresses have 64 bits here");
  form.assign(is_64_bit ? execute_cta_rank_of<std::uint64_t> : execute_cta_rank_of<std::uint32_t>,
              ScalarType::b32, {is_64_bit ? ScalarType::b64 : ScalarType::b32});
}

void decode_prefetch(DecodeContext& context, const Instruction& instruction, Operation& operation) {
  Form form(context, instruction, operation);
  take_access_words(form);
  for (const char* word : {"L1", "L2", "tensormap"}) form.take(word);
  form.finish();
  add_address_operand(form, form.operand(0));
  operation.execute = run_nothing;
  operation.propagates_definedness = false;
}

void decode_discard(DecodeContext& context, const Instruction& instruction, Operation& operation) {
  Form form(context, instruction, operation);
  take_access_words(form);
  form.take("L2");
  form.finish();
  auto detail = std::make_shared<DiscardDetail>();
  detail->address = add_address_operand(form, form.operand(0));
  operation.detail = std::move(detail);
  operation.execute = execute_discard;
  operation.propagates_definedness = false;
  operation.has_side_effect = true;
}

void decode_create_policy(DecodeContext& context, const Instruction& instruction,
                          Operation& operation) {
  Form form(context, instruction, operation);
  take_access_words(form);
  for (const char* word : {"fractional", "range", "cvt", "L2", "b64"}) form.take(word);
  form.finish();
  form.add_destination(form.operand(0), ScalarType::b64);
  operation.execute = execute_create_policy;  // no sources, so the result is always defined
}

}  // namespace gemmery::emulator
