// SPDX-License-Identifier: Apache-2.0
// The words that families say: names of kernels, written and read back, and their types in lists.
#pragma once

#include <gemmery/kernel.hpp>

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gemmery::templates {

inline constexpr int widest_access = 16;  // bytes; the largest alignment that a rule asks for

// "f32r16": type, layout's letter, alignment.
std::string rule_text(const OperandRule& rule);
std::optional<OperandRule> read_rule(std::string_view text);

// A GEMM kernel's name: "HEAD_gemm_A_B_OUT_acc-ACC_DESIGN", with "_c-C" at the end where C is read,
// or "_e-DIGEST" where another program than the default one is carried. HEAD is family and version,
// DESIGN the family's own words.
std::string gemm_name(std::string_view head, const OperandRules& rules, std::string_view design,
                      EpilogueId epilogue = default_epilogue);

// Such a name read back, by a family whose designs are of so many words; nothing for other names.
struct GemmNameParts {
  OperandRules rules;
  std::vector<std::string_view> design;
  EpilogueId epilogue = default_epilogue;
};
std::optional<GemmNameParts> read_gemm_name(std::string_view name, std::string_view head,
                                            std::size_t design_words);

// What a kernel computes, in the words of the problem grammar.
std::string class_line(const OperandRules& rules);

// "float16, bfloat16"
std::string list_names(std::span<const DType> dtypes);

std::vector<std::string_view> split(std::string_view text, char separator);

// "128x128x8", so many of them.
std::optional<std::vector<int>> read_integers(std::string_view text, std::size_t count);

// "s4" by its tag "s".
std::optional<int> read_tagged(std::string_view text, std::string_view tag);

}  // namespace gemmery::templates
