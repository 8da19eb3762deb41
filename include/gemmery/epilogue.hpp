// SPDX-License-Identifier: Apache-2.0
// The program that is applied to the accumulator before it is stored. This version knows the
// default program only.
#pragma once

#include <cstdint>
#include <string_view>

#include <gemmery/export.hpp>

namespace gemmery {

// Names an interned program that lives as long as the process; equal ids, equal programs.
enum class EpilogueId : std::uint32_t { linear_combination = 0 };

// D = alpha * accum + beta * C
inline constexpr EpilogueId default_epilogue = EpilogueId::linear_combination;

GEMMERY_API std::string_view text(EpilogueId epilogue) noexcept;

// Reads a program; white space does not matter. Throws Error (unsupported) for any but the default
// one, with the position at which it departs.
GEMMERY_API EpilogueId parse_epilogue(std::string_view program);

}  // namespace gemmery
