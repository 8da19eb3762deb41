// SPDX-License-Identifier: Apache-2.0
// The skinny kernels as values: their tiles, the operand rules they come with, their names.
#pragma once

#include <gemmery/device.hpp>
#include <gemmery/kernel.hpp>
#include <gemmery/problem.hpp>

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "device/abi/skinny_design.hpp"
#include "providers/templates/split_schedule.hpp"

namespace gemmery::templates {

inline constexpr int skinny_version = 1;

// The index of out that is short.
enum class SkinnySide : std::uint8_t { m, n };

// What a skinny kernel is beside its operand rules; kept in DesignBytes. No padding, so that equal
// tiles are equal bytes.
struct SkinnyTile {
  SkinnySide side = SkinnySide::m;
  std::uint8_t rows = 1;  // of the short side, at most
  std::uint8_t loads = 4;
  std::uint8_t slots = 2;
  std::uint8_t lanes = 32;
  std::uint8_t reserved = 0;
  std::uint16_t threads = 256;
  std::uint16_t slices = 1;  // of k

  friend bool operator==(const SkinnyTile&, const SkinnyTile&) = default;
};
static_assert(sizeof(SkinnyTile) == 10);

// What kernels accumulate products of these types in, and the types that they can round to (and
// read C in); nothing where they do not multiply them.
std::span<const DType> skinny_outputs(DType a, DType b, DType accumulator) noexcept;

// Every combination of operand types that is served, with its accumulator.
struct SkinnyProducts {
  DType a;
  DType b;
  DType accumulator;
};
std::vector<SkinnyProducts> skinny_products();

// What discovery offers: for the operand that is streamed, of each layout the widest first, with no
// more accumulators than a thread has room for; for the other one; for out and C. A kernel that is
// called by its name may have any alignment from the element's width to 16 bytes.
std::vector<OperandRule> skinny_long_rules(DType dtype, SkinnySide side, std::uint8_t rows);
std::vector<OperandRule> skinny_short_rules(DType dtype, SkinnySide side);
std::vector<OperandRule> skinny_output_rules(DType dtype, SkinnySide side);

// Whether a rule of the streamed operand lets threads load along columns of what is computed.
bool is_along_columns(const OperandRule& streamed, SkinnySide side) noexcept;

// Columns that one access under a rule of out or C covers at most: the matrix must hold such runs
// wholly.
std::int64_t skinny_widest_run(const OperandRule& rule) noexcept;

// The tiles that are offered for operands under these rules, without splits of k.
std::vector<SkinnyTile> skinny_tiles(const OperandRules& rules, SkinnySide side, std::uint8_t rows);

// Rows (or columns of out) that kernels have, at most.
inline constexpr std::array<std::uint8_t, 4> skinny_row_counts{1, 2, 4, 8};
// The smallest number of rows that a kernel has for a short side so long; nothing above 8.
std::optional<std::uint8_t> skinny_rows(std::int64_t extent) noexcept;

// The device's own description.
abi::SkinnyDesign skinny_design(const OperandRules& rules, const SkinnyTile& tile) noexcept;
abi::SkinnyDesign skinny_design(const Kernel& kernel) noexcept;
SkinnyTile skinny_tile(const Kernel& kernel) noexcept;

constexpr bool is_turned(const SkinnyTile& tile) noexcept { return tile.side == SkinnySide::n; }

// Rows and columns of what is computed.
std::int64_t skinny_row_count(const SkinnyTile& tile, const GemmProblem& problem) noexcept;
std::int64_t skinny_column_count(const SkinnyTile& tile, const GemmProblem& problem) noexcept;

// Columns that one load covers: the operand that is streamed must hold such runs wholly.
std::int64_t skinny_long_run(const abi::SkinnyDesign& design) noexcept;

// "m4"; "none" or "parallel8"
std::string rows_text(const SkinnyTile& tile);
SplitWord split_word(const SkinnyTile& tile) noexcept;

// "skinny1_gemm_bf16r16_bf16c16_bf16r16_acc-f32_m4_parallel8_256x4x2x32": rows, the split
// of k, then threads by loads by slots by lanes.
std::string skinny_name(const Kernel& kernel);

// The rules and tile that a name spells; nothing for other names, and for designs that are not
// legal.
struct SkinnyParts {
  OperandRules rules;
  SkinnyTile tile;
  EpilogueId epilogue = default_epilogue;
};
std::optional<SkinnyParts> parse_skinny_name(std::string_view name);

}  // namespace gemmery::templates
