// SPDX-License-Identifier: Apache-2.0
// The matrix instructions whose results are recorded on hardware, and their inputs, which are
// determined by the form's name and the case number, so that only results must be kept.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace gemmery::tests::recording {

enum class Element { f16, bf16, tf32, e4m3, e5m2, s8, u8, s4, u4, b1, f64 };
enum class Sum { f32, f16, s32, f64 };

struct Form {
  // Opcode and modifiers; special properties follow after a blank: "… scale-d 0".
  std::string name = {};
  std::string opcode = {};
  bool is_wgmma = false;
  Element a = Element::f16, b = Element::f16;
  Sum sum = Sum::f32;
  int m = 16, n = 8, k = 16;
  bool negates_a = false, negates_b = false, drops_c = false, saturates = false, is_xor = false;
  int cases = 256;
};

inline int bits_of(Element e) {
  switch (e) {
    case Element::f16:
    case Element::bf16:
      return 16;
    case Element::tf32:
      return 32;
    case Element::e4m3:
    case Element::e5m2:
    case Element::s8:
    case Element::u8:
      return 8;
    case Element::s4:
    case Element::u4:
      return 4;
    case Element::b1:
      return 1;
    case Element::f64:
      return 64;
  }
  return 0;
}
inline int bits_of(Sum s) { return s == Sum::f16 ? 16 : s == Sum::f64 ? 64 : 32; }
inline const char* name_of(Element e) {
  static const char* const names[] = {"f16", "bf16", "tf32", "e4m3", "e5m2", "s8",
                                      "u8",  "s4",   "u4",   "b1",   "f64"};
  return names[static_cast<int>(e)];
}
inline const char* name_of(Sum s) {
  static const char* const names[] = {"f32", "f16", "s32", "f64"};
  return names[static_cast<int>(s)];
}

