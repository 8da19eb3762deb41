// SPDX-License-Identifier: Apache-2.0
#include "emulator/instruction/memory/memory_access.hpp"

#include <bit>
#include <string>
#include <string_view>

#include "emulator/memory/address.hpp"

namespace gemmery::emulator {
namespace {

// Hints to caches and prefetchers: legal, without effect on values.
bool is_cache_word(std::string_view word) noexcept {
  constexpr std::string_view operators[] = {"ca", "cg", "cs", "lu", "cv", "wb", "wt", "nc"};
  for (const std::string_view each : operators)
    if (word == each) return true;
  return word.starts_with("L1::") || word.starts_with("L2::") || word.starts_with("level::");
}

Space take_space(Form& form) {
  constexpr std::string_view words[] = {"global",          "const",       "shared::cta",
                                        "shared::cluster", "shared",      "local",
                                        "param::entry",    "param::func", "param"};
  constexpr Space spaces[] = {Space::global,         Space::constant, Space::shared,
                              Space::shared_cluster, Space::shared,   Space::local,
                              Space::param,          Space::param,    Space::param};
  const auto found = form.take_one_of(words);
  return found ? spaces[*found] : Space::generic;
}

Strength take_strength(Form& form, bool& is_volatile) {
  form.take("weak");
  form.take("mmio");
  is_volatile = form.take("volatile");
  if (is_volatile || form.take("relaxed")) return Strength::relaxed;
  if (form.take("acquire")) return Strength::acquire;
  if (form.take("release")) return Strength::release;
  if (form.take("acq_rel")) return Strength::acquire_release;
  return Strength::weak;
}

}  // namespace

AccessWords take_access_words(Form& form) {
  AccessWords words;
  bool is_volatile = false;
  words.strength = take_strength(form, is_volatile);
  constexpr std::string_view scopes[] = {"cta", "cluster", "gpu", "sys"};
  if (const auto scope = form.take_one_of(scopes)) words.scope = static_cast<Scope>(*scope);
  if (is_volatile) words.scope = Scope::system;  // PTX ISA: as relaxed.sys
  words.space = take_space(form);
  constexpr std::string_view vectors[] = {"v2", "v4", "v8"};
  if (const auto vector = form.take_one_of(vectors)) words.vector_length = 2u << *vector;
  words.has_cache_policy = form.instruction().has("L2::cache_hint");
  for (const std::string& word : form.instruction().modifiers)
    if (is_cache_word(word)) form.take(word);
  return words;
}

AddressOperand add_address_operand(Form& form, const Operand& operand) {
  AddressOperand address;
  if (operand.kind != Operand::Kind::address) form.refuse("it takes an address in brackets");
  address.slot = form.context().add_address(form.operation(), operand, &address.is_64_bit);
  if (operand.reg == no_register && !operand.text.empty()) {
    Space space = Space::generic;
    form.context().address_of(operand.text, &space);
    address.is_in_local_parameter = space == Space::local;
  } else {
    address.is_in_local_parameter = !form.context().function().is_entry;
  }
  return address;
}

void find_addresses(const Warp& warp, const Operation& operation, const AddressOperand& operand,
                    LaneMask active, LaneAddresses& addresses) {
  const OperandSlot& slot = operation.slot[operand.slot];
  if ((active & ~warp.defined_lanes(slot)) != 0)
    warp.require_defined(slot, active, "the address of a memory access");
  const std::uint64_t offset = operation.immediate;
  if (operand.is_64_bit) {
    const auto* const base = warp.source<std::uint64_t>(operation, operand.slot);
    for (std::size_t lane = 0; lane < lanes_per_warp; ++lane) addresses[lane] = base[lane] + offset;
  } else {
    const auto* const base = warp.source<std::uint32_t>(operation, operand.slot);
    const auto narrow_offset = static_cast<std::uint32_t>(offset);
    for (std::size_t lane = 0; lane < lanes_per_warp; ++lane)
      addresses[lane] = base[lane] + narrow_offset;  // wraps at 32 bits, as the hardware's adder
  }
}

// --- where addresses lead -----------------------------------------------------------------------

namespace {

struct Window {
  Space space;
  std::uint64_t begin;
};

// The window of a generic address.
Window window_of(std::uint64_t address) noexcept {
  if (address - shared_window < window_bytes) return {Space::shared_cluster, shared_window};
  if (address - local_window < window_bytes) return {Space::local, local_window};
  if (address >= param_window && address < param_window_end) return {Space::param, param_window};
  return {Space::global, 0};
}

[[noreturn]] void throw_not_shared(std::uint64_t address, int lane) {
  std::string text = "access of shared memory at an address beyond 32 bits";
  if (address - shared_window < window_bytes) {
    text += " that is a generic one; convert it with cvta.to.shared (__cvta_generic_to_shared)";
  } else if (address >= global_window) {
    text += " that is a global one; use a global access";
  }
  Fault fault(FaultKind::out_of_bounds, std::move(text));
  fault.place.lane = lane;
  throw fault;
}

LaneMask lanes_of_window(const LaneAddresses& addresses, LaneMask rest, const Window& window) {
  LaneMask lanes = 0;
  for (LaneMask left = rest; left != 0; left &= left - 1) {
    const int lane = std::countr_zero(left);
    const Window each = window_of(addresses[static_cast<std::size_t>(lane)]);
    if (each.space == window.space) lanes |= LaneMask{1} << lane;
  }
  return lanes;
}

// `is_own` is set for .shared::cta, in which an address without a rank belongs to the CTA itself.
void route_shared(Warp& warp, bool is_own, std::uint64_t begin, const LaneAddresses& addresses,
                  LaneMask lanes, Route& route) {
  const int first = std::countr_zero(lanes);
  const std::uint64_t address = addresses[static_cast<std::size_t>(first)] - begin;
  if (address >= window_bytes) throw_not_shared(address, first);
  const std::uint64_t rank = address >> shared_rank_shift;
  if ((is_own && rank == 0) || rank == warp.cta.rank) {
    route.cta = &warp.cta;
  } else {
    try {
      route.cta = warp.cta.cluster.shared_place(static_cast<std::uint32_t>(address)).cta;
      route.cta->remote_uses.note(warp);
    } catch (Fault& fault) {
      fault.place.lane = first;
      throw;
    }
    if (is_own) {
      Fault fault(
          FaultKind::out_of_bounds,
          "access of shared::cta memory at an address of another CTA of the cluster (rank " +
              std::to_string(rank) + "); use .shared::cluster or the generic address");
      fault.place.lane = first;
      throw fault;
    }
  }
  std::uint64_t differences = 0;
  for (std::size_t lane = 0; lane < lanes_per_warp; ++lane) {
    const std::uint64_t each = addresses[lane] - begin;
    differences |= each ^ address;
    route.addresses[lane] = each & shared_offset_mask;
  }
  LaneMask same = all_lanes;
  if (differences >> shared_rank_shift != 0) {
    for (std::size_t lane = 0; lane < lanes_per_warp; ++lane) {
      const bool is_same = (addresses[lane] - begin) >> shared_rank_shift == rank;
      if (!is_same) same &= ~(LaneMask{1} << lane);
    }
  }
  route.space = Space::shared;
  route.lanes = lanes & same;
}

}  // namespace

void take_route(Warp& warp, Space space, const LaneAddresses& addresses, LaneMask& rest,
                Route& route) {
  Window window{space, 0};
  route.lanes = rest;
  if (space == Space::generic) {
    window = window_of(addresses[static_cast<std::size_t>(std::countr_zero(rest))]);
    route.lanes = lanes_of_window(addresses, rest, window);
  }
  if (window.space == Space::shared || window.space == Space::shared_cluster) {
    route_shared(warp, window.space == Space::shared, window.begin, addresses, route.lanes, route);
  } else {
    route.space = window.space == Space::constant ? Space::global : window.space;
    for (std::size_t lane = 0; lane < lanes_per_warp; ++lane)
      route.addresses[lane] = addresses[lane] - window.begin;
  }
  rest &= ~route.lanes;
}

// --- order --------------------------------------------------------------------------------------

namespace {

PublicationTable* publications_of(Warp& warp, const Route& route) {
  if (route.space == Space::global) return &warp.cta.cluster.grid.memory->publications();
  if (route.space == Space::shared) return &route.cta->shared.publications();
  return nullptr;
}

Participant participant(const Warp& warp, Scope scope) {
  return {.cluster = warp.cta.cluster.index, .cta_rank = warp.cta.rank, .scope = scope};
}

template <class Visit>
void for_each_address(const Route& route, Visit visit) {
  std::uint64_t before = ~std::uint64_t{0};
  for (LaneMask rest = route.lanes; rest != 0; rest &= rest - 1) {
    const std::uint64_t address = route.addresses[static_cast<std::size_t>(std::countr_zero(rest))];
    if (address != before) visit(address);
    before = address;
  }
}

}  // namespace

void order_after_read(Warp& warp, const AccessOrder& order, const Route& route) {
  PublicationTable* const table = publications_of(warp, route);
  if (table == nullptr) return;
  const bool acquires =
      order.strength == Strength::acquire || order.strength == Strength::acquire_release;
  for_each_address(route, [&](std::uint64_t address) {
    if (acquires) {
      table->collect(address, participant(warp, order.scope), warp.known);
    } else if (table->collect(address, participant(warp, order.scope), warp.fence.observed)) {
      warp.fence.has_observed = true;
    }
  });
}

void order_with_write(Warp& warp, const AccessOrder& order, const Route& route) {
  PublicationTable* const table = publications_of(warp, route);
  if (table == nullptr) return;
  const bool continues = order.is_read_modify_write;
  if (order.strength == Strength::release || order.strength == Strength::acquire_release) {
    Knowledge released;
    warp.release(released);
    for_each_address(route, [&](std::uint64_t address) {
      table->publish(address, participant(warp, order.scope), released, continues);
    });
    return;
  }
  // After a fence, a relaxed write publishes what the fence released.
  for_each_address(route, [&](std::uint64_t address) {
    if (warp.fence.has_released) {
      table->publish(address, participant(warp, warp.fence.released_scope), warp.fence.released,
                     continues);
    } else if (!continues) {
      table->withdraw(address);
    }
  });
}

}  // namespace gemmery::emulator
