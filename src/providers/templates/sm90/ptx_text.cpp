// SPDX-License-Identifier: Apache-2.0
#include "providers/templates/sm90/ptx_text.hpp"

#include <string_view>

#include <fmt/format.h>

#include "device/abi/sm90_shared.hpp"

namespace gemmery::templates {
namespace {

// --- wgmma --------------------------------------------------------------------------------------

// The name of an operand's type in wgmma.
std::string_view operand_word(abi::DType dtype) {
  switch (dtype) {
    case abi::DType::bfloat16:
      return "bf16";
    case abi::DType::float16:
      return "f16";
    case abi::DType::float32:
      return "tf32";
    case abi::DType::int8:
      return "s8";
    case abi::DType::uint8:
      return "u8";
    case abi::DType::float8_e4m3fn:
      return "e4m3";
    default:
      return "e5m2";
  }
}

std::string_view accumulator_word(abi::DType dtype) {
  return dtype == abi::DType::int32 ? "s32" : dtype == abi::DType::float16 ? "f16" : "f32";
}

// The operands after the predicate: scales of A and B, and which of them is not K-major.
std::string_view tail_of(abi::DType operand, bool is_a_by_registers) {
  if (abi::is_integer(operand)) return "";
  if (!abi::takes_any_major(operand)) return ", 1, 1";
  return is_a_by_registers ? ", 1, 1, %7" : ", 1, 1, %4, %5";
}

// Quotes a text, in lines of source.
std::string quoted_lines(const std::string& text) {
  constexpr std::size_t longest = 90;
  std::string lines;
  for (std::size_t begin = 0; begin < text.size(); begin += longest)
    lines += fmt::format(" \\\n  \"{}\"", text.substr(begin, longest));
  return lines;
}

// --- results ------------------------------------------------------------------------------------

// The numbers of the operands of a statement that computes results (device/ptx/results.cuh).
struct ResultOperands {
  int block;
  int alpha;
  int beta;
  int source[2];
  int left[2];
  int last[2];
  int first_place;  // then, for each 8 columns: their registers, and C's bound and offset
  int places;       // for each 8 columns
};

// The statement for a group of columns. Each thread has a pair of adjacent columns of two rows in
// each 8 columns: values 0 and 1, and 2 and 3.
class ResultsWriter {
 public:
  explicit ResultsWriter(const abi::Sm90Design& design)
      : d_(design),
        is_double_(design.accumulator == abi::DType::int32),
        real_(is_double_ ? "f64" : "f32"),
        registers_(design.accumulator == abi::DType::float16 ? 2 : 4),
        words_(abi::bytes_of(design.out) == 4 ? 4 : 2),
        eights_(2 * abi::sixteens_together(design)) {
    const int next = words_ * eights_ + 2;  // after the results, the block and alpha
    const bool has_c = design.has_c;
    at_ = {next - 2,
           next - 1,
           next,
           {next + 1, next + 2},
           {next + 3, next + 4},
           {next + 5, next + 6},
           next + (has_c ? 7 : 0),
           registers_ + (has_c ? 2 : 0)};
  }

  std::string text() const {
    std::string text = "{ " + declarations();
    for (int eight = 0; eight < eights_; ++eight) text += eight_text(eight);
    return text + "}";
  }

  std::string outputs() const {
    std::string list;
    for (int word = 0; word < words_ * eights_; ++word)
      list += fmt::format("{}\"=&r\"(results[{}])", word == 0 ? "" : ", ", word);
    return list;
  }

  std::string places() const {
    std::string list;
    const auto add = [&list](const std::string& value) {
      list += fmt::format("{}\"n\"({})", list.empty() ? "" : ", ", value);
    };
    for (int eight = 0; eight < eights_; ++eight) {
      for (int index = 0; index < registers_; ++index)
        add(fmt::format("first + {}", registers_ * eight + index));
      if (!d_.has_c) continue;
      add(fmt::format("column + {}", 8 * eight + 1));
      add(fmt::format("(column + {}) * bytes", 8 * eight));
    }
    return list;
  }

 private:
  std::string declarations() const {
    const std::string_view bits = is_double_ ? "b64" : "b32";
    return fmt::format(
        ".reg .{} v<4>, c<4>; .reg .b32 pair0, pair1, next0, next1, low; "
        ".reg .b16 half0, half1, code0, code1; .reg .pred reads0, reads1, is_number; ",
        bits);
  }

  std::string eight_text(int eight) const {
    const int place = at_.first_place + at_.places * eight;
    std::string text;
    if (d_.has_c) text += addends(place + registers_);
    for (int value = 0; value < 4; ++value) {
      if (value % 2 == 0 && d_.accumulator == abi::DType::float16) text += halves(place, value);
      text += scaled(eight, place, value);
    }
    return text + rounded(words_ * eight);
  }

  // --- C -----------------------------------------------------------------------------------------

