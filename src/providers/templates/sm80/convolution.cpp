// SPDX-License-Identifier: Apache-2.0
#include "providers/templates/sm80/convolution.hpp"

#include <algorithm>
#include <array>

#include "providers/templates/conv_windows.hpp"
#include "providers/templates/name_words.hpp"

namespace gemmery::templates {
namespace {

constexpr std::array<std::string_view, sm80_conv_count> conv_words{"",
                                                                   "conv2d-fprop",
                                                                   "conv3d-fprop",
                                                                   "conv2d-dgrad",
                                                                   "conv3d-dgrad",
                                                                   "conv2d-wgrad",
                                                                   "conv3d-wgrad",
                                                                   "conv2d-dgrad-strided",
                                                                   "conv3d-dgrad-strided"};

// True if the channels of a tap are whole accesses.
bool divides_channels(const OperandRule& rule, std::int64_t channels) noexcept {
  return channels * static_cast<std::int64_t>(byte_width(rule.dtype)) % rule.alignment == 0;
}

// True for out's rules in kernels of convolutions: rows of whole accesses, or any strides. Single
// elements of rows are for groups only.
bool takes_output(const OperandRule& rule) noexcept {
  return rule.layout == LayoutRule::any ||
         (rule.layout == LayoutRule::row && rule.alignment == widest_access);
}

}  // namespace

Sm80Conv conv_of(const Convolution& convolution) noexcept {
  const bool is_deep = convolution.dimensions == 3;
  switch (convolution.kind) {
    case ConvKind::fprop:
      return is_deep ? Sm80Conv::fprop_3d : Sm80Conv::fprop_2d;
    case ConvKind::dgrad:
      if (has_phases(convolution))
        return is_deep ? Sm80Conv::strided_dgrad_3d : Sm80Conv::strided_dgrad_2d;
      return is_deep ? Sm80Conv::dgrad_3d : Sm80Conv::dgrad_2d;
    case ConvKind::wgrad:
      break;
  }
  return is_deep ? Sm80Conv::wgrad_3d : Sm80Conv::wgrad_2d;
}

Sm80Conv conv_of(const GemmProblem& problem) noexcept {
  return problem.convolution ? conv_of(*problem.convolution) : Sm80Conv::none;
}

std::string_view conv_word(Sm80Conv conv) noexcept {
  return conv_words[static_cast<std::size_t>(conv)];
}

Sm80Conv read_conv_word(std::string_view word) noexcept {
  const auto* const found = std::ranges::find(conv_words, word);
  return found == conv_words.end() ? Sm80Conv::none
                                   : static_cast<Sm80Conv>(found - conv_words.begin());
}

std::string_view kind_text(Sm80Conv conv) noexcept {
  return conv_word(conv).substr(conv_word(conv).find('-') + 1, 5);
}

std::string operation_text(Sm80Conv conv) {
  if (conv == Sm80Conv::none) return "a GEMM";
  std::string text(conv_word(conv));
  std::ranges::replace(text, '-', '_');
  return text;
}

bool takes_conv_layouts(const OperandRules& rules, Sm80Conv conv) noexcept {
  if (conv == Sm80Conv::none) return true;
  const abi::ConvolutionKind kind = kind_of(conv);
  const LayoutRule a = kind == abi::ConvolutionKind::wgrad ? LayoutRule::column : LayoutRule::row;
  const LayoutRule b = kind == abi::ConvolutionKind::fprop ? LayoutRule::column : LayoutRule::row;
  return rules.a.layout == a && rules.b.layout == b && takes_output(rules.out) &&
         (!rules.has_c || takes_output(rules.c));
}

bool holds_whole_channels(const OperandRule& rule, const Convolution& convolution,
                          bool is_a) noexcept {
  // Operands that are plain matrices have lines of any length.
  const ConvKind kind = convolution.kind;
  if (is_a) return kind == ConvKind::wgrad || divides_channels(rule, channels_of_a(convolution));
  return kind == ConvKind::fprop ||
         divides_channels(rule, convolution.channels / convolution.groups);
}

bool transposes_few_bytes(const OperandRules& rules, Sm80Conv conv) noexcept {
  const abi::ConvolutionKind kind = kind_of(conv);
  const bool transposes =
      kind == abi::ConvolutionKind::dgrad || kind == abi::ConvolutionKind::wgrad;
  return transposes && bit_width(rules.a.dtype) == 8 &&
         (rules.a.alignment < 4 || rules.b.alignment < 4);
}

std::string find_sm80_conv_failure(const GemmProblem& problem) {
  std::string failure = find_window_failure(problem);
  return failure.empty() ? find_pixel_reduction_failure(problem) : failure;
}

}  // namespace gemmery::templates
