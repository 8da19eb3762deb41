// SPDX-License-Identifier: Apache-2.0
// The convolutions that sm80 kernels support.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <gemmery/problem.hpp>

#include "providers/templates/sm80/design.hpp"

namespace gemmery::templates {

// The kind of a convolution, and the dimensions of its images: 2 (or 1), or 3.
Sm80Conv conv_of(const Convolution& convolution) noexcept;
// That of a problem.
Sm80Conv conv_of(const GemmProblem& problem) noexcept;

// "conv2d-fprop", which is also the suffix of a kernel's name; "" for none.
std::string_view conv_word(Sm80Conv conv) noexcept;
// none for other words.
Sm80Conv read_conv_word(std::string_view word) noexcept;

// "fprop"; "conv2d_fprop", or "a GEMM"
std::string operation_text(Sm80Conv conv);
std::string_view kind_text(Sm80Conv conv) noexcept;

// True if kernels of this convolution take operands with these rules: channels are adjacent, and
// the rule of out is one that discovery offers without groups, not column major.
bool takes_conv_layouts(const OperandRules& rules, Sm80Conv conv) noexcept;

// True if no access to A (or B) crosses from one tap to the next.
bool holds_whole_channels(const OperandRule& rule, const Convolution& convolution,
                          bool is_a) noexcept;

// True if a convolution transposes bytes that it copies one by one, or in pairs.
bool transposes_few_bytes(const OperandRules& rules, Sm80Conv conv) noexcept;

// Why no kernel supports a convolution, in words; empty if some do.
std::string find_sm80_conv_failure(const GemmProblem& problem);

}  // namespace gemmery::templates