  // beta * c in c0 to c3. The bits `last` stand in for a pair that is not read.
  std::string addends(int bound) const {
    std::string text;
    for (int row = 0; row < 2; ++row)
      text += fmt::format("setp.gt.s32 reads{}, %{}, %{}; ", row, at_.left[row], bound);
    for (int row = 0; row < 2; ++row) text += load(row, bound + 1);
    for (int row = 0; row < 2; ++row) text += decode(row);
    for (int value = 0; value < 4; ++value)
      text += fmt::format("mul.rn.{0} c{1}, c{1}, %{2}; ", real_, value, at_.beta);
    return text;
  }

  std::string load(int row, int offset) const {
    const std::string address = fmt::format("[%{}+%{}]; ", at_.source[row], offset);
    const int last = at_.last[row];
    switch (abi::bytes_of(d_.c)) {
      case 4:
        return fmt::format(
            "mov.b32 pair{0}, %{1}; mov.b32 next{0}, 0; "
            "@reads{0} ld.global.v2.b32 {{pair{0}, next{0}}}, {2}",
            row, last, address);
      case 2:
        return fmt::format("mov.b32 pair{0}, %{1}; @reads{0} ld.global.b32 pair{0}, {2}", row, last,
                           address);
      default:
        return fmt::format("cvt.u16.u32 code{0}, %{1}; @reads{0} ld.global.b16 code{0}, {2}", row,
                           last, address);
    }
  }

  // Two values of C from a pair of elements.
  std::string decode(int row) const {
    const auto convert = [&](std::string_view instruction, const std::string& first,
                             const std::string& second) {
      return fmt::format("{0} c{1}, {2}; {0} c{3}, {4}; ", instruction, 2 * row, first, 2 * row + 1,
                         second);
    };
    const std::string pair = fmt::format("pair{}", row);
    const std::string next = fmt::format("next{}", row);
    const std::string code = fmt::format("code{}", row);
    switch (d_.c) {
      case abi::DType::float32:
        return convert(is_double_ ? "cvt.f64.f32" : "mov.b32", pair, next);
      case abi::DType::int32:
        return convert("cvt.rn.f64.s32", pair, next);
      case abi::DType::float16:
        return fmt::format("mov.b32 {{half0, half1}}, {}; ", pair) +
               convert("cvt.f32.f16", "half0", "half1");
      case abi::DType::bfloat16:
        return fmt::format("shl.b32 c{0}, {1}, 16; and.b32 c{2}, {1}, 0xffff0000; ", 2 * row, pair,
                           2 * row + 1);
      case abi::DType::float8_e4m3fn:
        return fmt::format("cvt.rn.f16x2.e4m3x2 {0}, {1}; mov.b32 {{half0, half1}}, {0}; ", pair,
                           code) +
               convert("cvt.f32.f16", "half0", "half1");
      case abi::DType::float8_e5m2:  // the upper byte of a float16
        return fmt::format("shl.b16 half0, {0}, 8; and.b16 half1, {0}, 0xff00; ", code) +
               convert("cvt.f32.f16", "half0", "half1");
      case abi::DType::int8:
        return fmt::format("cvt.s16.s8 half0, {0}; shr.s16 half1, {0}, 8; ", code) +
               convert("cvt.rn.f64.s16", "half0", "half1");
      default:  // uint8
        return fmt::format("and.b16 half0, {0}, 0xff; shr.u16 half1, {0}, 8; ", code) +
               convert("cvt.rn.f64.u16", "half0", "half1");
    }
  }

  // --- accumulators ------------------------------------------------------------------------------

  std::string sum(int place, int index) const {
    return fmt::format("sum%{}_%{}", at_.block, place + index);
  }

  // Two accumulators of float16, as v<value> and the next.
  std::string halves(int place, int value) const {
    return fmt::format(
        "mov.b32 {{half0, half1}}, {}; cvt.f32.f16 v{}, half0; cvt.f32.f16 v{}, half1; ",
        sum(place, value / 2), value, value + 1);
  }

  // alpha * accumulator + beta * c. Integers are widened as by widen_s32.
  std::string scaled(int eight, int place, int value) const {
    const std::string v = fmt::format("v{}", value);
    std::string text;
    std::string accumulator = v;
    if (is_double_) {
      text = fmt::format(
          "xor.b32 low, {1}, 0x80000000; mov.b64 {0}, {{low, 0x43300000}}; "
          "add.rn.f64 {0}, {0}, 0dC330000080000000; ",
          v, sum(place, value));
    } else if (d_.accumulator == abi::DType::float32) {
      accumulator = sum(place, value);
    }
    const bool is_result = d_.out == abi::DType::float32 && !is_double_;
    const std::string to = is_result ? fmt::format("%{}", words_ * eight + value) : v;
    if (d_.has_c)
      return text +
             fmt::format("fma.rn.{} {}, {}, %{}, c{}; ", real_, to, accumulator, at_.alpha, value);
    return text + fmt::format("mul.rn.{} {}, {}, %{}; ", real_, to, accumulator, at_.alpha);
  }

