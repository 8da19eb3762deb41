// SPDX-License-Identifier: Apache-2.0
// The skinny kernels as values: tiles, operand rules, names.
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

// The short index of out.
enum class SkinnySide : std::uint8_t { m, n };

// A skinny kernel's design apart from its operand rules; stored in DesignBytes. It has no padding,
// so equal tiles have equal bytes.
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

// The types of out and C of kernels that multiply these types with this accumulator; empty if none
// does.
std::span<const DType> skinny_outputs(DType a, DType b, DType accumulator) noexcept;

// Every supported combination of operand types, with its accumulator.
struct SkinnyProducts {
  DType a;
  DType b;
  DType accumulator;
};
std::vector<SkinnyProducts> skinny_products();

// The rules that discovery offers: for the streamed operand, for each layout the widest access
// first, with no more accumulators than fit into a thread's registers; for the other operand; for
// out and C. By name, a kernel may have any alignment from the element's width to 16 bytes.
std::vector<OperandRule> skinny_long_rules(DType dtype, SkinnySide side, std::uint8_t rows);
std::vector<OperandRule> skinny_short_rules(DType dtype, SkinnySide side);
std::vector<OperandRule> skinny_output_rules(DType dtype, SkinnySide side);

// True if a rule of the streamed operand lets threads load along columns of the computed matrix.
bool is_along_columns(const OperandRule& streamed, SkinnySide side) noexcept;

// The number of columns that one access covers at most under a rule of out or C. The number of
// columns of the matrix must be a multiple of it.
std::int64_t skinny_widest_run(const OperandRule& rule) noexcept;

// The tiles that are offered for operands under these rules, without splits of k.
std::vector<SkinnyTile> skinny_tiles(const OperandRules& rules, SkinnySide side, std::uint8_t rows);

// The largest number of rows (or columns of out) of each kind of kernel.
inline constexpr std::array<std::uint8_t, 4> skinny_row_counts{1, 2, 4, 8};
// The smallest number of rows of a kernel that serves a short side of this extent; nullopt above 8.
std::optional<std::uint8_t> skinny_rows(std::int64_t extent) noexcept;

// The design as the device sees it.
abi::SkinnyDesign skinny_design(const OperandRules& rules, const SkinnyTile& tile) noexcept;
abi::SkinnyDesign skinny_design(const Kernel& kernel) noexcept;
SkinnyTile skinny_tile(const Kernel& kernel) noexcept;

constexpr bool is_turned(const SkinnyTile& tile) noexcept { return tile.side == SkinnySide::n; }

// Rows and columns of the computed matrix.
std::int64_t skinny_row_count(const SkinnyTile& tile, const GemmProblem& problem) noexcept;
std::int64_t skinny_column_count(const SkinnyTile& tile, const GemmProblem& problem) noexcept;

// Columns that one load covers. The streamed operand must have whole runs of them.
std::int64_t skinny_long_run(const abi::SkinnyDesign& design) noexcept;

// "m4"; "none" or "parallel8"
std::string rows_text(const SkinnyTile& tile);
SplitWord split_word(const SkinnyTile& tile) noexcept;

// "skinny1_gemm_bf16r16_bf16c16_bf16r16_acc-f32_m4_parallel8_256x4x2x32": rows, the split
// of k, then threads by loads by slots by lanes.
std::string skinny_name(const Kernel& kernel);

// The rules and tile of a name; nullopt for other names and for invalid designs.
struct SkinnyParts {
  OperandRules rules;
  SkinnyTile tile;
  EpilogueId epilogue = default_epilogue;
};
std::optional<SkinnyParts> parse_skinny_name(std::string_view name);

}  // namespace gemmery::templates
