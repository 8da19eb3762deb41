// SPDX-License-Identifier: Apache-2.0
// mov of registers, immediates and addresses of every width, packing and unpacking of vectors, and
// special registers (special.cpp).
#include <cstring>

#include "emulator/instruction/arithmetic/convert.hpp"
#include "emulator/instruction/control/special.hpp"
#include "emulator/instruction/lane_apply.hpp"
#include "emulator/instruction/predicate.hpp"

namespace gemmery::emulator {
namespace {

template <class Stored>
Step run_move(Warp& warp, const Operation& operation, LaneMask active) {
  const Stored* const from = warp.source<Stored>(operation, 1);
  write_lanes<Stored>(warp, operation, 0, active, [from](Stored* to) {
    std::memcpy(to, from, lanes_per_warp * sizeof(Stored));
  });
  return Step::next;
}
Step run_predicate_move(Warp& warp, const Operation& operation, LaneMask active) {
  blend_predicate(warp.destination<LaneMask>(operation, 0), read_predicate(warp, operation, 1),
                  active);
  return Step::next;
}

// --- general case: elements of any width ---------------------------------------------------------

// Bytes from one lane's value to the next in a lane vector.
constexpr std::size_t lane_stride(int bits) {
  return bits <= 32 ? 4 : static_cast<std::size_t>(bits) / 8;
}

Step run_move_128(Warp& warp, const Operation& operation, LaneMask active) {
  const std::byte* const from = warp.source<std::byte>(operation, 1);
  std::byte* const to = warp.destination<std::byte>(operation, 0);
  for (std::size_t lane = 0; lane < lanes_per_warp; ++lane)
    if (((active >> lane) & 1) != 0) std::memmove(to + 16 * lane, from + 16 * lane, 16);
  return Step::next;
}

// The widths of the vector's elements and of the whole, in bytes; kept in `immediate`.
struct Layout {
  std::size_t count, part_bytes, part_stride, whole_stride;
};
std::uint64_t encode(int parts, int whole_bits) {
  return static_cast<std::uint64_t>(parts) << 8 | static_cast<std::uint64_t>(whole_bits);
}
Layout layout_of(const Operation& operation) {
  const auto whole_bits = static_cast<int>(operation.immediate & 255);
  const auto parts = static_cast<int>(operation.immediate >> 8);
  const int part_bits = whole_bits / parts;
  return {.count = static_cast<std::size_t>(parts),
          .part_bytes = static_cast<std::size_t>(part_bits) / 8,
          .part_stride = lane_stride(part_bits),
          .whole_stride = lane_stride(whole_bits)};
}

// mov.b64 d, {a, b}: the first element is the lowest. d may be one of the elements.
Step run_join(Warp& warp, const Operation& operation, LaneMask active) {
  const Layout layout = layout_of(operation);
  std::byte* const to = warp.destination<std::byte>(operation, 0);
  for (std::size_t lane = 0; lane < lanes_per_warp; ++lane) {
    if (((active >> lane) & 1) == 0) continue;
    std::byte whole[16] = {};
    for (std::size_t part = 0; part < layout.count; ++part)
      std::memcpy(whole + part * layout.part_bytes,
                  warp.source<std::byte>(operation, part + 1) + lane * layout.part_stride,
                  layout.part_bytes);
    std::memcpy(to + lane * layout.whole_stride, whole, layout.whole_stride);
  }
  return Step::next;
}
// mov.b64 {a, b}, s.
Step run_split(Warp& warp, const Operation& operation, LaneMask active) {
  const Layout layout = layout_of(operation);
  const std::byte* const from = warp.source<std::byte>(operation, layout.count);
  for (std::size_t lane = 0; lane < lanes_per_warp; ++lane) {
    if (((active >> lane) & 1) == 0) continue;
    std::byte whole[16];
    std::memcpy(whole, from + lane * layout.whole_stride, layout.whole_stride);
    for (std::size_t part = 0; part < layout.count; ++part) {
      std::byte value[16] = {};
      std::memcpy(value, whole + part * layout.part_bytes, layout.part_bytes);
      std::memcpy(warp.destination<std::byte>(operation, part) + lane * layout.part_stride, value,
                  layout.part_stride);
    }
  }
  return Step::next;
}

// --- fast paths: the two common pairs ------------------------------------------------------------

std::uint64_t join_words(std::uint32_t low, std::uint32_t high) {
  return std::uint64_t{high} << 32 | low;
}
std::uint32_t join_halves(std::uint16_t low, std::uint16_t high) {
  return std::uint32_t{high} << 16 | low;
}
template <class Whole>
Step run_split_in_two(Warp& warp, const Operation& operation, LaneMask active) {
  constexpr int part_bits = 4 * static_cast<int>(sizeof(Whole));
  constexpr Whole mask = (Whole{1} << part_bits) - 1;
  // A copy, because a destination may be the register that is unpacked.
  alignas(64) Whole whole[lanes_per_warp];
  std::memcpy(whole, warp.source<Whole>(operation, 2), sizeof whole);
  const auto write_part = [&](std::size_t slot, int shift) {
    write_lanes<std::uint32_t>(warp, operation, slot, active, [&](std::uint32_t* to) {
      GEMMERY_EACH_LANE
      for (int lane = 0; lane < lanes_per_warp; ++lane)
        to[lane] = static_cast<std::uint32_t>((whole[lane] >> shift) & mask);
    });
  };
  write_part(0, 0);
  write_part(1, part_bits);
  return Step::next;
}

// --- decoders ------------------------------------------------------------------------------------

ScalarType part_type(Form& form, ScalarType whole, std::size_t parts) {
  const int bits = bits_of(whole) / static_cast<int>(parts == 0 ? 1 : parts);
  if ((parts != 2 && parts != 4) || bits < 8) form.refuse("vectors have two or four parts");
  form.operation().immediate = encode(static_cast<int>(parts), bits_of(whole));
  return untyped(bits);
}

void decode_join(Form& form, ScalarType type) {
  const auto& parts = form.operand(1).items;
  const ScalarType of_part = part_type(form, type, parts.size());
  form.add_destination(form.operand(0), type);
  for (const Operand& part : parts) form.add_source(part, of_part);
  Execute execute = run_join;
  if (parts.size() == 2 && bits_of(type) == 64) execute = run_lanes<join_words>;
  if (parts.size() == 2 && bits_of(type) == 32) execute = run_lanes<join_halves>;
  form.operation().execute = execute;
}
void decode_split(Form& form, ScalarType type) {
  const auto& parts = form.operand(0).items;
  const ScalarType of_part = part_type(form, type, parts.size());
  for (const Operand& part : parts) form.add_destination(part, of_part);
  form.add_source(form.operand(1), type);
  Execute execute = run_split;
  if (parts.size() == 2 && bits_of(type) == 64) execute = run_split_in_two<std::uint64_t>;
  if (parts.size() == 2 && bits_of(type) == 32) execute = run_split_in_two<std::uint32_t>;
  form.operation().execute = execute;
}

Execute move_of(Form& form, ScalarType type) {
  if (type == ScalarType::pred) return run_predicate_move;
  switch (bits_of(type)) {
    case 16:
    case 32:
      return run_move<std::uint32_t>;
    case 64:
      return run_move<std::uint64_t>;
    case 128:
      return run_move_128;
    default:
      form.refuse("registers of this width can't be moved");
  }
}

}  // namespace

void decode_mov(DecodeContext& context, const Instruction& instruction, Operation& operation) {
  if (decode_special_move(context, instruction, operation)) return;
  Form form(context, instruction, operation);
  const ScalarType type = form.take_type();
  form.finish();
  form.expect_operands(2);
  const Execute execute = move_of(form, type);
  if (form.operand(1).kind == Operand::Kind::list) return decode_join(form, type);
  if (form.operand(0).kind == Operand::Kind::list) return decode_split(form, type);
  form.assign(execute, type, {type});
  if (type == ScalarType::pred) note_negations(form, 1, 1, 1);
}

}  // namespace gemmery::emulator
