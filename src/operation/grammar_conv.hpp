// SPDX-License-Identifier: Apache-2.0
// The convolution of a problem in its line: conv2d_fprop NxHxWxC k= r= s= pad= stride= …
#pragma once

#include <gemmery/problem.hpp>

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "operation/grammar_operands.hpp"
#include "operation/grammar_words.hpp"

namespace gemmery::grammar {

// The kind and the spatial dimensions that a line's first word names.
struct ConvName {
  ConvKind kind;
  std::uint8_t dimensions;
};
std::optional<ConvName> read_conv_name(std::string_view word) noexcept;

// The fields that only a convolution has.
struct ConvWords {
  std::optional<ConvName> name;
  std::optional<std::int64_t> filters, groups;
  std::array<std::optional<std::int64_t>, 3> filter, output;
  std::optional<Spatial> stride, dilation, lower, upper;
  std::optional<ConvMode> mode;
  std::optional<ConvBatch> batch;
};

inline constexpr std::string_view conv_fields =
    "k=, t=, r=, s=, pad=, stride=, dilation=, groups=, mode=, batch=, o=, p=, q=, ";
bool is_conv_field(std::string_view key) noexcept;

// Reads a field whose key is one of these.
void read_conv_field(const Word& word, std::string_view key, std::string_view value,
                     ConvWords& words);

// Describes the convolution of an image with these extents (NxHxWxC) and the extents of its GEMM.
void apply_convolution(const Word& kind, const Word& extents, const ConvWords& words,
                       GemmProblem& problem);

// The operands of a line, once the convolution is known.
struct ConvOperands {
  const OperandWords& a;
  const OperandWords& b;
  const OperandWords& out;
};
void apply_operands(const ConvOperands& operands, GemmProblem& problem);

// "conv2d_fprop 32x56x56x64 k=64 r=3 s=3 pad=1": the fields that are not defaults.
std::string convolution_text(const GemmProblem& problem);

// The spelling of A or B, and of out, that reads back as the same tensor.
std::string tensor_text(const GemmProblem& problem, bool is_a);
std::string conv_out_text(const GemmProblem& problem);

}  // namespace gemmery::grammar
