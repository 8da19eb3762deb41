// SPDX-License-Identifier: Apache-2.0
// Checks a problem against a kernel's operand rules, and a stream against its operands.
#pragma once

#include <gemmery/kernel.hpp>
#include <gemmery/problem.hpp>
#include <gemmery/status.hpp>

#include <optional>
#include <string>
#include <string_view>

namespace gemmery::kernel {

// True if the problem satisfies every rule; the quick form for matching.
bool keeps_rules(const OperandRules& rules, const GemmProblem& problem) noexcept;

// The same, with the first broken rule in words.
Status check_rules(const OperandRules& rules, const GemmProblem& problem);

// The rules of a kernel that reads these companions.
CompanionRules companion_rules(const OperandCompanions& companions) noexcept;

// The part of a kernel's name for its companions, "_scaled-e8m0.swizzled-none" with A's and B's,
// and for their programs, "_a-0123456789ab"; empty without any. Removes it from the end of a name;
// nullopt for a suffix that is none.
std::string companion_suffix(const OperandRules& rules);
struct CompanionSuffix {
  CompanionRules a, b;
  OperandProgramsId programs = OperandProgramsId::none;
};
std::optional<CompanionSuffix> take_companion_suffix(std::string_view& name);

// True if a matrix has the layout of a rule; a matrix without elements has every layout.
bool keeps_layout(LayoutRule layout, const MatrixType& matrix, std::int64_t rows,
                  std::int64_t columns) noexcept;

// The alignment of all runs along a layout. A single column counts as row major, yet its rows may
// start one element apart (as may the columns of a single row): wide accesses cannot start there.
std::uint8_t run_alignment(LayoutRule layout, const MatrixType& matrix, std::int64_t rows,
                           std::int64_t columns) noexcept;

// Throws Error (invalid_argument) for a stream of another device than that of the operands.
void check_stream(Stream stream, Device operands);

// True if a kernel with the target `code` can be compiled for `asked`: the same target, or the same
// architecture if the kernel uses only portable instructions (sm_90 for sm_90a).
bool is_compiled_for(Target code, Target asked) noexcept;

// True if a query for the target `asked` includes a kernel with the target `code`. A portable
// target asks for code that runs on such a device, a target with a suffix for code compiled for it.
bool serves_target(Target code, Target asked) noexcept;

// Set by GEMMERY_DETERMINISTIC, which a higher room reads: from then on kernels whose bits may vary
// for equal inputs are neither found nor supported. Cannot be undone.
void require_determinism() noexcept;
bool is_determinism_required() noexcept;

// True if a kernel may be used under that setting: the quick form, and the form with a reason.
bool keeps_determinism(const Kernel& kernel);
Status check_determinism(const Kernel& kernel);

}  // namespace gemmery::kernel
