// SPDX-License-Identifier: Apache-2.0
// Loads and stores of every state space. (PTX ISA, "Data Movement and Conversion Instructions".)
#include <array>
#include <bit>
#include <cstring>
#include <memory>
#include <span>
#include <string>

#include "emulator/instruction/copy/copy_forms.hpp"
#include "emulator/instruction/image/local_memory.hpp"
#include "emulator/instruction/memory/address_operations.hpp"
#include "emulator/instruction/memory/memory_access.hpp"
#include "emulator/program/scalar_type.hpp"

namespace gemmery::emulator {
namespace {

constexpr std::uint32_t widest_access = 32;  // bytes of a lane: v4.b64, v8.b32

// A register of a load or store: its lane vector and the width of a lane.
struct Value {
  OperandSlot slot;
  std::uint32_t lane_bytes = 4;
};

struct AccessDetail final : OperationDetail {
  Space space = Space::generic;
  AccessOrder order;
  AddressOperand address;
  std::uint32_t element_bytes = 4;
  std::uint32_t count = 1;  // of elements
  bool is_signed = false;
  bool is_whole_lane = false;  // one element, as wide as its register: copied directly
  std::array<Value, 8> values{};

  std::uint32_t bytes() const noexcept { return element_bytes * count; }
};

struct Staging {
  alignas(64) std::array<std::byte, lanes_per_warp * widest_access> bytes;
  std::array<std::uint32_t, lanes_per_warp> written;  // a bit per byte, of lanes not complete
};

const AccessDetail& detail_of(const Operation& operation) noexcept {
  return static_cast<const AccessDetail&>(*operation.detail);
}

// --- loads --------------------------------------------------------------------------------------

LaneMask load_route(Warp& warp, const Operation& operation, const AccessDetail& detail,
                    const Route& route, void* to, std::uint32_t stride, std::uint32_t* written) {
  const LaneAccess access{
      .active = route.lanes, .addresses = route.addresses.data(), .bytes = detail.bytes()};
  Accessor who = warp.accessor(operation);
  who.is_atomic = detail.order.strength != Strength::weak;
  switch (route.space) {
    case Space::shared:
      return route.cta->shared.load(access, who, to, stride, written);
    case Space::local:
      return load_local(warp, access, to, stride, written);
    case Space::param:
      load_parameters(warp, access, to, stride);
      return route.lanes;
    default:
      return warp.cta.cluster.grid.memory->load(access, who, to, stride, written);
  }
}

// Copies element `at` of each lane's bytes to a register, extended by its sign or with zeros.
template <class Element, class Lane>
void spread(const std::byte* from, std::uint32_t stride, std::byte* to, LaneMask active) {
  Lane* const lanes = reinterpret_cast<Lane*>(to);
  const bool is_full = active == all_lanes;
  for (std::size_t lane = 0; lane < lanes_per_warp; ++lane) {
    if (!is_full && (active >> lane & 1) == 0) continue;
    Element element;
    std::memcpy(&element, from + lane * stride, sizeof element);
    lanes[lane] = static_cast<Lane>(element);
  }
}

template <class Lane>
void spread_narrow(const AccessDetail& detail, const std::byte* from, std::uint32_t stride,
                   std::byte* to, LaneMask active) {
  switch (detail.element_bytes) {
    case 1:
      return detail.is_signed ? spread<std::int8_t, Lane>(from, stride, to, active)
                              : spread<std::uint8_t, Lane>(from, stride, to, active);
    case 2:
      return detail.is_signed ? spread<std::int16_t, Lane>(from, stride, to, active)
                              : spread<std::uint16_t, Lane>(from, stride, to, active);
    case 4:
      return detail.is_signed ? spread<std::int32_t, Lane>(from, stride, to, active)
                              : spread<std::uint32_t, Lane>(from, stride, to, active);
    default:
      return spread<std::uint64_t, Lane>(from, stride, to, active);
  }
}

void spread_value(const AccessDetail& detail, const Value& value, const std::byte* from,
                  std::uint32_t stride, std::byte* to, LaneMask active) {
  struct Quad {
    std::uint64_t half[2];
  };
  switch (value.lane_bytes) {
    case 2:
      spread_narrow<std::uint32_t>(detail, from, stride, to, active);
      if (detail.is_signed)  // sign-extended to 16 bits; the rest of the lane stays zero
        for (std::size_t lane = 0; lane < lanes_per_warp; ++lane)
          reinterpret_cast<std::uint32_t*>(to)[lane] &= 0xffff;
      return;
    case 4:
      return spread_narrow<std::uint32_t>(detail, from, stride, to, active);
    case 8:
      return spread_narrow<std::uint64_t>(detail, from, stride, to, active);
    default:
      return spread<Quad, Quad>(from, stride, to, active);
  }
}

// Lanes in which all bytes of element `at` were written.
LaneMask written_elements(const AccessDetail& detail, std::uint32_t at, LaneMask active,
                          LaneMask complete, const std::uint32_t* written) {
  LaneMask lanes = complete;
  const std::uint64_t bits = ((std::uint64_t{1} << detail.element_bytes) - 1)
                             << (at * detail.element_bytes);
  for (LaneMask rest = active & ~complete; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    lanes |= static_cast<LaneMask>((written[lane] & bits) == bits) << lane;
  }
  return lanes;
}

Step execute_load(Warp& warp, const Operation& operation, LaneMask active) {
  const AccessDetail& detail = detail_of(operation);
  LaneAddresses addresses;
  find_addresses(warp, operation, detail.address, active, addresses);
  Staging staging;
  std::byte* const direct =
      detail.is_whole_lane ? warp.registers + detail.values[0].slot.offset : nullptr;
  std::byte* const to = direct != nullptr ? direct : staging.bytes.data();
  const std::uint32_t stride = detail.bytes();

  LaneMask complete = 0;
  Route route;
  for (LaneMask rest = active; rest != 0;) {
    take_route(warp, detail.space, addresses, rest, route);
    complete |= load_route(warp, operation, detail, route, to, stride, staging.written.data());
    if (detail.order.strength != Strength::weak) order_after_read(warp, detail.order, route);
  }
  for (std::uint32_t at = 0; at < detail.count; ++at) {
    const Value& value = detail.values[at];
    if (direct == nullptr)
      spread_value(detail, value, to + at * detail.element_bytes, stride,
                   warp.registers + value.slot.offset, active);
    warp.set_defined(value.slot, active,
                     complete == active
                         ? active
                         : written_elements(detail, at, active, complete, staging.written.data()));
  }
  // A load that may be polling yields, so that other warps run.
  return detail.order.strength == Strength::weak ? Step::next : Step::yield;
}

// --- stores -------------------------------------------------------------------------------------

template <class Element, class Lane>
void collect(const std::byte* from, std::byte* to, std::uint32_t stride) {
  const Lane* const lanes = reinterpret_cast<const Lane*>(from);
  for (std::size_t lane = 0; lane < lanes_per_warp; ++lane) {
    const auto element = static_cast<Element>(lanes[lane]);
    std::memcpy(to + lane * stride, &element, sizeof element);
  }
}

template <class Lane>
void collect_narrow(std::uint32_t element_bytes, const std::byte* from, std::byte* to,
                    std::uint32_t stride) {
  switch (element_bytes) {
    case 1:
      return collect<std::uint8_t, Lane>(from, to, stride);
    case 2:
      return collect<std::uint16_t, Lane>(from, to, stride);
    case 4:
      return collect<std::uint32_t, Lane>(from, to, stride);
    default:
      return collect<std::uint64_t, Lane>(from, to, stride);
  }
}

void collect_value(const AccessDetail& detail, const Value& value, const std::byte* from,
                   std::byte* to, std::uint32_t stride) {
  struct Quad {
    std::uint64_t half[2];
  };
  switch (value.lane_bytes) {
    case 2:
    case 4:
      return collect_narrow<std::uint32_t>(detail.element_bytes, from, to, stride);
    case 8:
      return collect_narrow<std::uint64_t>(detail.element_bytes, from, to, stride);
    default:
      return collect<Quad, Quad>(from, to, stride);
  }
}

const std::byte* value_at(const Warp& warp, const Value& value) noexcept {
  return (value.slot.is_constant ? warp.constants : warp.registers) + value.slot.offset;
}

// Lanes whose elements are all defined. For the others `written` receives a mask of defined bytes.
LaneMask defined_elements(const Warp& warp, const AccessDetail& detail, LaneMask active,
                          std::uint32_t* written) {
  LaneMask defined = all_lanes;
  for (std::uint32_t at = 0; at < detail.count; ++at)
    defined &= warp.defined_lanes(detail.values[at].slot);
  for (LaneMask rest = active & ~defined; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    std::uint64_t bits = 0;
    for (std::uint32_t at = 0; at < detail.count; ++at)
      if ((warp.defined_lanes(detail.values[at].slot) >> lane & 1) != 0)
        bits |= ((std::uint64_t{1} << detail.element_bytes) - 1) << (at * detail.element_bytes);
    written[lane] = static_cast<std::uint32_t>(bits);
  }
  return defined;
}

[[noreturn]] void throw_parameter_store(const Route& route) {
  Fault fault(FaultKind::out_of_bounds,
              "store to the parameters of the kernel, which are read-only; copy them to a local "
              "variable first");
  fault.place.lane = std::countr_zero(route.lanes);
  throw fault;
}

void store_route(Warp& warp, const Operation& operation, const AccessDetail& detail,
                 const Route& route, const void* from, LaneMask defined,
                 const std::uint32_t* written) {
  const std::uint32_t stride = detail.bytes();
  const LaneAccess access{
      .active = route.lanes, .addresses = route.addresses.data(), .bytes = stride};
  Accessor who = warp.accessor(operation);
  who.is_atomic = detail.order.strength != Strength::weak;
  switch (route.space) {
    case Space::shared:
      route.cta->shared.store(access, who, from, stride, defined, written);
      break;
    case Space::local:
      store_local(warp, access, from, stride, defined, written);
      return;
    case Space::param:
      throw_parameter_store(route);
    default:
      warp.cta.cluster.grid.memory->store(access, who, from, stride, defined, written);
  }
  warp.unfenced_lanes |= route.lanes;
}

Step execute_store(Warp& warp, const Operation& operation, LaneMask active) {
  const AccessDetail& detail = detail_of(operation);
  LaneAddresses addresses;
  find_addresses(warp, operation, detail.address, active, addresses);
  Staging staging;
  const std::uint32_t stride = detail.bytes();
  const std::byte* from = staging.bytes.data();
  if (detail.is_whole_lane) {
    from = value_at(warp, detail.values[0]);
  } else {
    for (std::uint32_t at = 0; at < detail.count; ++at)
      collect_value(detail, detail.values[at], value_at(warp, detail.values[at]),
                    staging.bytes.data() + at * detail.element_bytes, stride);
  }
  const LaneMask defined = defined_elements(warp, detail, active, staging.written.data());
  Route route;
  for (LaneMask rest = active; rest != 0;) {
    take_route(warp, detail.space, addresses, rest, route);
    store_route(warp, operation, detail, route, from, defined, staging.written.data());
    if (detail.order.strength != Strength::weak) order_with_write(warp, detail.order, route);
  }
  return Step::next;
}

// --- decoding -----------------------------------------------------------------------------------

// The operands of {a, b, …}, or the one of a scalar: registers or immediates.
std::span<const Operand> elements_of(Form& form, const Operand& operand, std::uint32_t count) {
  if (operand.kind != Operand::Kind::list) {
    if (count != 1) form.refuse("a vector access takes a list of registers");
    return {&operand, 1};
  }
  if (operand.items.size() != count) {
    form.refuse("it takes " + std::to_string(count) + " registers, " +
                std::to_string(operand.items.size()) + " are given");
  }
  return operand.items;
}

std::uint32_t lane_bytes_of(Form& form, const Operand& operand, ScalarType type) {
  const ScalarType own =
      operand.kind == Operand::Kind::reg ? form.context().register_type(operand.reg) : type;
  const auto bytes = static_cast<std::uint32_t>(bytes_of(own));
  return bytes <= 2 ? 2 : bytes;
}

AccessDetail decode_access(Form& form) {
  AccessDetail detail;
  const AccessWords words = take_access_words(form);
  const ScalarType type = form.take_type();
  form.finish();
  if (words.strength == Strength::acquire_release) form.refuse("it takes .acquire or .release");
  detail.space = words.space;
  detail.order = {.strength = words.strength, .scope = words.scope};
  detail.element_bytes = static_cast<std::uint32_t>(bytes_of(type));
  detail.count = words.vector_length;
  detail.is_signed = is_signed_integer(type);
  if (detail.bytes() > widest_access) form.refuse("more than 32 bytes a lane");
  const bool is_seen_by_others = words.space == Space::global || words.space == Space::generic;
  if (words.strength != Strength::weak && is_seen_by_others) form.context().require_ordered_grid();
  return detail;
}

void add_address(Form& form, const Operand& operand, AccessDetail& detail) {
  detail.address = add_address_operand(form, operand);
  // Parameters of calls and of functions that are not entries lie in local memory.
  if (detail.space == Space::param && detail.address.is_in_local_parameter)
    detail.space = Space::local;
}

void decode_load(DecodeContext& context, const Instruction& instruction, Operation& operation) {
  Form form(context, instruction, operation);
  const bool has_policy = instruction.has("L2::cache_hint");
  AccessDetail detail = decode_access(form);
  if (detail.order.strength == Strength::release) form.refuse("a load does not release");
  form.expect_operands(has_policy ? 3 : 2);
  const ScalarType type = untyped(static_cast<int>(8 * detail.element_bytes));
  std::size_t at = 0;
  for (const Operand& element : elements_of(form, form.operand(0), detail.count)) {
    Value& value = detail.values[at++];
    value.slot = context.destination_slot(element, type);
    value.lane_bytes = lane_bytes_of(form, element, type);
    if (value.slot.reg != no_register) operation.writes.push_back(value.slot.reg);
  }
  add_address(form, form.operand(1), detail);
  detail.is_whole_lane = detail.count == 1 && detail.element_bytes >= 4 &&
                         detail.values[0].lane_bytes == detail.element_bytes;
  operation.execute = execute_load;
  operation.propagates_definedness = false;
  operation.detail = std::make_shared<AccessDetail>(detail);
}

void decode_store(DecodeContext& context, const Instruction& instruction, Operation& operation) {
  Form form(context, instruction, operation);
  if (form.take("async")) return decode_async_store(form);
  if (instruction.has("bulk")) form.refuse("st.bulk is not emulated; use plain stores of zeros");
  const bool has_policy = instruction.has("L2::cache_hint");
  AccessDetail detail = decode_access(form);
  if (detail.order.strength == Strength::acquire) form.refuse("a store does not acquire");
  if (detail.space == Space::constant) form.refuse("constant memory is read-only");
  form.expect_operands(has_policy ? 3 : 2);
  const ScalarType type = untyped(static_cast<int>(8 * detail.element_bytes));
  std::size_t at = 0;
  for (const Operand& element : elements_of(form, form.operand(1), detail.count)) {
    Value& value = detail.values[at++];
    value.slot = context.source_slot(element, type);
    value.lane_bytes = lane_bytes_of(form, element, type);
    if (value.slot.reg != no_register) operation.reads.push_back(value.slot.reg);
  }
  add_address(form, form.operand(0), detail);
  detail.is_whole_lane = detail.count == 1 && detail.element_bytes >= 4 &&
                         detail.values[0].lane_bytes == detail.element_bytes;
  operation.execute = execute_store;
  operation.propagates_definedness = false;
  operation.has_side_effect = true;
  operation.detail = std::make_shared<AccessDetail>(detail);
}

constexpr DecodeRow memory_decode_rows[] = {
    {"ld", decode_load},
    {"ldu", decode_load},
    {"st", decode_store},
    {"prefetch", decode_prefetch},
    {"prefetchu", decode_prefetch},
    {"applypriority", decode_prefetch},
    {"discard", decode_discard},
    {"createpolicy", decode_create_policy},
    {"cvta", decode_convert_address},
    {"isspacep", decode_is_space},
    {"mapa", decode_map_address},
    {"getctarank", decode_cta_rank_of},
};

}  // namespace

DecodeRows memory_rows() { return memory_decode_rows; }

}  // namespace gemmery::emulator
