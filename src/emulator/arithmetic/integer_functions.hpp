// SPDX-License-Identifier: Apache-2.0
// Integer operations that C++ has no operator for, as the PTX ISA defines them.
#pragma once

#include <bit>
#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace gemmery::emulator {

template <std::integral T>
inline constexpr int bits_in = static_cast<int>(8 * sizeof(T));

template <std::integral T>
constexpr T saturate_to(std::int64_t value) noexcept {
  constexpr auto lowest = static_cast<std::int64_t>(std::numeric_limits<T>::min());
  constexpr auto highest = static_cast<std::int64_t>(std::numeric_limits<T>::max());
  return static_cast<T>(value < lowest ? lowest : value > highest ? highest : value);
}

// --- products and quotients ----------------------------------------------------------------------

template <std::integral T>
constexpr T multiply_high(T a, T b) noexcept {
  if constexpr (sizeof(T) == 8) {
    __extension__ using Wide = std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>;
    return static_cast<T>((static_cast<Wide>(a) * static_cast<Wide>(b)) >> 64);
  } else {
    using Wide = std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>;
    return static_cast<T>((static_cast<Wide>(a) * static_cast<Wide>(b)) >> bits_in<T>);
  }
}

// Bits 0..31 or 16..47 of the product of the low 24 bits.
template <std::integral T>
constexpr std::int64_t multiply_24(T a, T b) noexcept {
  const auto low = [](T value) {
    const auto bits = static_cast<std::uint32_t>(value) << 8;
    if constexpr (std::is_signed_v<T>)
      return static_cast<std::int64_t>(static_cast<std::int32_t>(bits) >> 8);
    else
      return static_cast<std::int64_t>(bits >> 8);
  };
  return low(a) * low(b);
}

// PTX does not define a quotient by zero; ptxas's code returns all ones for quotient and remainder.
// The most negative number divided by -1 is itself.
template <std::integral T>
constexpr T divide(T a, T b) noexcept {
  if (b == 0) return static_cast<T>(~T{0});
  if constexpr (std::is_signed_v<T>)
    if (b == -1) return static_cast<T>(0 - static_cast<std::make_unsigned_t<T>>(a));
  return static_cast<T>(a / b);
}
template <std::integral T>
constexpr T remainder(T a, T b) noexcept {
  if (b == 0) return static_cast<T>(~T{0});
  if constexpr (std::is_signed_v<T>)
    if (b == -1) return 0;
  return static_cast<T>(a % b);
}

// --- shifts: amounts beyond the width shift everything out ---------------------------------------

template <std::unsigned_integral T>
constexpr T shift_left(T value, std::uint32_t amount) noexcept {
  return amount < bits_in<T> ? static_cast<T>(value << amount) : T{0};
}
template <std::integral T>
constexpr T shift_right(T value, std::uint32_t amount) noexcept {
  constexpr std::uint32_t last = bits_in<T> - 1;
  if constexpr (std::is_signed_v<T>)
    return static_cast<T>(value >> (amount < last ? amount : last));
  return amount <= last ? static_cast<T>(value >> (amount & last)) : T{0};
}

// Shifts the 64 bits high:low and returns the upper half (left shift) or the lower half (right
// shift).
constexpr std::uint32_t funnel_left(std::uint32_t low, std::uint32_t high,
                                    std::uint32_t amount) noexcept {
  const std::uint64_t both = std::uint64_t{high} << 32 | low;
  return static_cast<std::uint32_t>(both << amount >> 32);
}
constexpr std::uint32_t funnel_right(std::uint32_t low, std::uint32_t high,
                                     std::uint32_t amount) noexcept {
  const std::uint64_t both = std::uint64_t{high} << 32 | low;
  return static_cast<std::uint32_t>(both >> amount);
}

// --- bits ----------------------------------------------------------------------------------------

