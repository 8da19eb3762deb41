// SPDX-License-Identifier: Apache-2.0
// Holds a problem against what a kernel asks of its operands.
#pragma once

#include <gemmery/kernel.hpp>
#include <gemmery/problem.hpp>
#include <gemmery/status.hpp>

namespace gemmery::kernel {

// Whether the problem keeps every rule: the quick form for matching.
bool keeps_rules(const OperandRules& rules, const GemmProblem& problem) noexcept;

// The same with the first rule that is broken in words.
Status check_rules(const OperandRules& rules, const GemmProblem& problem);

// Whether a matrix lies as a layout asks; one without elements lies in every way.
bool keeps_layout(LayoutRule layout, const MatrixType& matrix, std::int64_t rows,
                  std::int64_t columns) noexcept;

// The alignment that every run along a layout has. A single column is row major by name, yet its
// rows may start one element apart (as may the columns of a single row): wide accesses cannot begin
// there.
std::uint8_t run_alignment(LayoutRule layout, const MatrixType& matrix, std::int64_t rows,
                           std::int64_t columns) noexcept;

// True if a kernel with the target `code` can be compiled for `asked`: the same target, or the same
// architecture where the kernel uses nothing but portable instructions (sm_90 for sm_90a).
bool is_compiled_for(Target code, Target asked) noexcept;

// True if a query for the target `asked` wants a kernel with the target `code`: a portable target
// asks for what runs on such a device, one with a suffix for what is compiled for it.
bool serves_target(Target code, Target asked) noexcept;

// Asked for by GEMMERY_DETERMINISTIC, which a higher room reads: from then on kernels whose bits
// may vary for equal inputs are neither found nor supported. Not taken back.
void require_determinism() noexcept;
bool is_determinism_required() noexcept;

// Whether a kernel may be used then: the quick form, and the one with words.
bool keeps_determinism(const Kernel& kernel);
Status check_determinism(const Kernel& kernel);

}  // namespace gemmery::kernel