// --- the forms ----------------------------------------------------------------------------------
inline std::vector<Form> all_forms() {
  using E = Element;
  std::vector<Form> forms;
  const auto mma = [&](int m, int n, int k, Sum d, E a, E b, std::string special = "") {
    Form f{.a = a, .b = b, .sum = d, .m = m, .n = n, .k = k};
    f.saturates = special == ".satfinite";
    f.is_xor = special == ".xor.popc";
    f.opcode = "mma.sync.aligned.m" + std::to_string(m) + "n" + std::to_string(n) + "k" +
               std::to_string(k) + ".row.col" + (f.saturates ? special : "") + "." + name_of(d) +
               "." + name_of(a) + "." + name_of(b) + "." + name_of(d) + (a == E::b1 ? special : "");
    f.name = f.opcode;
    forms.push_back(f);
  };
  for (const Sum d : {Sum::f32, Sum::f16})
    for (const int k : {8, 16}) mma(16, 8, k, d, E::f16, E::f16);
  for (const int k : {8, 16}) mma(16, 8, k, Sum::f32, E::bf16, E::bf16);
  for (const int k : {4, 8}) mma(16, 8, k, Sum::f32, E::tf32, E::tf32);
  for (const Sum d : {Sum::f32, Sum::f16})
    for (const int k : {16, 32})
      for (const E a : {E::e4m3, E::e5m2})
        for (const E b : {E::e4m3, E::e5m2}) mma(16, 8, k, d, a, b);
  mma(8, 8, 4, Sum::f64, E::f64, E::f64);
  for (const int k : {4, 8, 16}) mma(16, 8, k, Sum::f64, E::f64, E::f64);
  for (const char* s : {"", ".satfinite"})
    for (const E a : {E::s8, E::u8})
      for (const E b : {E::s8, E::u8}) {
        mma(8, 8, 16, Sum::s32, a, b, s);
        mma(16, 8, 16, Sum::s32, a, b, s);
        mma(16, 8, 32, Sum::s32, a, b, s);
      }
  for (const char* s : {"", ".satfinite"})
    for (const E a : {E::s4, E::u4})
      for (const E b : {E::s4, E::u4}) {
        mma(8, 8, 32, Sum::s32, a, b, s);
        mma(16, 8, 32, Sum::s32, a, b, s);
        mma(16, 8, 64, Sum::s32, a, b, s);
      }
  for (const char* s : {".and.popc", ".xor.popc"}) {
    mma(8, 8, 128, Sum::s32, E::b1, E::b1, s);
    mma(16, 8, 128, Sum::s32, E::b1, E::b1, s);
    mma(16, 8, 256, Sum::s32, E::b1, E::b1, s);
  }
  const auto wgmma = [&](Sum d, E a, E b, bool sat = false, bool na = false, bool nb = false,
                         bool no_c = false) {
    Form f{.is_wgmma = true, .a = a, .b = b, .sum = d, .m = 64, .n = 8, .k = 256 / bits_of(a)};
    f.saturates = sat, f.negates_a = na, f.negates_b = nb, f.drops_c = no_c, f.cases = 64;
    f.opcode = "wgmma.mma_async.sync.aligned.m64n8k" + std::to_string(f.k) +
               (sat ? ".satfinite" : "") + "." + name_of(d) + "." + name_of(a) + "." + name_of(b) +
               (a == E::b1 ? ".and.popc" : "");
    f.name = f.opcode + (na ? " -a" : "") + (nb ? " -b" : "") + (no_c ? " scale-d 0" : "");
    forms.push_back(f);
  };
  for (const Sum d : {Sum::f32, Sum::f16}) {
    wgmma(d, E::f16, E::f16);
    wgmma(d, E::f16, E::f16, false, true, false, false);
    wgmma(d, E::f16, E::f16, false, false, true, true);
  }
  wgmma(Sum::f32, E::bf16, E::bf16);
  wgmma(Sum::f32, E::bf16, E::bf16, false, true, true, false);
  wgmma(Sum::f32, E::tf32, E::tf32);
  wgmma(Sum::f32, E::tf32, E::tf32, false, false, true, true);
  for (const Sum d : {Sum::f32, Sum::f16})
    for (const E a : {E::e4m3, E::e5m2})
      for (const E b : {E::e4m3, E::e5m2}) wgmma(d, a, b);
  wgmma(Sum::f32, E::e4m3, E::e4m3, false, true, false, false);
  wgmma(Sum::f32, E::e4m3, E::e4m3, false, false, false, true);
  wgmma(Sum::f16, E::e4m3, E::e4m3, false, false, false, true);
  for (const bool sat : {false, true})
    for (const E a : {E::s8, E::u8})
      for (const E b : {E::s8, E::u8}) wgmma(Sum::s32, a, b, sat);
  wgmma(Sum::s32, E::b1, E::b1);
  return forms;
}