constexpr std::uint32_t look_up(std::uint32_t a, std::uint32_t b, std::uint32_t c,
                                std::uint32_t table) noexcept {
  std::uint32_t made = 0;
  for (std::uint32_t row = 0; row < 8; ++row) {
    const std::uint32_t from_a = (row & 4) != 0 ? a : ~a;
    const std::uint32_t from_b = (row & 2) != 0 ? b : ~b;
    const std::uint32_t from_c = (row & 1) != 0 ? c : ~c;
    made |= (0 - ((table >> row) & 1)) & from_a & from_b & from_c;
  }
  return made;
}

template <std::unsigned_integral T>
constexpr T reverse_bits(T value) noexcept {
  T made = 0;
  for (int bit = 0; bit < bits_in<T>; ++bit)
    made = static_cast<T>(made << 1 | ((value >> bit) & 1));
  return made;
}

// The position of the highest bit that differs from the sign; all ones if there is none.
template <std::integral T>
constexpr std::uint32_t find_leading(T value, bool as_shift_amount) noexcept {
  using Bits = std::make_unsigned_t<T>;
  const auto bits = static_cast<Bits>(value < 0 ? ~value : value);
  if (bits == 0) return ~std::uint32_t{0};
  const int position = static_cast<int>(std::bit_width(bits)) - 1;
  return static_cast<std::uint32_t>(as_shift_amount ? bits_in<T> - 1 - position : position);
}

// The position of the offset-th set bit counted from `base`: upwards for a positive offset,
// downwards for a negative one; 0 tests the bit at `base` itself. All ones if there is none.
constexpr std::uint32_t find_nth_set(std::uint32_t mask, std::uint32_t base,
                                     std::int32_t offset) noexcept {
  constexpr std::uint32_t none = ~std::uint32_t{0};
  if (base > 31) return none;
  if (offset == 0) return ((mask >> base) & 1) != 0 ? base : none;
  const int step = offset > 0 ? 1 : -1;
  std::int64_t left = offset > 0 ? std::int64_t{offset} : -std::int64_t{offset};
  for (int bit = static_cast<int>(base); bit >= 0 && bit <= 31; bit += step)
    if (((mask >> bit) & 1) != 0 && --left == 0) return static_cast<std::uint32_t>(bit);
  return none;
}

// Position and length are the low 8 bits of their operands. A signed field is extended with its
// highest bit, or with the value's highest bit if the field extends beyond the value.
template <std::integral T>
constexpr T extract_field(T value, std::uint32_t position, std::uint32_t length) noexcept {
  using Bits = std::make_unsigned_t<T>;
  const std::uint32_t from = position & 255, count = length & 255;
  constexpr std::uint32_t last = bits_in<T> - 1;
  if (count == 0) return 0;
  const bool is_sign_set =
      std::is_signed_v<T> &&
      ((static_cast<Bits>(value) >> (from + count - 1 < last ? from + count - 1 : last)) & 1) != 0;
  const Bits mask =
      count > last ? static_cast<Bits>(~Bits{0}) : static_cast<Bits>((Bits{1} << count) - 1);
  const Bits kept = static_cast<Bits>(shift_right(static_cast<Bits>(value), from) & mask);
  const Bits inside = static_cast<Bits>(
      from > last ? Bits{0} : static_cast<Bits>(static_cast<Bits>(~Bits{0}) >> from) & mask);
  return static_cast<T>(is_sign_set ? kept | static_cast<Bits>(~inside) : kept);
}
template <std::unsigned_integral T>
constexpr T insert_field(T field, T into, std::uint32_t position, std::uint32_t length) noexcept {
  const std::uint32_t from = position & 255, count = length & 255;
  const T ones = count >= bits_in<T> ? static_cast<T>(~T{0}) : static_cast<T>((T{1} << count) - 1);
  const T mask = shift_left(ones, from);
  return static_cast<T>((shift_left(field, from) & mask) | (into & static_cast<T>(~mask)));
}
// `count` ones from bit `position` on. Values above 31 count as 32 (.clamp) or modulo 32 (.wrap).
constexpr std::uint32_t make_mask(std::uint32_t position, std::uint32_t count,
                                  bool wraps) noexcept {
  if (wraps) position &= 31, count &= 31;
  const std::uint32_t ones = count > 31 ? ~0u : (1u << count) - 1;
  return shift_left(ones, position);
}
// Bits from `position` up to the sign are filled with the bit below `position` (szext).
template <std::integral T>
constexpr T extend_from(T value, std::uint32_t position, bool wraps) noexcept {
  if (wraps) position &= 31;
  if (position > 31) return value;
  if (position == 0) return 0;
  const std::uint32_t unused = 32 - position;
  return static_cast<T>(static_cast<T>(static_cast<std::uint32_t>(value) << unused) >> unused);
}

