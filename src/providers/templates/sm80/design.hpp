// SPDX-License-Identifier: Apache-2.0
// The sm80 kernels as values: their tiles, their operand rules, their names.
#pragma once

#include <gemmery/kernel.hpp>
#include <gemmery/problem.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "device/abi/simt_design.hpp"
#include "device/abi/sm80_faults.hpp"
#include "providers/templates/groups.hpp"
#include "providers/templates/split_schedule.hpp"

namespace gemmery::templates {

inline constexpr int sm80_version = 1;

// The convolution of a kernel: its kind and the dimensions of its images; 1-D images are 2-D ones
// with one row. A dgrad with a stride has values of its own.
enum class Sm80Conv : std::uint8_t {
  none,
  fprop_2d,
  fprop_3d,
  dgrad_2d,
  dgrad_3d,
  wgrad_2d,
  wgrad_3d,
  strided_dgrad_2d,
  strided_dgrad_3d
};
inline constexpr std::size_t sm80_conv_count = 9;
constexpr bool has_phases(Sm80Conv conv) noexcept { return conv >= Sm80Conv::strided_dgrad_2d; }
abi::ConvolutionKind kind_of(Sm80Conv conv) noexcept;
int dimensions_of(Sm80Conv conv) noexcept;

// An sm80 kernel's design apart from its operand rules; stored in DesignBytes. It has no padding,
// so equal tiles have equal bytes.
struct Sm80Tile {
  std::uint16_t m;
  std::uint16_t n;
  std::uint16_t k;
  std::uint8_t warps_m;
  std::uint8_t warps_n;
  std::uint8_t warps_k = 1;
  std::uint8_t stages = 3;
  abi::Raster raster = {.along = abi::Along::m, .band = 8};
  abi::SplitMode split = abi::SplitMode::none;
  std::uint8_t mma_k = 0;  // as in abi::Sm80Design
  abi::GroupSchedule groups = abi::GroupSchedule::none;
  abi::IndexedExtent indexed = abi::IndexedExtent::none;
  std::uint16_t slices = 1;     // of k, in serial and parallel
  bool clears_outside = false;  // sets elements of out in no group to zero
  Sm80Conv conv = Sm80Conv::none;

  friend bool operator==(const Sm80Tile&, const Sm80Tile&) = default;
};
static_assert(sizeof(Sm80Tile) == 20);

// How the products of a problem are formed, by its types and `math`; nullopt if they are not
// supported.
std::optional<abi::MmaMath> sm80_math(DType a, DType b, DType accumulator, Math math) noexcept;

// Every supported combination of types; enumeration and explanations iterate over them.
struct Sm80Products {
  DType a;
  DType b;
  DType accumulator;
  Math math;
};
std::span<const Sm80Products> sm80_products();

// True if one type is float16 or bfloat16 and the other one has codes that kernels decode to it;
// the type of the products.
bool is_mixed_sm80(DType a, DType b) noexcept;
DType multiplied_type(DType a, DType b) noexcept;
// False for scales of an operand that is not decoded.
bool has_scales_of_codes(const OperandRules& rules) noexcept;
// The types of codes of listed kernels. Integers are multiplied by floats only with a scale.
std::span<const DType> sm80_codes() noexcept;

std::span<const DType> sm80_outputs(DType accumulator) noexcept;

// The operand rules that discovery offers for this type: of A and B, and of out and C. By name, a
// kernel may have any alignment from the element's width to 16 bytes.
std::vector<OperandRule> sm80_input_rules(DType dtype);
std::vector<OperandRule> sm80_output_rules(DType dtype);

// For operands of which one is decoded: adjacent along k; elements that share bytes in units of at
// least 4 bytes.
std::vector<OperandRule> sm80_mixed_input_rules(DType dtype, bool is_a);

// For convolutions, whose channels are adjacent: also 8 bytes.
std::vector<OperandRule> sm80_conv_input_rules(DType dtype);

// For groups that may end anywhere: also single elements of a row or column.
std::vector<OperandRule> sm80_grouped_output_rules(DType dtype);

// The forms of kernels of groups: what indices address, and whether elements of out in no group
// become zero.
struct Sm80GroupForm {
  abi::IndexedExtent indexed = abi::IndexedExtent::none;
  bool clears_outside = false;

