// SPDX-License-Identifier: Apache-2.0
// What loads, stores and atomics share: modifiers, the memory that a lane's address leads to, and
// the order that strong accesses establish.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "emulator/check/fence_state.hpp"
#include "emulator/instruction/form.hpp"
#include "emulator/machine/warp.hpp"
#include "emulator/memory/lane_access.hpp"

namespace gemmery::emulator {

enum class Strength : std::uint8_t { weak, relaxed, acquire, release, acquire_release };

// Modifiers of ld, st, atom and red.
struct AccessWords {
  Space space = Space::generic;
  Strength strength = Strength::weak;
  Scope scope = Scope::gpu;
  std::uint32_t vector_length = 1;
  bool has_cache_policy = false;  // one operand more, without effect here
};
// Takes the modifiers above, and those for caches, which have no effect here. Marks the image if
// CTAs may communicate through the access.
AccessWords take_access_words(Form& form);

// The base of [base + offset] is in slot `slot`, the offset in the operation's `immediate`.
struct AddressOperand {
  std::size_t slot = 0;
  bool is_64_bit = true;
  bool is_in_local_parameter = false;  // of .param space: a call's, which lies in local memory
};
AddressOperand add_address_operand(Form& form, const Operand& operand);

using LaneAddresses = std::array<std::uint64_t, lanes_per_warp>;
// Throws Fault if an active lane's base is undefined.
void find_addresses(const Warp& warp, const Operation& operation, const AddressOperand& operand,
                    LaneMask active, LaneAddresses& addresses);

// Lanes whose addresses lead to one memory, with the addresses in that memory.
struct Route {
  LaneMask lanes = 0;
  Space space = Space::global;  // global, shared (`cta` says whose), local or param
  Cta* cta = nullptr;
  LaneAddresses addresses;
};
// Removes from `rest` all lanes that access the same memory as its lowest lane. Throws Fault for an
// address in no memory. The explicit spaces global, local and param take all lanes at once.
void take_route(Warp& warp, Space space, const LaneAddresses& addresses, LaneMask& rest,
                Route& route);

// --- order --------------------------------------------------------------------------------------

struct AccessOrder {
  Strength strength = Strength::weak;
  Scope scope = Scope::gpu;
  bool is_read_modify_write = false;
};
// After a strong read: acquires what was released at the address, or keeps it for the next fence.
void order_after_read(Warp& warp, const AccessOrder& order, const Route& route);
// With a strong write: publishes what the warp knows, or what its last fence released.
void order_with_write(Warp& warp, const AccessOrder& order, const Route& route);

}  // namespace gemmery::emulator
