// SPDX-License-Identifier: Apache-2.0
// A described convolution as the GEMM that its kernel computes.
#pragma once

#include <gemmery/describe_conv.hpp>

namespace gemmery::describe {

// Throws Error, which names the field that no kernel supports.
void check_conv_description(const Conv2dDescription& description);

bool is_interleaved(const Conv2dDescription& description) noexcept;

// The same kernel's description, with the layouts of the matrices.
GemmDescription as_gemm(const Conv2dDescription& description);

// The operand rules of kernels for `as_gemm(description)`. `has_c` is true if the kernel's program
// reads a C, `is_bias` if that C has one number per channel.
OperandRules conv_rules(const Conv2dDescription& description, bool has_c, bool is_bias = false);

// The kind and stride that the operation's own kernel supports.
Convolution own_convolution(const Conv2dDescription& description);

}  // namespace gemmery::describe