  friend bool operator==(const Sm80GroupForm&, const Sm80GroupForm&) = default;
};
Sm80GroupForm group_form(const Groups& groups) noexcept;

// The tiles that discovery offers for these operands, best for large problems first, without splits
// of k.
std::vector<Sm80Tile> sm80_tiles(const OperandRules& rules, const Sm80GroupForm& form = {},
                                 Sm80Conv conv = Sm80Conv::none);
// A tile with k split `slices` times, or streamed.
Sm80Tile with_split(Sm80Tile tile, abi::SplitMode mode, std::uint16_t slices) noexcept;

// The same tile in a grouped kernel.
Sm80Tile with_groups(Sm80Tile tile, abi::GroupSchedule schedule) noexcept;
// The same, if the design has registers for the schedule.
std::optional<Sm80Tile> scheduled_tile(const Sm80Tile& tile, const OperandRules& rules,
                                       abi::GroupSchedule schedule) noexcept;

// True if the kernel computes out^T = B^T A^T: for a column-major out, or for columns by index,
// which are then rows.
bool is_turned_sm80(const OperandRules& rules, const Sm80Tile& tile) noexcept;

// True if kernels with these operands support these indices: rows of a row-major A (columns of a
// column-major B); out and C must not be contiguous across rows (columns).
bool takes_indices(const OperandRules& rules, abi::IndexedExtent indexed) noexcept;
// The layout that out and C of such kernels do not have; nullopt if any will do.
std::optional<LayoutRule> layout_along(abi::IndexedExtent indexed) noexcept;

// The design as the device sees it.
abi::Sm80Design sm80_design(const OperandRules& rules, const Sm80Tile& tile) noexcept;
abi::Sm80Design sm80_design(const Kernel& kernel) noexcept;
Sm80Tile sm80_tile(const Kernel& kernel) noexcept;

// Rows and columns of the computed matrix, and its tiles.
struct Sm80Extents {
  unsigned rows;
  unsigned columns;
  unsigned tile_rows;
  unsigned tile_columns;
};
Sm80Extents sm80_extents(const OperandRules& rules, const Sm80Tile& tile,
                         const GemmProblem& problem) noexcept;

// The tile in rows and columns of out, also if the kernel computes its transpose.
GroupTileExtents extents_in_out(const Sm80Tile& tile, const OperandRules& rules) noexcept;

// "128x128x32", "2x2x1", "none", "parallel4"
std::string tile_text(const Sm80Tile& tile);
std::string warps_text(const Sm80Tile& tile);
SplitWord split_word(const Sm80Tile& tile) noexcept;
std::string split_text(const Sm80Tile& tile);

// "device", "persistent", "host", "list"; empty for a kernel for one GEMM.
std::string_view schedule_text(abi::GroupSchedule schedule) noexcept;

// "sm80v1_gemm_bf16r16_bf16c16_bf16r16_acc-f32_mma_128x128x32_2x2x1_none_m8_s4". Names of kernels
// for grouped products are followed by "_groups", "_groups-persistent", "_groups-host" or
// "_groups-list", and then by "-rows" or "-columns" and "-zero"; those of kernels for convolutions
// by "_conv2d-fprop" and the like; those of kernels with scales by "_scaled-none-bf16.zero.u4".
std::string sm80_name(const Kernel& kernel);

// The rules and tile of a name; nullopt for other names and for illegal designs.
struct Sm80Parts {
  OperandRules rules;
  Sm80Tile tile;
  EpilogueId epilogue = default_epilogue;
};
std::optional<Sm80Parts> parse_sm80_name(std::string_view name);

}  // namespace gemmery::templates
