// SPDX-License-Identifier: Apache-2.0
// Scales and zero points in the line of a problem:
//   scale_a=f32[1x128]:m   scale_b=e8m0[1x32]:swizzled   scale_a=e4m3[1x16]:swizzled*f32[tensor]
//   zero_b=s8[1x32]   table_b=nf4   order_b=fragments
#pragma once

#include <gemmery/problem.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "operation/grammar_operands.hpp"
#include "operation/grammar_words.hpp"

namespace gemmery::grammar {

// One companion as parsed, before the extents are known.
struct CompanionWords {
  std::optional<ScaleBlock> block;
  ScaleLayout layout = ScaleLayout::strided;
  OperandWords values;
};

struct ScaleWords {
  std::vector<CompanionWords> scale_a, scale_b;
  std::optional<CompanionWords> zero_a, zero_b;
  std::optional<CodeTable> table_a, table_b;
  std::optional<ElementOrder> order_a, order_b;
};

inline constexpr std::string_view scale_fields =
    "scale_a=, scale_b=, zero_a=, zero_b=, table_a=, table_b=, order_a=, order_b=, ";
bool is_scale_field(std::string_view key) noexcept;

// Reads a field whose key is one of these.
void read_scale_field(const Word& word, std::string_view key, std::string_view value,
                      ScaleWords& words);

// The companions for these words. The problem has its extents and groups.
void apply_scales(const ScaleWords& words, GemmProblem& problem);

// " scale_a=f32[row] zero_b=s8[1x32]"; empty for a problem without.
std::string scales_text(const GemmProblem& problem);

}  // namespace gemmery::grammar
