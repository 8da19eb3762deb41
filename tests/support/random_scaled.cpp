// SPDX-License-Identifier: Apache-2.0
#include "tests/support/random_scaled.hpp"

#include <gemmery/error.hpp>
#include <gemmery/operand_program_text.hpp>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <string_view>

namespace gemmery::tests {
namespace {

bool is_integer(const std::string& type) { return type.starts_with('s') || type.starts_with('u'); }

}  // namespace

// A block that reaches over all of k may leave integers without a floating-point sum; such lines
// are drawn again.
ProblemLine RandomScales::next(const std::vector<std::string>& operands) {
  while (true) {
    try {
      return parse_problem(line(operands));
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("integer products"), std::string::npos)
          << error.what();
    }
  }
}

std::string RandomScales::line(const std::vector<std::string>& operands) {
  const int most = from_.most_rows;
  const int batches = draw(0, 3) == 0 ? draw(2, 3) : 1;
  const std::string a = one_of(operands);
  const std::string b = one_of(operands);
  std::string text = "gemm " + std::to_string(draw(1, most)) + "x" +
                     std::to_string(8 * draw(1, most / 8)) + "x" +
                     std::to_string(8 * draw(1, from_.most_k / 8));
  if (batches > 1) text += "x" + std::to_string(batches);
  const bool is_of_a = draw(0, 2) != 0;
  const bool are_integers = is_integer(a) || is_integer(b);
  text += " a=" + a + " b=" + b + (draw(0, 1) == 0 ? ":c" : "");
  text += " out=" + one_of({"f32", "f32", "bf16"}) + " acc=f32";
  if (is_of_a || are_integers) text += scales_of("a", is_integer(a));
  if (!is_of_a || are_integers || draw(0, 1) == 0) text += scales_of("b", is_integer(b));
  const int rest = draw(0, 3);
  if (rest == 0) text += " epilogue=\"D = relu(accum) + bias\" bias=f32[n]";
  if (rest == 1) text += " c=bf16 alpha=0.5 beta=2";
  return text;
}

// Integers have a scale that varies along k, so that their sums are floats.
std::string RandomScales::scales_of(const std::string& operand, bool is_of_integers) {
  const std::string along = operand == "a" ? ":m" : ":n";
  std::string text = " scale_" + operand + "=";
  const int kind = is_of_integers ? 2 : draw(0, 4);
  if (kind == 0) return text + one_of({"f32", "bf16", "f16"}) + "[row]";
  if (kind == 1) return text + one_of({"f32", "bf16"}) + "[tensor]";
  if (kind == 3)
    return text + one_of({"e8m0", "e4m3"}) + "[" + one_of(from_.swizzled) + "]:swizzled";
  text += one_of({"f32", "f16", "bf16", "e8m0", "e4m3"}) + "[" + one_of(from_.blocks) + "]" +
          one_of({"", along});
  if (draw(0, 2) == 0) text += "*f32[tensor]";
  if (is_of_integers && draw(0, 1) == 0)
    text += " zero_" + operand + "=" + one_of({"s8", "u8", "f16", "s32"}) + "[" +
            one_of(from_.blocks) + "]";
  return text;
}

std::string draw_codes(std::mt19937_64& random, bool is_for_sm80) {
  const auto draw = [&](int least, int most) {
    return std::uniform_int_distribution<int>(least, most)(random);
  };
  const auto one_of = [&](const std::vector<std::string>& all) {
    return all[static_cast<std::size_t>(draw(0, static_cast<int>(all.size()) - 1))];
  };
  const std::string number = one_of({"bf16", "f16"});
  const std::string code = one_of({"s4", "u4", "s8", "u8", "e2m1", "e4m3", "e5m2"});
  const bool is_whole = is_integer(code);
  const bool is_grouped = draw(0, 1) == 0;
  const bool is_prepared = is_for_sm80 && draw(0, 2) == 0;
  const bool has_table = is_for_sm80 && code == "u4" && draw(0, 1) == 0;
  const int k = 32 * draw(1, 10);
  std::string text = std::to_string(draw(1, 130)) + "x" +
                     std::to_string(is_prepared ? 32 * draw(1, 3) : 8 * draw(1, 12)) + "x" +
                     std::to_string(k);
  text = !is_grouped ? "gemm " + text
                     : "grouped_gemm " + text + " groups=" + std::to_string(draw(1, 6)) +
                           one_of({" ends=i32", " counts=i64", " masked=i32"});
  text += " a=" + number + " b=" + code + ":c out=" + one_of({"f32", number}) + " acc=f32";
  text += " scale_b=" + one_of({"f32", "bf16", "e8m0"}) + one_of({"[1x32]", "[1x64]", "[64x32]"});
  if (has_table) text += " table_b=nf4." + number;
  if (is_prepared) text += " order_b=fragments";
  // Rows of an odd number of 4-bit zero points do not fill whole bytes.
  const bool fills_bytes = k % 64 == 0 || code.ends_with('8');
  if (is_whole && !has_table && draw(0, 1) == 0)
    text += " zero_b=" + code + one_of({fills_bytes ? "[1x32]" : "[1x32]:n", "[1x64]:n"});
  return text;
}

