// SPDX-License-Identifier: Apache-2.0
// The list of forms. Rows of one kind are written as loops over types and modifiers.
#include "tests/emulator/recording/forms.hpp"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <string_view>

namespace gemmery::recording {
namespace {

using Strings = std::initializer_list<std::string_view>;

Kind kind_of(std::string_view type) {
  static constexpr std::array<std::pair<std::string_view, Kind>, 19> names{{
      {"b16", Kind::b16},       {"u16", Kind::u16},       {"s16", Kind::s16},
      {"b32", Kind::b32},       {"u32", Kind::u32},       {"s32", Kind::s32},
      {"b64", Kind::b64},       {"u64", Kind::u64},       {"s64", Kind::s64},
      {"f16", Kind::f16},       {"bf16", Kind::bf16},     {"f16x2", Kind::f16x2},
      {"bf16x2", Kind::bf16x2}, {"f32", Kind::f32},       {"f64", Kind::f64},
      {"e4m3x2", Kind::e4m3x2}, {"e5m2x2", Kind::e5m2x2}, {"pred", Kind::pred},
      {"tf32", Kind::b32},
  }};
  for (const auto& [name, kind] : names) {
    if (name == type) return kind;
  }
  return type == "u16x2" || type == "s16x2" ? Kind::b32 : Kind::b32;
}

class List {
 public:
  std::vector<Form> forms;

