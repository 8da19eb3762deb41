// SPDX-License-Identifier: Apache-2.0
// The simt kernels as values: their tiles, their operand rules, their names.
#pragma once

#include <gemmery/kernel.hpp>

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "device/abi/simt_design.hpp"

namespace gemmery::templates {

inline constexpr int simt_version = 1;

// The form of problem that a kernel computes: one GEMM or a batch; groups, whose tiles it finds on
// the device; groups with rows (or columns) by index; groups with sizes in host memory; a list of
// problems; a convolution, whose elements it finds by pixel and tap.
enum class SimtForm : std::uint8_t {
  gemm,
  ordered,
  indexed_rows,
  indexed_columns,
  in_table,
  listed,
  fprop,
  dgrad,
  wgrad,
  strided_dgrad
};
inline constexpr std::size_t simt_form_count = 10;
constexpr bool is_convolution(SimtForm form) noexcept { return form >= SimtForm::fprop; }
constexpr bool are_groups(SimtForm form) noexcept {
  return form != SimtForm::gemm && !is_convolution(form);
}

// A simt kernel's design apart from its operand rules; stored in DesignBytes. It has no padding, so
// equal tiles have equal bytes.
struct SimtTile {
  std::uint16_t m;
  std::uint16_t n;
  std::uint8_t k;
  std::uint8_t thread_m;
  std::uint8_t thread_n;
  std::uint8_t k_slices;
  std::uint8_t stages;
  SimtForm form = SimtForm::gemm;

  friend bool operator==(const SimtTile&, const SimtTile&) = default;
};
static_assert(sizeof(SimtTile) == 10);

// The arithmetic that a kernel's operands require.
enum class SimtArithmetic : std::uint8_t { f32, f64, integer };

// nullopt if operands of these types are not multiplied with this accumulator.
std::optional<SimtArithmetic> simt_arithmetic(DType a, DType b, DType accumulator) noexcept;

// The tiles that discovery offers for an arithmetic, and the types of out and C.
std::span<const SimtTile> simt_tiles(SimtArithmetic arithmetic,
                                     SimtForm form = SimtForm::gemm) noexcept;
std::span<const DType> simt_outputs(SimtArithmetic arithmetic) noexcept;

// The operand rules that discovery offers for this type: of A and B, and of out and C. Elements
// that share bytes have one rule, since they are read one by one.
struct SimtInputRules {
  std::array<OperandRule, 5> rules;
  std::size_t count;

  std::span<const OperandRule> span() const noexcept { return {rules.data(), count}; }
};
SimtInputRules simt_input_rules(DType dtype) noexcept;
std::array<OperandRule, 3> simt_output_rules(DType dtype) noexcept;

// The design as the device sees it. The kernel must be of this family.
abi::SimtDesign simt_design(const OperandRules& rules, const SimtTile& tile) noexcept;
abi::SimtDesign simt_design(const Kernel& kernel) noexcept;
SimtTile simt_tile(const Kernel& kernel) noexcept;

// Threads of a block.
constexpr int threads_of(const SimtTile& tile) noexcept {
  return tile.m / tile.thread_m * (tile.n / tile.thread_n) * tile.k_slices;
}

// Elements of one access to out (or C) along its contiguous index, 1 without one. The matrix must
// consist of whole such runs.
std::int64_t simt_run_elements(const OperandRule& rule, const SimtTile& tile,
                               SimtArithmetic arithmetic) noexcept;

// "simt1_gemm_f32r16_f32c16_f32r16_acc-f32_128x128x8_8x8_k1_s4", followed by "_groups",
// "_groups-rows", "_groups-columns", "_groups-host" or "_groups-list" for grouped products, or by
// "_fprop", "_dgrad" or "_wgrad" for convolutions. "_c-f32r16" at the end is the rule of C, if it
// is read.
std::string simt_name(const Kernel& kernel);

// The rules and tile of a name; nullopt for other names and for illegal designs.
struct SimtParts {
  OperandRules rules;
  SimtTile tile;
  EpilogueId epilogue = default_epilogue;
};
std::optional<SimtParts> parse_simt_name(std::string_view name);

// "128x128x8"
std::string tile_text(const SimtTile& tile);

}  // namespace gemmery::templates