// --- inputs -------------------------------------------------------------------------------------
struct Random {  // splitmix64
  std::uint64_t state;
  std::uint64_t next() {
    std::uint64_t z = (state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  int range(int low, int high) {  // both included
    return low + static_cast<int>(next() % static_cast<std::uint64_t>(high - low + 1));
  }
  bool one_in(int n) { return next() % static_cast<std::uint64_t>(n) == 0; }
};

struct FloatShape {
  int exponent_bits, mantissa_bits;
  bool has_infinity;
  int low_bits;  // storage bits below the mantissa that hardware ignores (tf32)
};
inline FloatShape shape_of(Element e) {
  switch (e) {
    case Element::f16:
      return {5, 10, true, 0};
    case Element::bf16:
      return {8, 7, true, 0};
    case Element::tf32:
      return {8, 10, true, 13};
    case Element::e4m3:
      return {4, 3, false, 0};
    case Element::e5m2:
      return {5, 2, true, 0};
    default:
      return {11, 52, true, 0};
  }
}
inline FloatShape shape_of(Sum s) {
  return s == Sum::f16   ? FloatShape{5, 10, true, 0}
         : s == Sum::f32 ? FloatShape{8, 23, true, 0}
                         : FloatShape{11, 52, true, 0};
}

// Bits of ±1.mantissa 2^exponent, made subnormal or clamped to the largest number as needed.
inline std::uint64_t make_float(const FloatShape& s, bool negative, int exponent,
                                std::uint64_t mantissa) {
  const int bias = (1 << (s.exponent_bits - 1)) - 1;
  const int largest = (1 << s.exponent_bits) - (s.has_infinity ? 2 : 1);
  const std::uint64_t one = std::uint64_t{1} << s.mantissa_bits;
  mantissa &= one - 1;
  int field = exponent + bias;
  if (field > largest) field = largest;
  if (!s.has_infinity && field == largest && mantissa == one - 1) mantissa = 0;  // that is NaN
  std::uint64_t bits;
  if (field >= 1) {
    bits = static_cast<std::uint64_t>(field) << s.mantissa_bits | mantissa;
  } else {
    const int shift = 1 - field;
    bits = shift > s.mantissa_bits + 1 ? 0 : (one | mantissa) >> shift;
  }
  bits |= static_cast<std::uint64_t>(negative) << (s.exponent_bits + s.mantissa_bits);
  return bits << s.low_bits;
}

struct Inputs {  // an element each, m x k, n x k, m x n
  std::vector<std::uint64_t> a, b, c;
};

inline std::uint64_t hash_of(const std::string& text) {
  std::uint64_t h = 1469598103934665603u;
  for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return h;
}

inline constexpr int input_classes = 17;

inline Inputs integer_inputs(const Form& f, int test_case, Random& random) {
  Inputs in;
  const int kind = test_case % 4;  // raw, extreme, small, raw with C near the limits
  const auto element = [&](Element e) -> std::uint64_t {
    const std::uint64_t mask = (std::uint64_t{1} << bits_of(e)) - 1;
    const bool is_signed = e == Element::s8 || e == Element::s4;
    if (kind == 1) {
      const std::uint64_t low = is_signed ? (mask + 1) / 2 : mask;
      return random.one_in(3) ? (is_signed ? mask / 2 : 0) : low;
    }
    return kind == 2 ? static_cast<std::uint64_t>(random.range(is_signed ? -2 : 0, 2)) & mask
                     : random.next() & mask;
  };
  for (int x = 0; x < f.m * f.k; ++x) in.a.push_back(element(f.a));
  for (int x = 0; x < f.n * f.k; ++x) in.b.push_back(element(f.b));
  for (int x = 0; x < f.m * f.n; ++x) {
    std::uint64_t c = random.next() & 0xffffffff;
    if (kind == 2) c = static_cast<std::uint32_t>(random.range(-1000, 1000));
    if (kind == 1 || kind == 3)
      c = ((random.one_in(2) ? 0x7fffffffu : 0x80000000u) ^ (c & 0x3ffff)) & 0xffffffff;
    in.c.push_back(c);
  }
  return in;
}

// A small integer in the float format.
inline std::uint64_t integer_float(const FloatShape& s, int value) {
  if (value == 0) return 0;
  const std::uint64_t magnitude = static_cast<std::uint64_t>(value < 0 ? -value : value);
  int exponent = 0;
  while ((magnitude >> exponent) > 1) ++exponent;
  const std::uint64_t mantissa = (magnitude << s.mantissa_bits) >> exponent;
  return make_float(s, value < 0, exponent, mantissa);
}

inline Inputs float_inputs(const Form& f, int test_case, Random& random) {
  const FloatShape sa = shape_of(f.a), sb = shape_of(f.b), sc = shape_of(f.sum);
  const int kind = test_case % input_classes;
  const auto lowest = [](const FloatShape& s) { return 2 - (1 << (s.exponent_bits - 1)); };
  const auto highest = [](const FloatShape& s) { return (1 << (s.exponent_bits - 1)) - 1; };
  const auto any = [&](const FloatShape& s, int low, int high) {
    const bool negative = random.one_in(2);
    const std::uint64_t mantissa = random.next();
    const int e = random.range(low, high);
    return make_float(s, negative, e, mantissa) |
           (random.next() & ((std::uint64_t{1} << s.low_bits) - 1));
  };
  const auto raw = [&](const FloatShape& s) {
    const int bits = 1 + s.exponent_bits + s.mantissa_bits + s.low_bits;
    return bits == 64 ? random.next() : random.next() & ((std::uint64_t{1} << bits) - 1);
  };
  const auto power = [&](const FloatShape& s, int low, int high) {
    return make_float(s, random.one_in(2), random.range(low, high), 0);
  };
  const auto infinity = [&](const FloatShape& s) {
    const std::uint64_t field = (std::uint64_t{1} << s.exponent_bits) - 1;
    const std::uint64_t bits =
        field << s.mantissa_bits | (s.has_infinity ? 0 : (std::uint64_t{1} << s.mantissa_bits) - 1);
    return (bits | static_cast<std::uint64_t>(random.one_in(2))
                       << (s.exponent_bits + s.mantissa_bits))
           << s.low_bits;
  };
  const auto special = [&](const FloatShape& s, int odds) {
    if (!random.one_in(odds)) return any(s, -3, 3);
    switch (random.range(0, 3)) {
      case 0:
        return infinity(s);
      case 1:
        return infinity(s) | std::uint64_t{1} << s.low_bits;  // NaN
      case 2:
        return make_float(s, random.one_in(2), -10000, 0);  // zero
      default:
        return make_float(s, random.one_in(2), lowest(s) - s.mantissa_bits, 0);
    }
  };
  const auto element = [&](const FloatShape& s, bool is_a, int row, int at) -> std::uint64_t {
    switch (kind) {
      case 0:
        return any(s, -3, 3);
      case 1:
        return raw(s);
      case 2:
        return any(s, lowest(s) - s.mantissa_bits, highest(s));
      case 3:
        return any(s, -8, 8);
      case 4:
        return any(s, -6, 6);
      case 5:
        return is_a && !random.one_in(5) ? 0 : any(s, -14, 14);
      case 6:
        return power(s, -12, 12);
      case 7:
        return is_a ? any(s, lowest(s) - s.mantissa_bits, lowest(s) + 2) : any(s, -4, 4);
      case 8:
        return is_a ? any(s, highest(s) - 3, highest(s)) : any(s, -3, 4);
      case 9:
        return special(s, is_a ? 24 : 64);
      case 10:
        return integer_float(s, random.range(-8, 8));
      case 11:
        return is_a && at != (row + test_case / input_classes) % f.k ? 0 : any(s, -6, 6);
      case 12:
        return any(s, -6, 6);
      case 13:
        return is_a && random.range(0, f.k) > 3 ? 0 : any(s, -9, 9);
      case 14:
        return any(s, -6, 2);
      default:
        return random.one_in(3) ? make_float(s, random.one_in(2), -10000, 0)
                                : make_float(s, random.one_in(2), random.one_in(4) ? -12 : 0, 0);
    }
  };
  const auto addend = [&]() -> std::uint64_t {
    switch (kind) {
      case 0:
        return any(sc, -3, 3);
      case 1:
        return raw(sc);
      case 2:
        return any(sc, -40, 40);
      case 3:
        return any(sc, -20, 20);
      case 4:
        return any(sc, -30, 6);
      case 5:
        return any(sc, -28, 28);
      case 6:
        return random.one_in(4) ? 0 : power(sc, -26, 26);
      case 7:
        return any(sc, lowest(sc) - sc.mantissa_bits, lowest(sc) + 3);
      case 8:
        return any(sc, highest(sc) - 3, highest(sc));
      case 9:
        return special(sc, 16);
      case 10:
        return integer_float(sc, random.range(-100, 100));
      case 11:
        return any(sc, -30, 30);
      case 12:
        return any(sc, 10, 34);
      case 13:
        return 0;
      case 14:
        return any(sc, 0, 12);
      default:
        return make_float(sc, random.one_in(2), -10000, 0);
    }
  };
  Inputs in;
  for (int row = 0; row < f.m; ++row)
    for (int at = 0; at < f.k; ++at) in.a.push_back(element(sa, true, row, at));
  for (int row = 0; row < f.n; ++row)
    for (int at = 0; at < f.k; ++at) in.b.push_back(element(sb, false, row, at));
  for (int x = 0; x < f.m * f.n; ++x) in.c.push_back(addend());
  if (kind == 4) {  // products that cancel in pairs at a random distance
    const std::uint64_t sign = std::uint64_t{1}
                               << (sa.exponent_bits + sa.mantissa_bits + sa.low_bits);
    int distance = 1;
    while (distance * 2 < f.k && random.one_in(2)) distance *= 2;
    for (int at = 0; at < f.k; ++at) {
      if ((at & distance) == 0 || random.one_in(4)) continue;
      const int other = at ^ distance;
      for (int row = 0; row < f.m; ++row)
        in.a[static_cast<std::size_t>(row * f.k + at)] =
            in.a[static_cast<std::size_t>(row * f.k + other)] ^ sign;
      for (int row = 0; row < f.n; ++row)
        in.b[static_cast<std::size_t>(row * f.k + at)] =
            in.b[static_cast<std::size_t>(row * f.k + other)];
    }
  }
  return in;
}

inline Inputs make_inputs(const Form& f, int test_case) {
  Random random{hash_of(f.name) + static_cast<std::uint64_t>(test_case) * 0x632be59bd9b4e019u};
  const bool is_integer = f.sum == Sum::s32;
  return is_integer ? integer_inputs(f, test_case, random) : float_inputs(f, test_case, random);
}

// Rows of elements as they lie in memory: packed, the first in the lowest bits.
inline std::vector<std::uint32_t> pack(const std::vector<std::uint64_t>& elements, int bits) {
  std::vector<std::uint32_t> words((elements.size() * static_cast<std::size_t>(bits) + 31) / 32);
  for (std::size_t x = 0; x < elements.size(); ++x) {
    const std::size_t at = x * static_cast<std::size_t>(bits);
    words[at / 32] |= static_cast<std::uint32_t>(elements[x] << (at % 32));
    if (bits == 64) words[at / 32 + 1] |= static_cast<std::uint32_t>(elements[x] >> 32);
  }
  return words;
}

// --- results ------------------------------------------------------------------------------------
inline std::size_t result_words(const Form& f) {
  return static_cast<std::size_t>(f.m * f.n * bits_of(f.sum) / 32);
}
// The digest of a case's D: FNV-1a over its words.
inline std::uint32_t digest(const std::uint32_t* words, std::size_t count) {
  std::uint32_t h = 2166136261u;
  for (std::size_t x = 0; x < count; ++x) h = (h ^ words[x]) * 16777619u, h ^= h >> 15;
  return h;
}

// --- where the 32-bit words of packed rows lie in registers
// ------------------------------------------ (PTX ISA, matrix fragments): of operand A or B, `unit`
// words (2 for f64, else 1) at a time.
struct RowWord {
  int row, word;
};
inline RowWord a_place(int rows, int unit, int lane, int index) {
  const int reg = index / unit, tall = rows >= 16 ? 2 : 1;
  const int warp = lane / 32, l = lane % 32;
  return {16 * warp + l / 4 + 8 * (reg % tall), unit * (l % 4 + 4 * (reg / tall)) + index % unit};
}
inline RowWord b_place(int unit, int lane, int index) {
  return {lane / 4, unit * (lane % 4 + 4 * (index / unit)) + index % unit};
}
// C and D, n = 8: words of rows of n elements.
inline RowWord c_place(Sum sum, int lane, int index) {
  const int warp = lane / 32, l = lane % 32;
  if (sum == Sum::f16) return {16 * warp + l / 4 + 8 * index, l % 4};
  if (sum == Sum::f64) return {l / 4 + 8 * (index / 4), 4 * (l % 4) + index % 4};
  return {16 * warp + l / 4 + 8 * (index / 2), 2 * (l % 4) + index % 2};
}

}  // namespace gemmery::tests::recording
