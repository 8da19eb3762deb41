// SPDX-License-Identifier: Apache-2.0
// Ordinary instructions in a kernel: each row has PTX, the widths of its registers, and the
// expected result in plain C++. Random values; all lanes or every second one.
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <gemmery/error.hpp>

#include "tests/emulator/instruction/ptx_runner.hpp"
#include "tests/support/random_seed.hpp"

namespace gemmery::emulator {
namespace {

using Word = std::uint64_t;
using Lanes = std::vector<Word>;

// The registers d, a, b, c and e of a row, in bits; 1 is a predicate, 0 means unused.
struct Widths {
  int d = 32, a = 32, b = 32, c = 32, e = 0;
};

std::string register_of(int bits) { return bits == 1 ? ".pred" : ".b" + std::to_string(bits); }

std::string load_register(const char* name, int bits, int index) {
  const std::string from = "[in+" + std::to_string(8 * index) + "];\n";
  if (bits == 64) return std::string("ld.global.b64 ") + name + ", " + from;
  const std::string word = "ld.global.b64 word, " + from;
  if (bits == 1) return word + "setp.ne.b64 " + name + ", word, 0;\n";
  return word + "cvt.u" + std::to_string(bits) + ".u64 " + name + ", word;\n";
}
std::string store_register(const char* name, int bits, int index) {
  const std::string to = "st.global.b64 [out+" + std::to_string(8 * index) + "], word;\n";
  if (bits == 64) return std::string("mov.b64 word, ") + name + ";\n" + to;
  if (bits == 1) return std::string("selp.b64 word, 1, 0, ") + name + ";\n" + to;
  return "cvt.u64.u" + std::to_string(bits) + " word, " + name + ";\n" + to;
}

// A kernel whose lanes load a, b, c and the old d and e, run `body`, and store d and e.
std::string kernel_of(const std::string& body, Widths widths) {
  std::string text =
      ".version 9.0\n.target sm_90a\n.address_size 64\n"
      ".visible .entry run(.param .u64 p0, .param .u64 p1) {\n"
      ".reg .b64 in, out, word, at;\n.reg .b32 lane;\n.reg .pred odd;\n";
  const std::array<std::pair<const char*, int>, 5> registers = {
      {{"d", widths.d}, {"a", widths.a}, {"b", widths.b}, {"c", widths.c}, {"e", widths.e}}};
  for (const auto& [name, bits] : registers)
    if (bits != 0) text += ".reg " + register_of(bits) + " " + name + ";\n";
  text +=
      "ld.param.u64 in, [p0];\nld.param.u64 out, [p1];\nmov.u32 lane, %tid.x;\n"
      "mul.wide.u32 at, lane, 40;\nadd.s64 in, in, at;\n"
      "mul.wide.u32 at, lane, 16;\nadd.s64 out, out, at;\n"
      "and.b32 lane, lane, 1;\nsetp.ne.b32 odd, lane, 0;\n";
  for (int index = 0; index < 5; ++index) {
    const auto& [name, bits] = registers[static_cast<std::size_t>(index)];
    if (bits != 0) text += load_register(name, bits, index);
  }
  text += body + "\n" + store_register("d", widths.d, 0);
  if (widths.e != 0) text += store_register("e", widths.e, 1);
  return text + "ret;\n}\n";
}

// Runs the body: five input words and two result words per lane.
Lanes run(const std::string& body, Widths widths, const Lanes& in) {
  PtxRunner runner(kernel_of(body, widths));
  runner.request.block = {32, 1, 1};
  const auto from = runner.put(in);
  const auto to = runner.put(Lanes(64));
  const auto fault = runner.launch({from, to});
  EXPECT_FALSE(fault) << fault->report();
  return runner.get<Word>(to, 64);
}

// Special patterns of integers and of floats of every width.
Word interesting(std::mt19937_64& random) {
  static constexpr std::array<Word, 24> edges = {0,
                                                 1,
                                                 2,
                                                 0x7f,
                                                 0x80,
                                                 0xff,
                                                 0x3c00,
                                                 0x7bff,
                                                 0x7c00,
                                                 0x7fff,
                                                 0x8000,
                                                 0xffff,
                                                 0x3f800000,
                                                 0x7f800000,
                                                 0x7fffffff,
                                                 0x80000000,
                                                 0xffffffff,
                                                 0xff800000,
                                                 0x80000001,
                                                 0x7fc00000,
                                                 0x3ff0000000000000,
                                                 0x7ff0000000000000,
                                                 0x8000000000000000,
                                                 ~Word{0}};
  switch (random() % 4) {
    case 0:
      return edges[random() % edges.size()];
    case 1:
      return random() >> (random() % 64);
    case 2:
      return 0x3f800000 + random() % 0x1000000;
    default:
      return random();
  }
}

struct Row {
  std::string body;
  Widths widths;
  Word (*expected)(Word a, Word b, Word c);
};

Word masked(Word value, int bits) { return bits == 64 ? value : value & ((Word{1} << bits) - 1); }

void check(const Row& row, std::mt19937_64& random) {
  Lanes in(160);
  for (Word& word : in) word = interesting(random);
  for (const bool is_guarded : {false, true}) {
    const Lanes out = run((is_guarded ? "@odd " : "") + row.body, row.widths, in);
    for (std::size_t lane = 0; lane < 32; ++lane) {
      const auto word = [&](std::size_t index, int bits) {
        return bits == 1 ? Word{in[5 * lane + index] != 0} : masked(in[5 * lane + index], bits);
      };
      const Word a = word(1, row.widths.a), b = word(2, row.widths.b), c = word(3, row.widths.c);
      const bool is_active = !is_guarded || lane % 2 == 1;
      const Word expected =
          is_active ? masked(row.expected(a, b, c), row.widths.d) : word(0, row.widths.d);
      ASSERT_EQ(out[2 * lane], expected) << row.body << std::hex << " of " << a << ", " << b << ", "
                                         << c << " in lane " << std::dec << lane;
    }
  }
}

// --- what C++ says -------------------------------------------------------------------------------

std::int64_t s64(Word a) { return static_cast<std::int64_t>(a); }
std::int32_t s32(Word a) { return static_cast<std::int32_t>(a); }
std::int16_t s16(Word a) { return static_cast<std::int16_t>(a); }
std::uint32_t u32(Word a) { return static_cast<std::uint32_t>(a); }
float f32(Word a) { return std::bit_cast<float>(u32(a)); }
double f64(Word a) { return std::bit_cast<double>(a); }
Word bits(float a) { return a == a ? std::bit_cast<std::uint32_t>(a) : 0x7fffffff; }
Word bits(double a) { return std::bit_cast<Word>(a); }
template <class T>
Word word(T a) {
  return static_cast<Word>(a);
}

constexpr Widths all_16{16, 16, 16, 16}, all_64{64, 64, 64, 64};
constexpr Widths to_pred{1, 32, 32, 1}, to_pred_64{1, 64, 64, 1};

const std::vector<Row>& rows() {
  static const std::vector<Row> all = {
      // integers
      {"add.u32 d, a, b;", {}, [](Word a, Word b, Word) { return a + b; }},
      {"add.s64 d, a, b;", all_64, [](Word a, Word b, Word) { return a + b; }},
      {"sub.u16 d, a, b;", all_16, [](Word a, Word b, Word) { return a - b; }},
      {"mul.lo.s32 d, a, b;", {}, [](Word a, Word b, Word) { return a * b; }},
      {"mul.lo.s16 d, a, b;", all_16, [](Word a, Word b, Word) { return a * b; }},
      {"mul.lo.s64 d, a, b;", all_64, [](Word a, Word b, Word) { return a * b; }},
      {"mul.hi.u32 d, a, b;", {}, [](Word a, Word b, Word) { return a * b >> 32; }},
      {"mul.wide.s32 d, a, b;", {64, 32, 32, 32},
       [](Word a, Word b, Word) { return word(std::int64_t{s32(a)} * s32(b)); }},
      {"mul.wide.u16 d, a, b;", {32, 16, 16, 16}, [](Word a, Word b, Word) { return a * b; }},
      {"mad.lo.s32 d, a, b, c;", {}, [](Word a, Word b, Word c) { return a * b + c; }},
      {"mad.wide.u32 d, a, b, c;", {64, 32, 32, 64}, [](Word a, Word b, Word c) { return a * b + c; }},
      {"min.s32 d, a, b;", {}, [](Word a, Word b, Word) { return word(std::min(s32(a), s32(b))); }},
      {"max.u64 d, a, b;", all_64, [](Word a, Word b, Word) { return std::max(a, b); }},
      {"abs.s16 d, a;", all_16, [](Word a, Word, Word) { return s16(a) < 0 ? 0 - a : a; }},
      {"neg.s32 d, a;", {}, [](Word a, Word, Word) { return 0 - a; }},
      {"div.s32 d, a, b;", {},
       [](Word a, Word b, Word) { return b == 0 ? ~Word{0} : word(s64(word(s32(a))) / s32(b)); }},
      {"rem.u64 d, a, b;", all_64, [](Word a, Word b, Word) { return b == 0 ? ~Word{0} : a % b; }},
      {"sad.u32 d, a, b, c;", {}, [](Word a, Word b, Word c) { return (a < b ? b - a : a - b) + c; }},
      {"add.s16x2 d, a, b;", {},
       [](Word a, Word b, Word) { return ((a + b) & 0xffff) | (((a >> 16) + (b >> 16)) << 16); }},
      // bits
      {"and.b32 d, a, b;", {}, [](Word a, Word b, Word) { return a & b; }},
      {"or.b16 d, a, b;", all_16, [](Word a, Word b, Word) { return a | b; }},
      {"not.b64 d, a;", all_64, [](Word a, Word, Word) { return ~a; }},
      {"cnot.b32 d, a;", {}, [](Word a, Word, Word) { return Word{a == 0}; }},
      {"lop3.b32 d, a, b, c, 0x96;", {}, [](Word a, Word b, Word c) { return a ^ b ^ c; }},
      {"lop3.b32 d, a, b, c, 0xca;", {}, [](Word a, Word b, Word c) { return (a & b) | (~a & c); }},
      {"shl.b32 d, a, 7;", {}, [](Word a, Word, Word) { return a << 7; }},
      {"shl.b64 d, a, b;", {64, 64, 32, 32}, [](Word a, Word b, Word) { return b > 63 ? 0 : a << b; }},
      {"shr.s32 d, a, b;", {}, [](Word a, Word b, Word) { return word(s32(a) >> (b > 31 ? 31 : b)); }},
      {"shr.s16 d, a, 3;", all_16, [](Word a, Word, Word) { return word(s16(a) >> 3); }},
      {"shf.r.wrap.b32 d, a, b, c;", {}, [](Word a, Word b, Word c) { return (b << 32 | a) >> (c & 31); }},
      {"popc.b64 d, a;", {32, 64, 32, 32}, [](Word a, Word, Word) { return word(std::popcount(a)); }},
      {"clz.b32 d, a;", {}, [](Word a, Word, Word) { return word(std::countl_zero(u32(a))); }},
      {"bfi.b32 d, a, b, 8, 8;", {}, [](Word a, Word b, Word) { return (b & ~Word{0xff00}) | (a & 255) << 8; }},
      {"prmt.b32 d, a, b, 0x5410;", {}, [](Word a, Word b, Word) { return (a & 0xffff) | b << 16; }},
      {"dp4a.u32.u32 d, a, b, c;", {},
       [](Word a, Word b, Word c) {
         for (int at = 0; at < 32; at += 8) c += ((a >> at) & 255) * ((b >> at) & 255);
         return c;
       }},
      // floats
      {"add.f32 d, a, b;", {}, [](Word a, Word b, Word) { return bits(f32(a) + f32(b)); }},
      {"sub.rn.f32 d, a, b;", {}, [](Word a, Word b, Word) { return bits(f32(a) - f32(b)); }},
      {"mul.f32 d, a, b;", {}, [](Word a, Word b, Word) { return bits(f32(a) * f32(b)); }},
      {"fma.rn.f32 d, a, b, c;", {},
       [](Word a, Word b, Word c) { return bits(std::fma(f32(a), f32(b), f32(c))); }},
      {"div.rn.f32 d, a, b;", {}, [](Word a, Word b, Word) { return bits(f32(a) / f32(b)); }},
      {"sqrt.rn.f32 d, a;", {}, [](Word a, Word, Word) { return bits(std::sqrt(f32(a))); }},
      {"max.f32 d, a, b;", {}, [](Word a, Word b, Word) {
         if (f32(a) == f32(b)) return bits(f32(a)) & bits(f32(b));
         // fmax returns NaN for a signalling NaN.
         if (f32(a) != f32(a)) return bits(f32(b));
         if (f32(b) != f32(b)) return bits(f32(a));
         return bits(std::max(f32(a), f32(b)));
       }},
      {"copysign.f64 d, a, b;", all_64,
       [](Word a, Word b, Word) { return bits(std::copysign(f64(b), f64(a))); }},
      {"neg.f16x2 d, a;", {}, [](Word a, Word, Word) {
         const auto negated = [](Word x) { return (x & 0x7fff) > 0x7c00 ? 0x7fff : x ^ 0x8000; };
         return negated(a & 0xffff) | negated(a >> 16) << 16;
       }},
      {"neg.f64 d, a;", all_64, [](Word a, Word, Word) {
         const bool is_nan = f64(a) != f64(a);
         return is_nan ? a | Word{1} << 51 : a ^ Word{1} << 63;
       }},
      {"testp.normal.f64 d, a;", {1, 64, 64, 64},
       [](Word a, Word, Word) { return Word{std::isnormal(f64(a)) || f64(a) == 0}; }},
      // comparisons and choices
      {"setp.lt.s32 d, a, b;", to_pred, [](Word a, Word b, Word) { return Word{s32(a) < s32(b)}; }},
      {"setp.hs.u32 d, a, b;", to_pred, [](Word a, Word b, Word) { return Word{a >= b}; }},
      {"setp.ne.and.b64 d, a, b, !c;", to_pred_64,
       [](Word a, Word b, Word c) { return Word{a != b && c == 0}; }},
      {"setp.ltu.f32 d, a, b;", to_pred, [](Word a, Word b, Word) { return Word{!(f32(a) >= f32(b))}; }},
      {"setp.nan.f64 d, a, b;", to_pred_64,
       [](Word a, Word b, Word) { return Word{std::isunordered(f64(a), f64(b))}; }},
      {"set.eq.u32.u32 d, a, b;", {}, [](Word a, Word b, Word) { return a == b ? ~Word{0} : 0; }},
      {"set.gt.f32.s32 d, a, b;", {}, [](Word a, Word b, Word) { return s32(a) > s32(b) ? Word{0x3f800000} : 0; }},
      {"selp.b16 d, a, b, c;", {16, 16, 16, 1}, [](Word a, Word b, Word c) { return c != 0 ? a : b; }},
      {"selp.f64 d, a, b, c;", {64, 64, 64, 1}, [](Word a, Word b, Word c) { return c != 0 ? a : b; }},
      {"slct.b32.s32 d, a, b, c;", {}, [](Word a, Word b, Word c) { return s32(c) >= 0 ? a : b; }},
      {"xor.pred d, a, b;", {1, 1, 1, 1}, [](Word a, Word b, Word) { return a ^ b; }},
      {"not.pred d, a;", {1, 1, 1, 1}, [](Word a, Word, Word) { return a ^ 1; }},
      // conversions
      {"cvt.s64.s32 d, a;", {64, 32, 32, 32}, [](Word a, Word, Word) { return word(std::int64_t{s32(a)}); }},
      {"cvt.u32.u64 d, a;", {32, 64, 32, 32}, [](Word a, Word, Word) { return a; }},
      {"cvt.s16.s8 d, a;", all_16, [](Word a, Word, Word) { return word(static_cast<std::int8_t>(a)); }},
      {"cvt.s8.s32 d, a;", {32, 32, 32, 32}, [](Word a, Word, Word) { return word(static_cast<std::int8_t>(a)); }},
      {"cvt.sat.u8.s32 d, a;", {16, 32, 32, 32},
       [](Word a, Word, Word) { return s32(a) < 0 ? 0 : std::min<Word>(a, 255); }},
      {"cvt.sat.s32.u64 d, a;", {32, 64, 32, 32},
       [](Word a, Word, Word) { return std::min<Word>(a, 0x7fffffff); }},
      {"cvt.sat.u64.s32 d, a;", {64, 32, 32, 32}, [](Word a, Word, Word) { return s32(a) < 0 ? 0 : a; }},
      {"cvt.rn.f32.s32 d, a;", {}, [](Word a, Word, Word) { return bits(static_cast<float>(s32(a))); }},
      {"cvt.rn.f64.u64 d, a;", all_64, [](Word a, Word, Word) { return bits(static_cast<double>(a)); }},
      {"cvt.rn.f32.u64 d, a;", {32, 64, 32, 32}, [](Word a, Word, Word) { return bits(static_cast<float>(a)); }},
      {"cvt.f32.bf16 d, a;", {32, 16, 32, 32}, [](Word a, Word, Word) { return a << 16; }},
      {"cvt.rzi.s32.f32 d, a;", {},
       [](Word a, Word, Word) {
         const double value = static_cast<double>(f32(a));
         if (value != value) return Word{0};
         return word(static_cast<std::int32_t>(std::clamp(std::trunc(value), -0x1p31, 0x1p31 - 1)));
       }},
      {"cvt.pack.sat.s16.s32 d, a, b;", {},
       [](Word a, Word b, Word) {
         const auto cut = [](Word x) { return word(std::clamp(s32(x), -32768, 32767)) & 0xffff; };
         return cut(a) << 16 | cut(b);
       }},
      // moves
      {"mov.b32 d, a;", {}, [](Word a, Word, Word) { return a; }},
      {"mov.b64 d, {a, b};", {64, 32, 32, 32}, [](Word a, Word b, Word) { return b << 32 | a; }},
      {"mov.b32 d, {a, b};", {32, 16, 16, 16}, [](Word a, Word b, Word) { return b << 16 | a; }},
      {"mov.b64 {_, d}, a;", {32, 64, 32, 32}, [](Word a, Word, Word) { return a >> 32; }},
      {"mov.b64 d, {a, b, c, a};", {64, 16, 16, 16},
       [](Word a, Word b, Word c) { return a | b << 16 | c << 32 | a << 48; }},
      {"mov.pred d, a;", {1, 1, 32, 32}, [](Word a, Word, Word) { return a; }},
  };
  return all;
}

TEST(Arithmetic, every_row_gives_what_it_says_in_active_lanes_and_leaves_the_others) {
  std::mt19937_64 random(tests::random_seed());
  for (const Row& row : rows()) check(row, random);
}

// --- by several results, or by what is unwritten -------------------------------------------------

TEST(Arithmetic, carries_run_through_words) {
  std::mt19937_64 random(tests::random_seed());
  Lanes in(160);
  for (Word& word : in) word = interesting(random);
  const Lanes sums = run("add.cc.u32 d, a, b;\naddc.u32 e, c, c;", {.e = 32}, in);
  const Lanes differences = run("sub.cc.u32 d, a, b;\nsubc.u32 e, c, c;", {.e = 32}, in);
  const Lanes products = run("mad.lo.cc.u32 d, a, b, c;\nmadc.hi.u32 e, a, b, 0;", {.e = 32}, in);
  for (std::size_t lane = 0; lane < 32; ++lane) {
    const Word a = u32(in[5 * lane + 1]), b = u32(in[5 * lane + 2]), c = u32(in[5 * lane + 3]);
    EXPECT_EQ(sums[2 * lane + 1], u32(c + c + ((a + b) >> 32)));
    EXPECT_EQ(differences[2 * lane + 1], a < b ? 0xffffffff : 0u);
    EXPECT_EQ(products[2 * lane] | products[2 * lane + 1] << 32, a * b + c);
  }
}

TEST(Arithmetic, a_pair_of_predicates_is_a_comparison_and_its_opposite) {
  std::mt19937_64 random(tests::random_seed());
  Lanes in(160);
  for (Word& word : in) word = random() % 4;
  const Lanes out = run("setp.lt.u32 d|e, a, b;", {.d = 1, .e = 1}, in);
  for (std::size_t lane = 0; lane < 32; ++lane) {
    const bool is_less = in[5 * lane + 1] < in[5 * lane + 2];
    EXPECT_EQ(out[2 * lane], Word{is_less});
    EXPECT_EQ(out[2 * lane + 1], Word{!is_less});
  }
}

TEST(Arithmetic, halves_are_rounded_once) {
  // 0x1.004p-1 * 0x1.ffcp0 + 2^-25 would differ if the product were rounded first.
  Lanes in(160);
  for (std::size_t lane = 0; lane < 32; ++lane) {
    in[5 * lane + 1] = 0x3801;
    in[5 * lane + 2] = 0x3fff;
    in[5 * lane + 3] = 0x0001;
  }
  const double exact = 0x1.004p-1 * 0x1.ffcp0 + 0x1p-24;
  const Lanes fused = run("fma.rn.f16 d, a, b, c;", all_16, in);
  // Above 1 the last bit of f16 weighs 2^-10.
  const double unit = exact < 1 ? 0x1p-11 : 0x1p-10;
  EXPECT_EQ(fused[0], exact < 1 ? 0x3c00 - static_cast<Word>(std::nearbyint((1 - exact) / unit))
                                : 0x3c00 + static_cast<Word>(std::nearbyint((exact - 1) / unit)));
}

TEST(Arithmetic, what_selp_does_not_choose_may_be_unwritten) {
  // `e` is never loaded here: it is declared under another name.
  const std::string body =
      "{ .reg .b32 unwritten; .reg .pred p; setp.eq.b32 p, a, a; selp.b32 d, b, unwritten, p; "
      "setp.ne.b32 p, a, a; selp.b32 d, unwritten, d, p; @p bra end; end: }";
  Lanes in(160, 5);
  EXPECT_EQ(run(body, {}, in)[0], 5u);
}

TEST(Arithmetic, a_choice_by_an_unwritten_predicate_is_unwritten) {
  PtxRunner runner(kernel_of(
      "{ .reg .pred p, q; selp.b32 d, a, b, q; setp.ne.b32 p, d, 0; @p bra end; end: }", {}));
  runner.request.block = {32, 1, 1};
  const auto fault = runner.launch({runner.put(Lanes(160)), runner.put(Lanes(64))});
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->kind, FaultKind::unwritten_register);
}

TEST(Arithmetic, a_predicate_that_alone_decides_makes_the_result_defined) {
  // The code of compilers for `a && b`, where b is defined only if a is true.
  const std::string body =
      "{ .reg .pred yes, no, unwritten, r; setp.eq.b32 yes, a, a; not.pred no, yes; mov.b32 d, 5; "
      "and.pred r, no, unwritten; @r bra end; and.pred r, unwritten, !yes; @r bra end; "
      "or.pred r, unwritten, yes; @!r bra end; or.pred r, !no, unwritten; @!r bra end; "
      "mov.b32 d, 7; end: }";
  EXPECT_EQ(run(body, {}, Lanes(160, 5))[0], 7u);
  for (const std::string logic :
       {"and.pred r, yes, q;", "or.pred r, q, no;", "xor.pred r, yes, q;"}) {
    PtxRunner runner(
        kernel_of("{ .reg .pred yes, no, q, r; setp.eq.b32 yes, a, a; "
                  "not.pred no, yes; " +
                      logic + " @r bra end; end: }",
                  {}));
    runner.request.block = {32, 1, 1};
    const auto fault = runner.launch({runner.put(Lanes(160)), runner.put(Lanes(64))});
    ASSERT_TRUE(fault) << logic;
    EXPECT_EQ(fault->kind, FaultKind::unwritten_register) << logic;
  }
}

// --- refusals ------------------------------------------------------------------------------------

struct Refusal {
  std::string body;
  std::string reason;
};

TEST(Arithmetic, forms_that_are_not_known_are_refused_by_name) {
  const std::vector<Refusal> refusals = {
      {"add.sideways.u32 d, a, b;", ".sideways"},   {"add.f32x2 d, a, b;", "f32x2"},
      {"add.sat.u32 d, a, b;", ".sat is for .s32"}, {"mul.u32 d, a, b;", ".lo, .hi, .wide"},
      {"fma.f32 d, a, b, c;", "rounding mode"},     {"setp.lt.b32 odd, a, b;", "only equal"},
      {"cvt.f16.f32 d, a;", "rounding mode"},       {"cvt.rs.bf16x2.f32 d, a, b, c;", ".rn or .rz"},
      {"cvt.rn.e4m3x2.f32 d, a, b;", ".satfinite"}, {"sin.f32 d, a;", ".approx"},
      {"lop3.b32 d, a, b, c, a;", "immediate"},     {"add.u32 d, a;", "3 operands"},
  };
  for (const Refusal& refusal : refusals) {
    try {
      PtxRunner runner(kernel_of(refusal.body, {}));
      ADD_FAILURE() << refusal.body << " was taken";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(refusal.reason), std::string::npos)
          << refusal.body << ": " << error.what();
    }
  }
}

}  // namespace
}  // namespace gemmery::emulator