// --- bytes ---------------------------------------------------------------------------------------

// The modes of prmt. Each one but `plain` makes four selectors from the lowest bits of the third
// operand.
enum class ByteMode : std::uint8_t { plain, f4e, b4e, rc8, ecl, ecr, rc16 };

constexpr std::uint32_t byte_selectors(ByteMode mode, std::uint32_t selector) noexcept {
  constexpr std::uint16_t table[7][4] = {
      {0, 0, 0, 0},
      {0x3210, 0x4321, 0x5432, 0x6543},  // f4e
      {0x5670, 0x6701, 0x7012, 0x0123},  // b4e
      {0x0000, 0x1111, 0x2222, 0x3333},  // rc8
      {0x3210, 0x3211, 0x3222, 0x3333},  // ecl
      {0x0000, 0x1110, 0x2210, 0x3210},  // ecr
      {0x1010, 0x3232, 0x1010, 0x3232},  // rc16
  };
  return mode == ByteMode::plain ? selector : table[static_cast<int>(mode)][selector & 3];
}
// Selects bytes of b:a; the top bit of a selector replicates the byte's sign.
constexpr std::uint32_t permute_bytes(std::uint32_t a, std::uint32_t b,
                                      std::uint32_t selectors) noexcept {
  const std::uint64_t both = std::uint64_t{b} << 32 | a;
  std::uint32_t made = 0;
  for (std::uint32_t at = 0; at < 4; ++at) {
    const std::uint32_t selector = selectors >> (4 * at);
    const auto byte = static_cast<std::uint32_t>(both >> (8 * (selector & 7))) & 255;
    const std::uint32_t kept = (selector & 8) != 0 ? 0 - (byte >> 7) : byte;
    made |= (kept & 255) << (8 * at);
  }
  return made;
}

// --- dot products of bytes -----------------------------------------------------------------------

// Byte or half `at` of a register, extended according to its type.
constexpr std::int32_t part_of(std::uint32_t value, int at, int bits, bool is_signed) noexcept {
  const std::uint32_t aligned = value << (32 - bits * (at + 1));
  return is_signed ? static_cast<std::int32_t>(aligned) >> (32 - bits)
                   : static_cast<std::int32_t>(aligned >> (32 - bits));
}
constexpr std::uint32_t dot_4(std::uint32_t a, std::uint32_t b, std::uint32_t c, bool a_is_signed,
                              bool b_is_signed) noexcept {
  for (int at = 0; at < 4; ++at)
    c +=
        static_cast<std::uint32_t>(part_of(a, at, 8, a_is_signed) * part_of(b, at, 8, b_is_signed));
  return c;
}
// The two halves of `a` times the low or high two bytes of `b`, plus `c`.
constexpr std::uint32_t dot_2(std::uint32_t a, std::uint32_t b, std::uint32_t c, bool a_is_signed,
                              bool b_is_signed, bool takes_high) noexcept {
  for (int at = 0; at < 2; ++at)
    c += static_cast<std::uint32_t>(part_of(a, at, 16, a_is_signed)) *
         static_cast<std::uint32_t>(part_of(b, at + (takes_high ? 2 : 0), 8, b_is_signed));
  return c;
}

}  // namespace gemmery::emulator