std::string draw_quantised(std::mt19937_64& random) {
  const auto draw = [&](std::size_t count) { return random() % count; };
  constexpr std::array outputs{"e4m3", "e5m2", "bf16", "f32"};
  constexpr std::array widest{7, 7, 6, 5};  // powers of two
  constexpr std::array inputs{"bf16", "f16", "e4m3"};
  constexpr std::array programs_of_rows{
      "x = accum + residual * bias; scale = mx_scale(block_amax(x, {0}), e4m3, rceil); D = {1}x / "
      "scale{2}\" scale=e8m0:swizzled bias=f32[n] residual=bf16{3}",
      "s = block_amax(relu(accum), {0}) / 448; D = {1}where(s > 0, accum / s, 0){2}; peak = "
      "amax(accum)\" s=f32 peak=f32[1]",
      "low = block_min(accum, {0}); D = {1}accum * factor - block_sum(accum, {0}){2}\" low=f32 "
      "factor=f32[m]"};
  const std::size_t out = draw(outputs.size());
  const bool is_turned = draw(3) == 0;
  const int width = 2 << draw(static_cast<std::size_t>(widest[out]));
  const std::string block = is_turned ? fmt::format("{}, 1", width) : fmt::format("1, {}", width);
  const bool is_byte = outputs[out][0] == 'e';
  const char* const input = inputs[draw(inputs.size())];
  const char* const major = is_turned ? ":c" : "";
  constexpr std::array layouts{"", ":c"};
  return fmt::format("gemm {}x{}x{} a={}{} b={}{} out={}{} acc=f32 epilogue=\"", 2 + draw(200),
                     1 + draw(300), 1 + draw(200), input, layouts[draw(2)], input, layouts[draw(2)],
                     outputs[out], major) +
         fmt::format(fmt::runtime(programs_of_rows[draw(programs_of_rows.size())]), block,
                     is_byte ? "cast(" : "",
                     is_byte ? fmt::format(", {}, saturate)", outputs[out]) : "", major);
}

std::string RandomOperandPrograms::value(int depth) {
  if (depth == 0) return pick({"x", "x", "t", "u", "s", "0.5", "-2"});
  const std::string first = value(depth - 1);
  switch (below(7)) {
    case 0:
      return pick({"relu", "abs", "tanh", "silu", "exp", "gelu", "sigmoid"}) + "(" + first + ")";
    case 1:
      return "cast(" + first + pick({", f16)", ", bf16)", ", e4m3, saturate)"});
    case 2:
      return "where(" + first + " > " + value(depth - 1) + ", x, " + value(0) + ")";
    default:
      return "(" + first + pick({" * ", " + ", " - "}) + value(depth - 1) + ")";
  }
}

std::string RandomOperandPrograms::program(bool is_a, bool has_batch) {
  std::string body = value(1 + below(3));
  const std::string letter = is_a ? "a" : "b";
  for (std::size_t at = 0; at < body.size(); ++at)
    if (body[at] == 'x' && (at == 0 || body[at - 1] != 'e') && (at == 0 || body[at - 1] != 'a'))
      body[at] = letter[0];
  if (below(3) == 0) body = "cast(" + body + pick({", f32)", ", f16)", ", bf16)"});
  const std::string text = std::string(is_a ? "A" : "B") + " = " + body;
  std::string fields = std::string(" program_") + letter + "=\"" + text + "\"";
  const epilogue::Program read =
      read_operand_program(text, is_a ? ProductOperand::a : ProductOperand::b);
  for (const std::string& name : read.inputs()) {
    fields += " " + letter + "." + name + "=";
    if (name == "s") {
      fields += pick({"0.75", "-1.5", "f32:scalar"});
      continue;
    }
    std::string dims =
        is_a ? pick({"[m,k]", "[k]", "[m]", "[1]", ""}) : pick({"[k,n]", "[n]", "[k]", "[1]", ""});
    if (has_batch && !dims.empty() && below(2) == 0) dims.insert(1, "l,");
    fields +=
        pick({"f32", "f16", "bf16", "e4m3", "s8"}) + (dims.empty() ? pick({"", ":c"}) : "") + dims;
  }
  return fields;
}

std::string RandomOperandPrograms::types() {
  const std::string a = pick({"f32", "f16", "bf16", "e4m3", "s8", "u8"});
  return " a=" + a + pick({"", ":c"}) + " b=" + pick({"f32", "f16", "bf16", "e5m2", "s8"}) +
         pick({"", ":c"}) + " out=f32";
}

std::string RandomOperandPrograms::line(int most) {
  const bool has_batch = below(3) == 0;
  std::string text = "gemm " + std::to_string(1 + below(most)) + "x" +
                     std::to_string(1 + below(most)) + "x" + std::to_string(below(most)) +
                     (has_batch ? "x3" : "") + types();
  const int which = below(3);
  if (which != 1 && below(4) == 0) text += " scale_a=f32[1x16]";
  if (which != 1) text += program(true, has_batch);
  if (which != 0) text += program(false, has_batch);
  if (below(4) == 0) text += " acc=f64";
  if (below(4) == 0) text += " epilogue=\"D = relu(accum) + bias\" epilogue.bias=f32[n]";
  return text;
}

std::string RandomOperandPrograms::grouped_line() {
  const std::string ragged = pick({"m", "n", "k"});
  std::string text = "grouped_gemm 40x24x56 groups=3" +
                     (ragged == "m" ? std::string() : " ragged=" + ragged) +
                     pick({" ends=i32", " counts=i32"}) + types();
  const int which = below(3);
  if (which != 1) text += program(true, false);
  if (which != 0) text += program(false, false);
  return text;
}

}  // namespace gemmery::tests