  // An instruction whose operands follow its result in order: "add.rn.f32" of (f32, f32).
  void plain(const std::string& instruction, Kind result, std::vector<Kind> operands) {
    static constexpr std::array<const char*, 4> names{"a", "b", "c", "x"};
    std::string body = instruction + " d";
    for (std::size_t at = 0; at < operands.size(); ++at) body += std::string(", ") + names[at];
    add(instruction, {result}, std::move(operands), body + ";");
  }
  void add(std::string name, std::vector<Kind> results, std::vector<Kind> operands,
           std::string body) {
    forms.push_back({.name = std::move(name),
                     .results = std::move(results),
                     .operands = std::move(operands),
                     .body = std::move(body)});
  }
  // Marks the last form as approximate.
  void within(double relative, double absolute = 0) {
    forms.back().relative_error = relative;
    forms.back().absolute_error = absolute;
  }
};

std::string join(Strings words) {
  std::string text;
  for (const std::string_view word : words) {
    if (word.empty()) continue;
    if (!text.empty()) text += '.';
    text += word;
  }
  return text;
}

constexpr std::array<std::string_view, 6> int_types{"u16", "s16", "u32", "s32", "u64", "s64"};
constexpr std::array<std::string_view, 4> wide_types{"u32", "s32", "u64", "s64"};

void add_integers(List& list) {
  for (const std::string_view type : int_types) {
    const Kind kind = kind_of(type);
    for (const std::string_view op : Strings{"add", "sub", "mul.lo", "mul.hi", "min", "max"})
      list.plain(join({op, type}), kind, {kind, kind});
    list.plain(join({"mad.lo", type}), kind, {kind, kind, kind});
    list.plain(join({"mad.hi", type}), kind, {kind, kind, kind});
    // Division by zero has no defined result.
    const std::string one = "or.b" + std::string(type.substr(1)) + " b, b, 1;\n";
    for (const std::string_view op : Strings{"div", "rem"})
      list.add(join({op, type}), {kind}, {kind, kind}, one + join({op, type}) + " d, a, b;");
    for (const std::string_view comparison : Strings{"eq", "ne", "lt", "le", "gt", "ge"}) {
      const std::string name = join({"setp", comparison, type});
      list.add(name, {Kind::pred}, {kind, kind}, name + " d, a, b;");
    }
    list.plain(join({"shr", type}), kind, {kind, Kind::shift});
    list.plain(join({"sad", type}), kind, {kind, kind, kind});
  }
  for (const std::string_view type : Strings{"s16", "s32", "s64"}) {
    list.plain(join({"abs", type}), kind_of(type), {kind_of(type)});
    list.plain(join({"neg", type}), kind_of(type), {kind_of(type)});
  }
  for (const std::string_view type : Strings{"u16", "s16", "u32", "s32"}) {
    const Kind wide = type == "u16"   ? Kind::u32
                      : type == "s16" ? Kind::s32
                      : type == "u32" ? Kind::u64
                                      : Kind::s64;
    list.plain(join({"mul.wide", type}), wide, {kind_of(type), kind_of(type)});
    list.plain(join({"mad.wide", type}), wide, {kind_of(type), kind_of(type), wide});
  }
  for (const std::string_view type : Strings{"u32", "s32"}) {
    for (const std::string_view half : Strings{"lo", "hi"}) {
      list.plain(join({"mul24", half, type}), kind_of(type), {kind_of(type), kind_of(type)});
      list.plain(join({"mad24", half, type}), kind_of(type),
                 {kind_of(type), kind_of(type), kind_of(type)});
    }
  }
  list.plain("add.sat.s32", Kind::s32, {Kind::s32, Kind::s32});
  list.plain("sub.sat.s32", Kind::s32, {Kind::s32, Kind::s32});
  list.plain("mad.hi.sat.s32", Kind::s32, {Kind::s32, Kind::s32, Kind::s32});
  list.plain("add.s16x2", Kind::b32, {Kind::b32, Kind::b32});
  list.plain("add.u16x2", Kind::b32, {Kind::b32, Kind::b32});
  for (const std::string_view op : Strings{"min", "max"}) {
    for (const std::string_view type : Strings{"u16x2", "s16x2"})
      list.plain(join({op, type}), Kind::b32, {Kind::b32, Kind::b32});
    list.plain(join({op, "relu.s16x2"}), Kind::b32, {Kind::b32, Kind::b32});
    list.plain(join({op, "relu.s32"}), Kind::s32, {Kind::s32, Kind::s32});
  }
  list.add("add.cc.u32 addc.u32", {Kind::u32, Kind::u32},
           {Kind::u32, Kind::u32, Kind::u32, Kind::u32}, "add.cc.u32 d, a, b;\naddc.u32 e, c, x;");
  list.add("sub.cc.u32 subc.u32", {Kind::u32, Kind::u32},
           {Kind::u32, Kind::u32, Kind::u32, Kind::u32}, "sub.cc.u32 d, a, b;\nsubc.u32 e, c, x;");
  list.add("add.cc.u64 addc.u64", {Kind::u64, Kind::u64},
           {Kind::u64, Kind::u64, Kind::u64, Kind::u64}, "add.cc.u64 d, a, b;\naddc.u64 e, c, x;");
  list.add("mad.lo.cc.u32 madc.hi.u32", {Kind::u32, Kind::u32},
           {Kind::u32, Kind::u32, Kind::u32, Kind::u32},
           "mad.lo.cc.u32 d, a, b, c;\nmadc.hi.u32 e, a, b, x;");
}

void add_bits(List& list) {
  for (const std::string_view type : Strings{"b16", "b32", "b64"}) {
    const Kind kind = kind_of(type);
    for (const std::string_view op : Strings{"and", "or", "xor"})
      list.plain(join({op, type}), kind, {kind, kind});
    list.plain(join({"not", type}), kind, {kind});
    list.plain(join({"cnot", type}), kind, {kind});
    list.plain(join({"shl", type}), kind, {kind, Kind::shift});
    list.plain(join({"selp", type}), kind, {kind, kind, Kind::pred});
  }
  for (const std::string_view op : Strings{"and", "or", "xor"})
    list.plain(join({op, "pred"}), Kind::pred, {Kind::pred, Kind::pred});
  list.plain("not.pred", Kind::pred, {Kind::pred});
  for (const std::string_view type : Strings{"b32", "b64"}) {
    list.plain(join({"popc", type}), Kind::u32, {kind_of(type)});
    list.plain(join({"clz", type}), Kind::u32, {kind_of(type)});
    list.plain(join({"brev", type}), kind_of(type), {kind_of(type)});
    list.plain(join({"bfi", type}), kind_of(type),
               {kind_of(type), kind_of(type), Kind::shift, Kind::shift});
  }
  for (const std::string_view type : wide_types) {
    list.plain(join({"bfind", type}), Kind::u32, {kind_of(type)});
    list.plain(join({"bfind.shiftamt", type}), Kind::u32, {kind_of(type)});
    list.plain(join({"bfe", type}), kind_of(type), {kind_of(type), Kind::shift, Kind::shift});
  }
  list.plain("fns.b32", Kind::b32, {Kind::b32, Kind::shift, Kind::shift});
  list.forms.back().body = "and.b32 b, b, 31;\nfns.b32 d, a, b, c;";
  for (const std::string_view way : Strings{"l", "r"}) {
    for (const std::string_view mode : Strings{"wrap", "clamp"})
      list.plain(join({"shf", way, mode, "b32"}), Kind::b32, {Kind::b32, Kind::b32, Kind::shift});
  }
  list.plain("prmt.b32", Kind::b32, {Kind::b32, Kind::b32, Kind::selector});
  for (const std::string_view mode : Strings{"f4e", "b4e", "rc8", "ecl", "ecr", "rc16"})
    list.plain(join({"prmt.b32", mode}), Kind::b32, {Kind::b32, Kind::b32, Kind::selector});
  for (const int table : {0x00, 0x3c, 0x80, 0x96, 0xca, 0xe8, 0xea, 0xff}) {
    const std::string number = std::to_string(table);
    list.add("lop3.b32 " + number, {Kind::b32}, {Kind::b32, Kind::b32, Kind::b32},
             "lop3.b32 d, a, b, c, " + number + ";");
  }
  for (const std::string_view type : Strings{"u32", "s32"}) {
    for (const std::string_view mode : Strings{"wrap", "clamp"}) {
      list.plain(join({"szext", mode, type}), kind_of(type), {kind_of(type), Kind::shift});
    }
  }
  list.plain("bmsk.clamp.b32", Kind::b32, {Kind::shift, Kind::shift});
  list.plain("bmsk.wrap.b32", Kind::b32, {Kind::shift, Kind::shift});
  for (const std::string_view a : Strings{"u32", "s32"}) {
    for (const std::string_view b : Strings{"u32", "s32"}) {
      const Kind result = a == "u32" && b == "u32" ? Kind::u32 : Kind::s32;
      list.plain(join({"dp4a", a, b}), result, {Kind::b32, Kind::b32, Kind::b32});
      list.plain(join({"dp2a.lo", a, b}), result, {Kind::b32, Kind::b32, Kind::b32});
      list.plain(join({"dp2a.hi", a, b}), result, {Kind::b32, Kind::b32, Kind::b32});
    }
  }
  list.plain("slct.b32.s32", Kind::b32, {Kind::b32, Kind::b32, Kind::s32});
  list.plain("slct.ftz.u64.f32", Kind::u64, {Kind::u64, Kind::u64, Kind::f32});
  list.add("mov.b32 {b16,b16}", {Kind::b32}, {Kind::b16, Kind::b16}, "mov.b32 d, {a, b};");
  list.add("mov {b16,b16} b32", {Kind::b16, Kind::b16}, {Kind::b32}, "mov.b32 {d, e}, a;");
  list.add("mov.b64 {b32,b32}", {Kind::b64}, {Kind::b32, Kind::b32}, "mov.b64 d, {a, b};");
  list.add("mov {b32,b32} b64", {Kind::b32, Kind::b32}, {Kind::b64}, "mov.b64 {d, e}, a;");
  list.add("mov.b64 {b16 x 4}", {Kind::b64}, {Kind::b16, Kind::b16, Kind::b16, Kind::b16},
           "mov.b64 d, {a, b, c, x};");
}

void add_float_arithmetic(List& list) {
  constexpr std::array<std::string_view, 4> roundings{"rn", "rz", "rm", "rp"};
  for (const std::string_view rounding : roundings) {
    for (const std::string_view ftz : Strings{"", "ftz"}) {
      for (const std::string_view sat : Strings{"", "sat"}) {
        for (const std::string_view op : Strings{"add", "sub", "mul"})
          list.plain(join({op, rounding, ftz, sat, "f32"}), Kind::f32, {Kind::f32, Kind::f32});
        list.plain(join({"fma", rounding, ftz, sat, "f32"}), Kind::f32,
                   {Kind::f32, Kind::f32, Kind::f32});
      }
      list.plain(join({"div", rounding, ftz, "f32"}), Kind::f32, {Kind::f32, Kind::f32});
      list.plain(join({"sqrt", rounding, ftz, "f32"}), Kind::f32, {Kind::f32});
      list.plain(join({"rcp", rounding, ftz, "f32"}), Kind::f32, {Kind::f32});
    }
    for (const std::string_view op : Strings{"add", "sub", "mul", "div"})
      list.plain(join({op, rounding, "f64"}), Kind::f64, {Kind::f64, Kind::f64});
    list.plain(join({"fma", rounding, "f64"}), Kind::f64, {Kind::f64, Kind::f64, Kind::f64});
    list.plain(join({"sqrt", rounding, "f64"}), Kind::f64, {Kind::f64});
    list.plain(join({"rcp", rounding, "f64"}), Kind::f64, {Kind::f64});
  }
  for (const std::string_view op : Strings{"min", "max"}) {
    for (const std::string_view modifiers :
         Strings{"", "ftz", "NaN", "ftz.NaN", "xorsign.abs", "NaN.xorsign.abs"}) {
      list.plain(join({op, modifiers, "f32"}), Kind::f32, {Kind::f32, Kind::f32});
      for (const std::string_view type : Strings{"f16", "f16x2"}) {
        list.plain(join({op, modifiers, type}), kind_of(type), {kind_of(type), kind_of(type)});
      }
      if (modifiers.starts_with("ftz")) continue;
      for (const std::string_view type : Strings{"bf16", "bf16x2"}) {
        list.plain(join({op, modifiers, type}), kind_of(type), {kind_of(type), kind_of(type)});
      }
    }
    list.plain(join({op, "f64"}), Kind::f64, {Kind::f64, Kind::f64});
  }
  for (const std::string_view type : Strings{"f16", "f16x2", "bf16", "bf16x2"}) {
    const Kind kind = kind_of(type);
    const bool is_half = type.starts_with("f16");
    for (const std::string_view modifiers : Strings{"", "ftz", "sat", "ftz.sat"}) {
      if (!is_half && !modifiers.empty()) continue;
      for (const std::string_view op : Strings{"add", "sub", "mul"})
        list.plain(join({op, "rn", modifiers, type}), kind, {kind, kind});
      list.plain(join({"fma.rn", modifiers, type}), kind, {kind, kind, kind});
    }
    list.plain(join({"fma.rn.relu", type}), kind, {kind, kind, kind});
    list.plain(join({"neg", type}), kind, {kind});
    list.plain(join({"abs", type}), kind, {kind});
  }
  for (const std::string_view type : Strings{"f32", "f64"}) {
    list.plain(join({"neg", type}), kind_of(type), {kind_of(type)});
    list.plain(join({"abs", type}), kind_of(type), {kind_of(type)});
    list.plain(join({"copysign", type}), kind_of(type), {kind_of(type), kind_of(type)});
    for (const std::string_view what :
         Strings{"finite", "infinite", "number", "notanumber", "normal", "subnormal"})
      list.plain(join({"testp", what, type}), Kind::pred, {kind_of(type)});
  }
  list.plain("neg.ftz.f32", Kind::f32, {Kind::f32});
  list.plain("abs.ftz.f32", Kind::f32, {Kind::f32});
  for (const std::string_view comparison : Strings{"eq", "ne", "lt", "le", "gt", "ge", "equ", "neu",
                                                   "ltu", "leu", "gtu", "geu", "num", "nan"}) {
    for (const std::string_view type : Strings{"f32", "f64", "f16", "bf16"}) {
      const std::string name = join({"setp", comparison, type});
      list.add(name, {Kind::pred}, {kind_of(type), kind_of(type)}, name + " d, a, b;");
    }
    const std::string flushed = join({"setp", comparison, "ftz.f32"});
    list.add(flushed, {Kind::pred}, {Kind::f32, Kind::f32}, flushed + " d, a, b;");
  }
  for (const std::string_view type : Strings{"f16x2", "bf16x2"}) {
    const std::string name = join({"setp.lt", type});
    list.add(name, {Kind::pred, Kind::pred}, {kind_of(type), kind_of(type)}, name + " d|e, a, b;");
  }
  for (const std::string_view boolean : Strings{"and", "or", "xor"}) {
    const std::string name = join({"setp.lt", boolean, "f32"});
    list.add(name, {Kind::pred, Kind::pred}, {Kind::f32, Kind::f32, Kind::pred},
             name + " d|e, a, b, c;");
  }
  list.plain("set.lt.f32.f32", Kind::f32, {Kind::f32, Kind::f32});
  list.plain("set.ge.u32.s32", Kind::u32, {Kind::s32, Kind::s32});
  list.plain("set.eq.u32.f64", Kind::u32, {Kind::f64, Kind::f64});
}

// Errors of the PTX manual, increased by the input's rounding where the manual gives an absolute
// error over a range.
void add_approximations(List& list) {
  for (const std::string_view ftz : Strings{"", "ftz"}) {
    const auto unary = [&](std::string_view op, double relative, double absolute = 0) {
      list.plain(join({op, "approx", ftz, "f32"}), Kind::f32, {Kind::f32});
      list.within(relative, absolute);
    };
    unary("rcp", 0x1p-22);
    unary("sqrt", 0x1p-21);
    unary("rsqrt", 0x1p-21);
    unary("ex2", 0x1p-21);
    unary("lg2", 0x1p-21, 0x1p-21);
    list.plain(join({"div.approx", ftz, "f32"}), Kind::f32, {Kind::f32, Kind::f32});
    list.within(0x1p-21);
    list.plain(join({"div.full", ftz, "f32"}), Kind::f32, {Kind::f32, Kind::f32});
    list.within(0x1p-21);
  }
  list.plain("tanh.approx.f32", Kind::f32, {Kind::f32});
  list.within(0x1p-10);
  for (const std::string_view type : Strings{"f16", "f16x2", "bf16", "bf16x2"}) {
    list.plain(join({"tanh.approx", type}), kind_of(type), {kind_of(type)});
    list.within(0x1p-6, 0x1p-9);
  }
  list.plain("ex2.approx.f16", Kind::f16, {Kind::f16});
  list.within(0x1p-9);
  list.plain("ex2.approx.ftz.bf16", Kind::bf16, {Kind::bf16});
  list.within(0x1p-6);
  list.plain("rcp.approx.ftz.f64", Kind::f64, {Kind::f64});
  list.within(0x1p-19);
  list.plain("rsqrt.approx.ftz.f64", Kind::f64, {Kind::f64});
  list.within(0x1p-19);
  for (const std::string_view op : Strings{"sin", "cos"}) {
    // Within the range for which the manual gives an error.
    list.add(join({op, "approx.f32"}), {Kind::f32}, {Kind::f32},
             "abs.f32 a, a;\nmin.f32 a, a, 0f40490FDB;\n" + join({op, "approx.f32"}) + " d, a;");
    list.within(0, 0x1p-20);
  }
}

void add_conversions(List& list) {
  constexpr std::array<std::string_view, 4> to_int{"rni", "rzi", "rmi", "rpi"};
  constexpr std::array<std::string_view, 4> directed{"rn", "rz", "rm", "rp"};
  for (const std::string_view from : Strings{"f16", "f32", "f64"}) {
    for (const std::string_view to : int_types) {
      for (const std::string_view rounding : to_int)
        list.plain(join({"cvt", rounding, to, from}), kind_of(to), {kind_of(from)});
    }
    for (const std::string_view rounding : to_int)
      list.plain(join({"cvt", rounding, from, from}), kind_of(from), {kind_of(from)});
  }
  list.plain("cvt.rni.ftz.s32.f32", Kind::s32, {Kind::f32});
  list.plain("cvt.rzi.ftz.sat.f32.f32", Kind::f32, {Kind::f32});
  for (const std::string_view from : int_types) {
    for (const std::string_view to : Strings{"f16", "f32", "f64"}) {
      for (const std::string_view rounding : directed)
        list.plain(join({"cvt", rounding, to, from}), kind_of(to), {kind_of(from)});
    }
    for (const std::string_view to : int_types) {
      list.plain(join({"cvt", to, from}), kind_of(to), {kind_of(from)});
      // Saturation is legal only if a value may not fit.
      const bool always_fits = bits_of(kind_of(to)) > bits_of(kind_of(from)) &&
                               (to.front() == 's' || from.front() == 'u');
      if (to != from && !always_fits)
        list.plain(join({"cvt.sat", to, from}), kind_of(to), {kind_of(from)});
    }
  }
  for (const std::string_view rounding : directed) {
    list.plain(join({"cvt", rounding, "f32.f64"}), Kind::f32, {Kind::f64});
    list.plain(join({"cvt", rounding, "ftz.f32.f64"}), Kind::f32, {Kind::f64});
    list.plain(join({"cvt", rounding, "sat.f32.f64"}), Kind::f32, {Kind::f64});
    list.plain(join({"cvt", rounding, "f16.f32"}), Kind::f16, {Kind::f32});
    list.plain(join({"cvt", rounding, "f16.f64"}), Kind::f16, {Kind::f64});
  }
  list.plain("cvt.f64.f32", Kind::f64, {Kind::f32});
  list.plain("cvt.f32.f16", Kind::f32, {Kind::f16});
  list.plain("cvt.ftz.f32.f16", Kind::f32, {Kind::f16});
  list.plain("cvt.f64.f16", Kind::f64, {Kind::f16});
  list.plain("cvt.f32.bf16", Kind::f32, {Kind::bf16});
  list.plain("cvt.sat.f32.f32", Kind::f32, {Kind::f32});
  list.plain("cvt.sat.f64.f64", Kind::f64, {Kind::f64});
  for (const std::string_view rounding : Strings{"rn", "rz"}) {
    for (const std::string_view relu : Strings{"", "relu"}) {
      if (!relu.empty())
        list.plain(join({"cvt", rounding, relu, "f16.f32"}), Kind::f16, {Kind::f32});
      list.plain(join({"cvt", rounding, relu, "bf16.f32"}), Kind::bf16, {Kind::f32});
      list.plain(join({"cvt", rounding, relu, "f16x2.f32"}), Kind::f16x2, {Kind::f32, Kind::f32});
      list.plain(join({"cvt", rounding, relu, "bf16x2.f32"}), Kind::bf16x2, {Kind::f32, Kind::f32});
    }
  }
  list.plain("cvt.rna.tf32.f32", Kind::b32, {Kind::f32});
  for (const std::string_view type : Strings{"e4m3x2", "e5m2x2"}) {
    for (const std::string_view relu : Strings{"", "relu"}) {
      list.plain(join({"cvt.rn.satfinite", relu, type, "f32"}), kind_of(type),
                 {Kind::f32, Kind::f32});
      list.plain(join({"cvt.rn.satfinite", relu, type, "f16x2"}), kind_of(type), {Kind::f16x2});
      list.plain(join({"cvt.rn", relu, "f16x2", type}), Kind::f16x2, {kind_of(type)});
    }
  }
  for (const std::string_view to : Strings{"u16", "s16"}) {
    list.plain(join({"cvt.pack.sat", to, "s32"}), Kind::b32, {Kind::s32, Kind::s32});
  }
  for (const std::string_view to : Strings{"u8", "s8"}) {
    list.plain(join({"cvt.pack.sat", to, "s32.b32"}), Kind::b32, {Kind::s32, Kind::s32, Kind::b32});
  }
  for (const std::string_view to : Strings{"u8", "s8"}) {
    for (const std::string_view from : wide_types) {
      // Results of eight bits are in wider registers, sign-extended.
      const Kind kind = to == "u8" ? Kind::u32 : Kind::s32;
      list.plain(join({"cvt", to, from}), kind, {kind_of(from)});
      list.plain(join({"cvt.sat", to, from}), kind, {kind_of(from)});
    }
    list.plain(join({"cvt.rzi", to, "f32"}), to == "u8" ? Kind::u32 : Kind::s32, {Kind::f32});
    list.plain(join({"cvt.u32", to}), Kind::u32, {Kind::u32});
    list.plain(join({"cvt.s64", to}), Kind::s64, {Kind::u32});
    list.plain(join({"cvt.rn.f32", to}), Kind::f32, {Kind::u32});
  }
}

void add_warp(List& list) {
  for (const std::string_view mode : Strings{"idx", "up", "down", "bfly"}) {
    for (const std::string_view clamp : Strings{"31", "7199", "0"}) {
      const std::string name = join({"shfl.sync", mode, "b32"});
      list.add(name + " " + std::string(clamp), {Kind::b32, Kind::pred}, {Kind::b32, Kind::shift},
               "and.b32 b, b, 31;\n" + name + " d|e, a, b, " + std::string(clamp) + ", -1;");
    }
  }
  for (const std::string_view mode : Strings{"all", "any", "uni"}) {
    const std::string name = join({"vote.sync", mode, "pred"});
    list.add(name, {Kind::pred}, {Kind::pred}, name + " d, a, -1;");
    list.add(name + " !", {Kind::pred}, {Kind::pred}, name + " d, !a, -1;");
  }
  list.add("vote.sync.ballot.b32", {Kind::b32}, {Kind::pred}, "vote.sync.ballot.b32 d, a, -1;");
  for (const std::string_view type : Strings{"b32", "b64"}) {
    const std::string few = join({"and", type}) + " a, a, 3;\n";
    list.add(join({"match.any.sync", type}), {Kind::b32}, {kind_of(type)},
             few + join({"match.any.sync", type}) + " d, a, -1;");
    list.add(join({"match.all.sync", type}), {Kind::b32, Kind::pred}, {kind_of(type)},
             few + join({"match.all.sync", type}) + " d|e, a, -1;");
  }
  for (const std::string_view op : Strings{"add", "min", "max"}) {
    for (const std::string_view type : Strings{"u32", "s32"}) {
      const std::string name = join({"redux.sync", op, type});
      list.add(name, {kind_of(type)}, {kind_of(type)}, name + " d, a, -1;");
    }
  }
  for (const std::string_view op : Strings{"and", "or", "xor"}) {
    const std::string name = join({"redux.sync", op, "b32"});
    list.add(name, {Kind::b32}, {Kind::b32}, name + " d, a, -1;");
  }
  list.add("activemask.b32", {Kind::b32}, {Kind::b32}, "activemask.b32 d;");
  list.add("elect.sync", {Kind::b32, Kind::pred}, {Kind::b32}, "elect.sync d|e, -1;");
  list.add("mov %laneid", {Kind::u32}, {Kind::b32}, "mov.u32 d, %laneid;");
  list.add("mov %lanemask_lt", {Kind::u32}, {Kind::b32}, "mov.u32 d, %lanemask_lt;");
  list.add("mov %lanemask_ge", {Kind::u32}, {Kind::b32}, "mov.u32 d, %lanemask_ge;");
  list.add("mov %ntid %tid", {Kind::u32, Kind::u32}, {Kind::b32},
           "mov.u32 d, %ntid.x;\nmov.u32 e, %tid.x;");
}

// Each thread has 32 bytes of shared memory at `at` (a 32-bit shared address).
void add_memory(List& list) {
  const std::string put = "st.shared.b64 [at], a;\nst.shared.b64 [at+8], b;\n";
  for (const std::string_view type : Strings{"u8", "s8", "u16", "s16"}) {
    const Kind kind = type.starts_with("u") ? Kind::u32 : Kind::s32;
    list.add(join({"ld.shared", type}), {kind}, {Kind::b64, Kind::b64},
             put + join({"ld.shared", type}) + " d, [at+6];");
    list.add(join({"ld.shared", type}) + " to 64", {kind == Kind::u32 ? Kind::u64 : Kind::s64},
             {Kind::b64, Kind::b64}, put + join({"ld.shared", type}) + " d, [at+6];");
  }
  list.add("ld.shared.v2.b32", {Kind::b32, Kind::b32}, {Kind::b64, Kind::b64},
           put + "ld.shared.v2.b32 {d, e}, [at+8];");
  list.add("ld.shared.v4.b32", {Kind::b32, Kind::b32}, {Kind::b64, Kind::b64},
           put + ".reg .b32 r0, r1;\nld.shared.v4.b32 {r0, d, e, r1}, [at];");
  list.add("st.shared.v4.b16", {Kind::b64}, {Kind::b16, Kind::b16, Kind::b16, Kind::b16},
           "st.shared.v4.b16 [at], {a, b, c, x};\nld.shared.b64 d, [at];");
  list.add("st.shared.u8", {Kind::b32}, {Kind::b64, Kind::b32},
           "st.shared.b64 [at], a;\nst.shared.u8 [at+1], b;\nld.shared.b32 d, [at];");
  list.add("generic ld st", {Kind::b64}, {Kind::b64, Kind::b64},
           put + ".reg .b64 g, g1;\ncvt.u64.u32 g1, at;\ncvta.shared.u64 g, g1;\nld.b64 d, [g+8];");
  list.add("cvta.shared round trip", {Kind::b32}, {Kind::b32},
           ".reg .b64 g, h, l;\n.reg .b32 back;\ncvt.u64.u32 l, at;\ncvta.shared.u64 g, l;\n"
           "cvta.to.shared.u64 h, g;\ncvt.u32.u64 back, h;\nsub.u32 d, back, at;");
  for (const std::string_view space : Strings{"global", "shared", "local"}) {
    list.add(join({"isspacep", space}), {Kind::pred}, {Kind::b32},
             ".reg .b64 g, g1;\ncvt.u64.u32 g1, at;\ncvta.shared.u64 g, g1;\nisspacep." +
                 std::string(space) + " d, g;");
  }
  struct Row {
    std::string_view op, type;
  };
  for (const Row& row : std::initializer_list<Row>{
           {"add", "u32"},  {"add", "s32"}, {"add", "u64"}, {"add", "f32"}, {"add", "f64"},
           {"min", "u32"},  {"min", "s32"}, {"max", "u32"}, {"max", "s32"}, {"min", "u64"},
           {"min", "s64"},  {"max", "u64"}, {"max", "s64"}, {"and", "b32"}, {"or", "b32"},
           {"xor", "b32"},  {"and", "b64"}, {"or", "b64"},  {"xor", "b64"}, {"exch", "b32"},
           {"exch", "b64"}, {"inc", "u32"}, {"dec", "u32"}}) {
    const Kind kind = kind_of(row.type);
    const std::string width = bits_of(kind) == 64 ? "b64" : "b32";
    const std::string name = join({"atom.shared", row.op, row.type});
    const std::string load = "ld.shared." + width + " e, [at];";
    list.add(name, {kind, kind}, {kind, kind},
             "st.shared." + width + " [at], a;\n" + name + " d, [at], b;\n" + load);
  }
  // In global memory, since for shared memory ptxas 13.0 emits code for the pair types that adds
  // only the lower half (observed on an H200).
  for (const std::string_view type : Strings{"f16", "f16x2", "bf16", "bf16x2"}) {
    const Kind kind = kind_of(type);
    const std::string width = bits_of(kind) == 16 ? "b16" : "b32";
    const std::string name = join({"atom.global.add.noftz", type});
    list.add(name, {kind, kind}, {kind, kind},
             "st.global." + width + " [to], a;\n" + name + " d, [to], b;\nld.global." + width +
                 " e, [to];");
  }
  for (const std::string_view op : Strings{"add.f32", "add.f64", "add.u64", "min.s32", "xor.b64"}) {
    const Kind kind = kind_of(op.substr(4));
    const std::string width = bits_of(kind) == 64 ? "b64" : "b32";
    const std::string name = "atom.global." + std::string(op);
    list.add(name, {kind, kind}, {kind, kind},
             "st.global." + width + " [to], a;\n" + name + " d, [to], b;\nld.global." + width +
                 " e, [to];");
    const std::string red = "red.global." + std::string(op);
    list.add(
        red, {kind}, {kind, kind},
        "st.global." + width + " [to], a;\n" + red + " [to], b;\nld.global." + width + " d, [to];");
  }
  for (const std::string_view type : Strings{"b16", "b32", "b64"}) {
    const Kind kind = kind_of(type);
    const std::string name = join({"atom.shared.cas", type});
    list.add(name, {kind, kind}, {kind, kind, Kind::pred},
             "st.shared." + std::string(type) + " [at], a;\n.reg ." + std::string(type) +
                 " expected;\nselp." + std::string(type) + " expected, a, b, c;\n" + name +
                 " d, [at], expected, b;\nld.shared." + std::string(type) + " e, [at];");
  }
}

// A warp's matrices in 8x8 tiles; every register of a lane is set from that lane's operands.
void add_matrix(List& list) {
  const std::string row_address =
      ".reg .b32 lane, row;\nmov.u32 lane, %laneid;\nshl.b32 row, lane, 4;\nadd.u32 row, row, "
      "warp_at;\n";
  const std::string fill = "st.shared.v4.b32 [row], {a, b, c, x};\nbar.warp.sync -1;\n";
  const std::vector<Kind> four{Kind::b32, Kind::b32, Kind::b32, Kind::b32};
  for (const std::string_view trans : Strings{"", "trans"}) {
    const std::string x4 = join({"ldmatrix.sync.aligned.m8n8.x4", trans, "shared.b16"});
    list.add(x4, {Kind::b32, Kind::b32}, four,
             row_address + fill + ".reg .b32 r0, r1;\n" + x4 +
                 " {r0, d, e, r1}, [row];\nxor.b32 d, d, r0;\nxor.b32 e, e, r1;");
    const std::string x2 = join({"ldmatrix.sync.aligned.m8n8.x2", trans, "shared.b16"});
    list.add(x2, {Kind::b32, Kind::b32}, four, row_address + fill + x2 + " {d, e}, [row];");
    const std::string x1 = join({"ldmatrix.sync.aligned.m8n8.x1", trans, "shared.b16"});
    list.add(x1, {Kind::b32}, four, row_address + fill + x1 + " {d}, [row];");
    const std::string s4 = join({"stmatrix.sync.aligned.m8n8.x4", trans, "shared.b16"});
    list.add(s4, {Kind::b64, Kind::b64}, four,
             row_address + s4 +
                 " [row], {a, b, c, x};\nbar.warp.sync -1;\nld.shared.v2.b64 {d, e}, [row];");
  }
  list.add("movmatrix.sync.aligned.m8n8.trans.b16", {Kind::b32}, {Kind::b32},
           "movmatrix.sync.aligned.m8n8.trans.b16 d, a;");
}

}  // namespace

std::vector<Form> all_forms() {
  List list;
  add_integers(list);
  add_bits(list);
  add_float_arithmetic(list);
  add_approximations(list);
  add_conversions(list);
  add_warp(list);
  add_memory(list);
  add_matrix(list);
  return std::move(list.forms);
}

}  // namespace gemmery::recording
