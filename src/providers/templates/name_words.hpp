// SPDX-License-Identifier: Apache-2.0
// Text that families share: kernel names, written and parsed, and lists of types.
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

// The name of a GEMM kernel: "HEAD_gemm_A_B_OUT_acc-ACC_DESIGN", followed by "_c-C" if C is read or
// "_e-DIGEST" if the program is not the default one. HEAD is family and version; DESIGN is in the
// family's own words.
std::string gemm_name(std::string_view head, const OperandRules& rules, std::string_view design,
                      EpilogueId epilogue = default_epilogue);

// A parsed name of a family whose designs have that many words; nullopt for other names.
struct GemmNameParts {
  OperandRules rules;
  std::vector<std::string_view> design;
  EpilogueId epilogue = default_epilogue;
};
// What belongs to operands in a family's names.
enum class NamedCompanions : unsigned char { none, scales, with_programs };
std::optional<GemmNameParts> read_gemm_name(std::string_view name, std::string_view head,
                                            std::size_t design_words,
                                            NamedCompanions taken = NamedCompanions::none);

// The types that a kernel computes with, in the form of the problem grammar.
std::string class_line(const OperandRules& rules);

// "float16, bfloat16"
std::string list_names(std::span<const DType> dtypes);

std::vector<std::string_view> split(std::string_view text, char separator);

// "128x128x8": exactly `count` numbers.
std::optional<std::vector<int>> read_integers(std::string_view text, std::size_t count);

// The number in "s4", after its tag "s".
std::optional<int> read_tagged(std::string_view text, std::string_view tag);

}  // namespace gemmery::templates
