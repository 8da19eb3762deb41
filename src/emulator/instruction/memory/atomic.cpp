// SPDX-License-Identifier: Apache-2.0
// atom and red: read-modify-writes of the lanes one by one, in an order that the seed determines.
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "emulator/arithmetic/float_arithmetic.hpp"
#include "emulator/arithmetic/float_format.hpp"
#include "emulator/instruction/copy/copy_forms.hpp"
#include "emulator/instruction/memory/memory_access.hpp"
#include "emulator/program/scalar_type.hpp"

namespace gemmery::emulator {
namespace {

// --- the updates --------------------------------------------------------------------------------

// The operand of an update; for cas also the new value, after the one that is compared.
struct alignas(16) UpdateOperand {
  std::array<std::byte, 16> first{};
  std::array<std::byte, 16> second{};
};

template <class Value>
Value take(const void* from) noexcept {
  Value value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

template <class Value, auto combine>
void apply(void* value, const void* operand) {
  const Value made = combine(take<Value>(value), take<Value>(operand));
  std::memcpy(value, &made, sizeof made);
}

template <std::size_t bytes>
void exchange(void* value, const void* operand) {
  std::memcpy(value, operand, bytes);
}

template <std::size_t bytes>
void compare_and_swap(void* value, const void* operand) {
  const auto& both = *static_cast<const UpdateOperand*>(operand);
  if (std::memcmp(value, both.first.data(), bytes) == 0)
    std::memcpy(value, both.second.data(), bytes);
}

template <class T>
T sum(T a, T b) noexcept {
  return static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) +
                        static_cast<std::make_unsigned_t<T>>(b));
}
template <class T>
T smaller(T a, T b) noexcept {
  return std::min(a, b);
}
template <class T>
T larger(T a, T b) noexcept {
  return std::max(a, b);
}
template <class T>
T conjunction(T a, T b) noexcept {
  return a & b;
}
template <class T>
T disjunction(T a, T b) noexcept {
  return a | b;
}
template <class T>
T difference(T a, T b) noexcept {
  return a ^ b;
}
std::uint32_t increment(std::uint32_t a, std::uint32_t limit) noexcept {
  return a >= limit ? 0 : a + 1;
}
std::uint32_t decrement(std::uint32_t a, std::uint32_t limit) noexcept {
  return a == 0 || a > limit ? limit : a - 1;
}

float sum_f32(float a, float b) noexcept { return add(a, b, Rounding::nearest_even); }
// PTX ISA, atom: atom.add.f32 on global memory flushes subnormals, on shared memory it does not.
float sum_f32_flushed(float a, float b) noexcept {
  return flush(add(flush(a), flush(b), Rounding::nearest_even));
}
double sum_f64(double a, double b) noexcept { return add(a, b, Rounding::nearest_even); }

// f32 has 24 bits, which is enough that rounding a sum of two 16-bit floats twice equals rounding
// it once.
struct F16Arithmetic {
  static std::uint32_t widen(std::uint16_t bits) noexcept { return f32_from_f16(bits); }
  static std::uint32_t narrow(std::uint32_t bits) noexcept { return f16_from_f32(bits); }
};
struct Bf16Arithmetic {
  static std::uint32_t widen(std::uint16_t bits) noexcept { return f32_from_bf16(bits); }
  static std::uint32_t narrow(std::uint32_t bits) noexcept { return bf16_from_f32(bits); }
};

enum class HalfOperation : std::uint8_t { add, minimum, maximum };

template <class Format, HalfOperation operation>
std::uint16_t combine_halves(std::uint16_t a, std::uint16_t b) noexcept {
  const float x = std::bit_cast<float>(Format::widen(a));
  const float y = std::bit_cast<float>(Format::widen(b));
  const float nan = std::bit_cast<float>(f32_nan);
  float made = 0;
  if constexpr (operation == HalfOperation::add) made = sum_f32(x, y);
  if constexpr (operation == HalfOperation::minimum)
    made = extreme(x, y, Extreme::minimum, false, nan);
  if constexpr (operation == HalfOperation::maximum)
    made = extreme(x, y, Extreme::maximum, false, nan);
  return static_cast<std::uint16_t>(Format::narrow(std::bit_cast<std::uint32_t>(made)));
}

template <class Format, HalfOperation operation>
std::uint32_t combine_pairs(std::uint32_t a, std::uint32_t b) noexcept {
  const auto half = [&](int shift) -> std::uint32_t {
    return combine_halves<Format, operation>(static_cast<std::uint16_t>(a >> shift),
                                             static_cast<std::uint16_t>(b >> shift));
  };
  return half(0) | half(16) << 16;
}

// The forms that PTX allows, one per row.
struct UpdateRow {
  std::string_view operation;
  ScalarType type;
  LaneUpdate apply;
  bool is_vectorised = false;  // has .v2, .v4 … forms on global memory (sm_90)
};

using S32 = std::int32_t;
using U32 = std::uint32_t;
using S64 = std::int64_t;
using U64 = std::uint64_t;
using U16 = std::uint16_t;
using enum ScalarType;

template <class Format, HalfOperation operation>
constexpr LaneUpdate of_halves = apply<U16, combine_halves<Format, operation>>;
template <class Format, HalfOperation operation>
constexpr LaneUpdate of_pairs = apply<U32, combine_pairs<Format, operation>>;

constexpr UpdateRow update_rows[] = {
    {"add", u32, apply<U32, sum<U32>>},
    {"add", s32, apply<S32, sum<S32>>},
    {"add", u64, apply<U64, sum<U64>>},
    {"add", s64, apply<S64, sum<S64>>},
    {"add", f32, apply<float, sum_f32>, true},
    {"add", f64, apply<double, sum_f64>},
    {"add", f16, of_halves<F16Arithmetic, HalfOperation::add>, true},
    {"add", bf16, of_halves<Bf16Arithmetic, HalfOperation::add>, true},
    {"add", f16x2, of_pairs<F16Arithmetic, HalfOperation::add>, true},
    {"add", bf16x2, of_pairs<Bf16Arithmetic, HalfOperation::add>, true},
    {"min", u32, apply<U32, smaller<U32>>},
    {"min", s32, apply<S32, smaller<S32>>},
    {"min", u64, apply<U64, smaller<U64>>},
    {"min", s64, apply<S64, smaller<S64>>},
    {"min", f16, of_halves<F16Arithmetic, HalfOperation::minimum>, true},
    {"min", bf16, of_halves<Bf16Arithmetic, HalfOperation::minimum>, true},
    {"min", f16x2, of_pairs<F16Arithmetic, HalfOperation::minimum>, true},
    {"min", bf16x2, of_pairs<Bf16Arithmetic, HalfOperation::minimum>, true},
    {"max", u32, apply<U32, larger<U32>>},
    {"max", s32, apply<S32, larger<S32>>},
    {"max", u64, apply<U64, larger<U64>>},
    {"max", s64, apply<S64, larger<S64>>},
    {"max", f16, of_halves<F16Arithmetic, HalfOperation::maximum>, true},
    {"max", bf16, of_halves<Bf16Arithmetic, HalfOperation::maximum>, true},
    {"max", f16x2, of_pairs<F16Arithmetic, HalfOperation::maximum>, true},
    {"max", bf16x2, of_pairs<Bf16Arithmetic, HalfOperation::maximum>, true},
    {"inc", u32, apply<U32, increment>},
    {"dec", u32, apply<U32, decrement>},
    {"and", b32, apply<U32, conjunction<U32>>},
    {"and", b64, apply<U64, conjunction<U64>>},
    {"or", b32, apply<U32, disjunction<U32>>},
    {"or", b64, apply<U64, disjunction<U64>>},
    {"xor", b32, apply<U32, difference<U32>>},
    {"xor", b64, apply<U64, difference<U64>>},
    {"exch", b32, exchange<4>},
    {"exch", b64, exchange<8>},
    {"exch", b128, exchange<16>},
    {"cas", b16, compare_and_swap<2>},
    {"cas", b32, compare_and_swap<4>},
    {"cas", b64, compare_and_swap<8>},
    {"cas", b128, compare_and_swap<16>},
};

// --- execution ----------------------------------------------------------------------------------

struct AtomicDetail final : OperationDetail {
  Space space = Space::generic;
  AccessOrder order;
  AddressOperand address;
  LaneUpdate apply = nullptr;
  LaneUpdate apply_global = nullptr;  // for global memory, if its result differs
  std::uint32_t element_bytes = 4;
  std::uint32_t count = 1;
  bool has_result = false;
  bool has_second = false;  // cas
  bool replaces = false;    // exch
  std::array<OperandSlot, 8> results{};
  std::array<OperandSlot, 8> operands{};
  OperandSlot second;
};

const std::byte* lane_at(const Warp& warp, const OperandSlot& slot, std::uint32_t element_bytes,
                         int lane) noexcept {
  const std::uint32_t lane_bytes = std::max(element_bytes, 4u);
  return (slot.is_constant ? warp.constants : warp.registers) + slot.offset +
         static_cast<std::size_t>(lane) * lane_bytes;
}

bool update_place(Warp& warp, const AtomicDetail& detail, const Route& route, Accessor who,
                  std::uint64_t address, const UpdateOperand& operand, void* old,
                  UpdateDefinedness defined) {
  if (route.space == Space::global) {
    return warp.cta.cluster.grid.memory->update(address, detail.element_bytes, who,
                                                detail.apply_global, &operand, old, defined);
  }
  return route.cta->shared.update(static_cast<std::uint32_t>(address), detail.element_bytes, who,
                                  detail.apply, &operand, old, defined);
}

void update_element(Warp& warp, const Operation& operation, const AtomicDetail& detail,
                    const Route& route, int lane, std::uint32_t at) {
  const OperandSlot& slot = detail.operands[at];
  LaneMask defined = warp.defined_lanes(slot);
  UpdateOperand operand;
  std::memcpy(operand.first.data(), lane_at(warp, slot, detail.element_bytes, lane),
              detail.element_bytes);
  if (detail.has_second) {
    defined &= warp.defined_lanes(detail.second);
    std::memcpy(operand.second.data(), lane_at(warp, detail.second, detail.element_bytes, lane),
                detail.element_bytes);
  }
  alignas(16) std::array<std::byte, 16> old{};
  const std::uint64_t address =
      route.addresses[static_cast<std::size_t>(lane)] + at * detail.element_bytes;
  const bool was_written = update_place(
      warp, detail, route, warp.accessor(operation, lane), address, operand, old.data(),
      {.is_operand_defined = (defined >> lane & 1) != 0, .replaces = detail.replaces});
  if (!detail.has_result) return;
  const OperandSlot& result = detail.results[at];
  const std::uint32_t lane_bytes = std::max(detail.element_bytes, 4u);
  std::memcpy(warp.registers + result.offset + static_cast<std::size_t>(lane) * lane_bytes,
              old.data(), lane_bytes);
  warp.set_defined(result, LaneMask{1} << lane, was_written ? all_lanes : 0);
}

void require_atomic_place(const Route& route, const AtomicDetail& detail) {
  const int first = std::countr_zero(route.lanes);
  const auto refuse = [&](FaultKind kind, std::string message, int lane) {
    Fault fault(kind, std::move(message));
    fault.place.lane = lane;
    throw fault;
  };
  if (route.space != Space::global && route.space != Space::shared)
    refuse(FaultKind::illegal_instruction,
           "atomic operation on local memory or parameters; expected global or shared memory",
           first);
  if (detail.count == 1) return;
  const std::uint32_t bytes = detail.element_bytes * detail.count;
  for (LaneMask rest = route.lanes; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    if (route.addresses[static_cast<std::size_t>(lane)] % bytes != 0)
      refuse(FaultKind::misaligned,
             "vector atomic: expected an address that is a multiple of " + std::to_string(bytes),
             lane);
  }
}

Step execute_atomic(Warp& warp, const Operation& operation, LaneMask active) {
  const auto& detail = static_cast<const AtomicDetail&>(*operation.detail);
  LaneAddresses addresses;
  find_addresses(warp, operation, detail.address, active, addresses);
  Route route;
  for (LaneMask rest = active; rest != 0;) {
    take_route(warp, detail.space, addresses, rest, route);
    require_atomic_place(route, detail);
    // Any start and any odd step visit each lane exactly once.
    const std::uint64_t order = warp.cta.cluster.random();
    const auto start = static_cast<std::uint32_t>(order);
    const std::uint32_t step = static_cast<std::uint32_t>(order >> 32) | 1;
    for (std::uint32_t turn = 0; turn < lanes_per_warp; ++turn) {
      const auto lane = static_cast<int>((start + turn * step) % lanes_per_warp);
      if ((route.lanes >> lane & 1) == 0) continue;
      for (std::uint32_t at = 0; at < detail.count; ++at)
        update_element(warp, operation, detail, route, lane, at);
    }
    if (detail.has_result) order_after_read(warp, detail.order, route);
    order_with_write(warp, detail.order, route);
    warp.unfenced_lanes |= route.lanes;
  }
  // Yields, so that a loop over compare-and-swap lets other warps run.
  return detail.has_result ? Step::yield : Step::next;
}

// --- decoding -----------------------------------------------------------------------------------

const UpdateRow& find_row(Form& form) {
  constexpr std::string_view operations[] = {"add", "min", "max", "inc",  "dec",
                                             "and", "or",  "xor", "exch", "cas"};
  const auto operation = form.take_one_of(operations);
  if (!operation) form.refuse("its operation is not known");
  const ScalarType type = form.take_type();
  for (const UpdateRow& row : update_rows)
    if (row.operation == operations[*operation] && row.type == type) return row;
  form.refuse("." + std::string(operations[*operation]) + " has no ." + std::string(name(type)) +
              " on sm_90");
}

std::span<const Operand> value_elements_of(Form& form, const Operand& operand,
                                           std::uint32_t count) {
  if (count == 1 && operand.kind != Operand::Kind::list) return {&operand, 1};
  if (operand.kind != Operand::Kind::list || operand.items.size() != count)
    form.refuse("it takes a list of " + std::to_string(count) + " registers");
  return operand.items;
}

void add_results(Form& form, AtomicDetail& detail, const Operand& operand, ScalarType type) {
  if (operand.kind == Operand::Kind::sink) {
    detail.has_result = false;
    return;
  }
  std::size_t at = 0;
  for (const Operand& element : value_elements_of(form, operand, detail.count)) {
    OperandSlot& slot = detail.results[at++];
    slot = form.context().destination_slot(element, type);
    if (slot.reg != no_register) form.operation().writes.push_back(slot.reg);
  }
}

OperandSlot add_operand(Form& form, const Operand& operand, ScalarType type) {
  const OperandSlot slot = form.context().source_slot(operand, type);
  if (slot.reg != no_register) form.operation().reads.push_back(slot.reg);
  return slot;
}

// atom if `has_result`, else red.
void decode_update(Form& form, bool has_result) {
  AtomicDetail detail;
  const AccessWords words = take_access_words(form);
  const UpdateRow& row = find_row(form);
  form.take("noftz");
  form.finish();
  if (words.vector_length != 1 && !row.is_vectorised) form.refuse("it has no vector form");
  detail.space = words.space;
  detail.order = {.strength = words.strength == Strength::weak ? Strength::relaxed : words.strength,
                  .scope = words.scope,
                  .is_read_modify_write = true};
  detail.apply = row.apply;
  detail.apply_global =
      row.type == f32 && row.operation == "add" ? apply<float, sum_f32_flushed> : row.apply;
  detail.element_bytes = static_cast<std::uint32_t>(bytes_of(row.type));
  detail.count = words.vector_length;
  detail.has_result = has_result;
  detail.has_second = row.operation == "cas";
  detail.replaces = row.operation == "exch";
  const std::size_t first = has_result ? 1 : 0;
  form.expect_operands(first + 2 + detail.has_second + words.has_cache_policy);
  const ScalarType type = untyped(bits_of(row.type));
  if (has_result) add_results(form, detail, form.operand(0), type);
  detail.address = add_address_operand(form, form.operand(first));
  // An immediate has the instruction's own type.
  std::size_t at = 0;
  for (const Operand& element : value_elements_of(form, form.operand(first + 1), detail.count))
    detail.operands[at++] = add_operand(form, element, row.type);
  if (detail.has_second) detail.second = add_operand(form, form.operand(first + 2), row.type);
  if (words.space == Space::global || words.space == Space::generic)
    form.context().require_ordered_grid();

  Operation& operation = form.operation();
  operation.execute = execute_atomic;
  operation.propagates_definedness = false;
  operation.has_side_effect = true;
  operation.detail = std::make_shared<AtomicDetail>(detail);
}

void decode_atom(DecodeContext& context, const Instruction& instruction, Operation& operation) {
  Form form(context, instruction, operation);
  decode_update(form, true);
}

void decode_red(DecodeContext& context, const Instruction& instruction, Operation& operation) {
  Form form(context, instruction, operation);
  if (form.take("async")) return decode_async_reduction(form);
  decode_update(form, false);
}

constexpr DecodeRow atomic_decode_rows[] = {{"atom", decode_atom}, {"red", decode_red}};

}  // namespace

DecodeRows atomic_rows() { return atomic_decode_rows; }

}  // namespace gemmery::emulator