  // --- results -----------------------------------------------------------------------------------

  // The results from v0 to v3, in words from `word` on.
  std::string rounded(int word) const {
    if (d_.out == abi::DType::float32 && !is_double_) return "";
    std::string text;
    if (words_ == 4) {
      for (int value = 0; value < 4; ++value) text += rounded_word(word + value, value);
    } else {
      for (int row = 0; row < 2; ++row) text += rounded_pair(word + row, 2 * row);
    }
    return text;
  }

  // A double to the nearest integer; NaN gives 0.
  std::string nearest(const std::string& to, int value) const {
    return fmt::format(
        "setp.num.f64 is_number, v{1}, v{1}; cvt.rni.s32.f64 {0}, v{1}; "
        "selp.b32 {0}, {0}, 0, is_number; ",
        to, value);
  }

  std::string rounded_word(int word, int value) const {
    if (d_.out == abi::DType::float32) return fmt::format("cvt.rn.f32.f64 %{}, v{}; ", word, value);
    return nearest(fmt::format("%{}", word), value);
  }

  std::string rounded_pair(int word, int value) const {
    switch (d_.out) {
      case abi::DType::bfloat16:
        return fmt::format("cvt.rn.bf16x2.f32 %{}, v{}, v{}; ", word, value + 1, value);
      case abi::DType::float16:
        return fmt::format("cvt.rn.f16x2.f32 %{}, v{}, v{}; ", word, value + 1, value);
      case abi::DType::float8_e4m3fn:  // as by pack_e4m3 (device/ptx/convert_sequences.cuh)
        return rounded_codes("e4m3", "gt", "0f43E80000", word, value);
      case abi::DType::float8_e5m2:
        return rounded_codes("e5m2", "ge", "0f47700000", word, value);
      default:
        return nearest("low", value) + nearest("next0", value + 1) +
               fmt::format("cvt.pack.sat.{}.s32.b32 %{}, next0, low, 0; ",
                           d_.out == abi::DType::int8 ? "s8" : "u8", word);
    }
  }

  // Two codes of 8 bits. The conversion saturates; codes beyond the largest one follow it.
  std::string rounded_codes(std::string_view type, std::string_view exceeds, std::string_view limit,
                            int word, int value) const {
    std::string text =
        fmt::format("cvt.rn.satfinite.{}x2.f32 half0, v{}, v{}; cvt.u32.u16 %{}, half0; ", type,
                    value + 1, value, word);
    for (int index = 0; index < 2; ++index)
      text += fmt::format(
          "abs.f32 low, v{}; setp.{}.f32 is_number, low, {}; @is_number add.u32 %{}, %{}, {}; ",
          value + index, exceeds, limit, word, word, index == 0 ? "1" : "0x100");
    return text;
  }

  const abi::Sm90Design& d_;
  bool is_double_;         // the compute type
  std::string_view real_;  // its name
  int registers_;          // of 8 columns
  int words_;              // of their results
  int eights_;             // in the group
  ResultOperands at_;
};

}  // namespace

std::string wgmma_text(const abi::Sm90Design& d) {
  const int registers = abi::accumulator_registers(d) / abi::blocks_per_consumer(d);
  const abi::DType a = abi::multiplied_a(d);
  const std::string_view block = d.a_by_registers ? "%6" : "%3";
  std::string sums = fmt::format("sum{}_0", block);
  for (int index = 1; index < registers; ++index) sums += fmt::format(", sum{}_{}", block, index);
  const std::string text = fmt::format(
      "wgmma.mma_async.sync.aligned.m64n{}k{}.{}.{}.{}{} {{{}}}, {}, keeps{};",
      abi::columns_per_consumer(d), 32 / abi::bytes_of(a), accumulator_word(d.accumulator),
      operand_word(a), operand_word(abi::multiplied_type(d.math, d.b)),
      d.math == abi::MmaMath::saturate ? ".satfinite" : "", sums,
      d.a_by_registers ? "{%0, %1, %2, %3}, %4" : "%0, %1", tail_of(a, d.a_by_registers));
  return fmt::format("#define GEMMERY_WGMMA{}{}\n", d.a_by_registers ? "_BY_REGISTERS" : "",
                     quoted_lines(text));
}

std::string results_text(const abi::Sm90Design& design) {
  if (!abi::states_results(design)) return {};
  const ResultsWriter writer(design);
  return fmt::format(
      "#define GEMMERY_RESULTS{}\n"
      "#define GEMMERY_RESULT_OUTPUTS {}\n"
      "#define GEMMERY_RESULT_PLACES {}\n",
      quoted_lines(writer.text()), writer.outputs(), writer.places());
}

}  // namespace gemmery::templates
