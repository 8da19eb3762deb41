// SPDX-License-Identifier: Apache-2.0
// The words that names of kernels are made of: written, and read back.
#pragma once

#include <gemmery/kernel.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gemmery::templates {

inline constexpr int widest_access = 16;  // bytes; the largest alignment that a rule asks for

// "f32r16": type, layout's letter, alignment.
std::string rule_text(const OperandRule& rule);
std::optional<OperandRule> read_rule(std::string_view text);

std::vector<std::string_view> split(std::string_view text, char separator);

// "128x128x8", so many of them.
std::optional<std::vector<int>> read_integers(std::string_view text, std::size_t count);

// "s4" by its tag "s".
std::optional<int> read_tagged(std::string_view text, std::string_view tag);

}  // namespace gemmery::templates
