// SPDX-License-Identifier: Apache-2.0
// The kernel of a family that a description stands for.
#pragma once

#include <gemmery/describe.hpp>

namespace gemmery::describe {

// How blocks share k: none, one after the other, or side by side.
enum class KSplit : std::uint8_t { none, serial, parallel };

struct KSlices {
  KSplit split = KSplit::none;
  int slices = 1;
};

// What a description asks of operands; `has_c` where the kernel's own program reads a C. Layouts
// are RowMajor and ColumnMajor.
OperandRules rules_of(const GemmDescription& description, bool has_c);

// Throws Error naming the field of which no kernel can be made.
Kernel described_kernel(const GemmDescription& description, const OperandRules& rules,
                        const KSlices& slices = {}, EpilogueId epilogue = default_epilogue);

// The description that kernels are made of: interleaved operands are RowMajor and ColumnMajor there
// (describe/interleaved).
GemmDescription with_plain_layouts(GemmDescription description);
bool is_interleaved(const GemmDescription& description) noexcept;

// What code is compiled for: the capability's own target, or the one before it that runs there.
Target target_of(int compute_capability) noexcept;

}  // namespace gemmery::describe
