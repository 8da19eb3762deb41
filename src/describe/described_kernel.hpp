// SPDX-License-Identifier: Apache-2.0
// The kernel of a family that a description denotes.
#pragma once

#include <gemmery/convolution.hpp>
#include <gemmery/describe.hpp>

#include <optional>

namespace gemmery::describe {

// How blocks share k: not at all, one after the other, or in parallel.
enum class KSplit : std::uint8_t { none, serial, parallel };

struct KSlices {
  KSplit split = KSplit::none;
  int slices = 1;
};

// The operand rules of a description; `has_c` is true if the kernel's own program reads a C.
// Layouts are RowMajor and ColumnMajor.
OperandRules rules_of(const GemmDescription& description, bool has_c);

// The properties of a kernel that are not in its description.
struct KernelForm {
  KSlices slices = {};
  EpilogueId epilogue = default_epilogue;
  std::optional<Convolution> convolution = std::nullopt;  // its kind, dimensions and stride
};

// Throws Error naming the field for which no kernel exists.
Kernel described_kernel(const GemmDescription& description, const OperandRules& rules,
                        const KernelForm& form = {});

// The description from which the kernel is made: its interleaved layouts are replaced by RowMajor
// and ColumnMajor (describe/interleaved).
GemmDescription with_plain_layouts(GemmDescription description);
bool is_interleaved(const GemmDescription& description) noexcept;

// The target to compile for: that of the capability, or an earlier one whose code runs there.
Target target_of(int compute_capability) noexcept;

}  // namespace gemmery::describe
