// SPDX-License-Identifier: Apache-2.0
// The sm90 kernels as values: their tiles, their designs as the device sees them, their names.
#pragma once

#include <gemmery/kernel.hpp>
#include <gemmery/problem.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "device/abi/sm90_faults.hpp"
#include "device/abi/sm90_program.hpp"
#include "providers/templates/epilogue_parameters.hpp"
#include "providers/templates/groups.hpp"
#include "providers/templates/split_schedule.hpp"

namespace gemmery::templates {

inline constexpr int sm90_version = 7;
inline constexpr std::array sm90_targets{Target{90, 'a'}};

// The form of problem that a kernel multiplies: strided batches, or batches by pointers; groups
// with sizes in memory or in a table from the host, with zeros outside of groups, or with rows by
// index; a list of problems; or a convolution, by its kind and the number of its spatial
// dimensions.
enum class Sm90Form : std::uint8_t {
  strided,
  pointers,
  groups,
  group_table,
  groups_with_zeros,
  group_table_with_zeros,
  scattered_groups,
  gathered_groups,
  gathered_scattered_groups,
  gathered_groups_with_zeros,
  listed,
  fprop_1d,
  fprop_2d,
  fprop_3d,
  dgrad_1d,
  dgrad_2d,
  dgrad_3d,
  wgrad_1d,
  wgrad_2d,
  wgrad_3d,
  strided_dgrad_1d,
  strided_dgrad_2d,
  strided_dgrad_3d,
  padded_wgrad_1d,
  padded_wgrad_2d,
  padded_wgrad_3d
};

inline constexpr Sm90Form sm90_group_forms[] = {Sm90Form::groups,
                                                Sm90Form::group_table,
                                                Sm90Form::groups_with_zeros,
                                                Sm90Form::group_table_with_zeros,
                                                Sm90Form::scattered_groups,
                                                Sm90Form::gathered_groups,
                                                Sm90Form::gathered_scattered_groups,
                                                Sm90Form::gathered_groups_with_zeros,
                                                Sm90Form::listed};
inline constexpr Sm90Form sm90_conv_forms[] = {
    Sm90Form::fprop_1d,         Sm90Form::fprop_2d,         Sm90Form::fprop_3d,
    Sm90Form::dgrad_1d,         Sm90Form::dgrad_2d,         Sm90Form::dgrad_3d,
    Sm90Form::wgrad_1d,         Sm90Form::wgrad_2d,         Sm90Form::wgrad_3d,
    Sm90Form::strided_dgrad_1d, Sm90Form::strided_dgrad_2d, Sm90Form::strided_dgrad_3d,
    Sm90Form::padded_wgrad_1d,  Sm90Form::padded_wgrad_2d,  Sm90Form::padded_wgrad_3d};

// An sm90 kernel's design apart from its operand rules; stored in DesignBytes. If out is column
// major, the kernel computes out^T, and m counts the rows of out^T. It has no padding, so equal
// tiles have equal bytes.
struct Sm90Tile {
  std::uint16_t m;
  std::uint16_t n;
  std::uint8_t cluster_m;
  std::uint8_t cluster_n;
  std::uint8_t stages;
  abi::Schedule schedule = abi::Schedule::cooperative;
  // The raster of all kernels that discovery offers: at bf16 4096^3 and 8192^3, in all layouts, m2
  // to m32 and n2 to n16 are within 3 % of each other in no consistent order, which is the board's
  // own noise (H200, 2026-11-21, bench/results/h200-sm90-launch.md).
  abi::Raster raster{.along = abi::Along::m, .band = 8};
  std::uint8_t split_k = 1;
  // True if a wgmma adds the row vector that a program adds to the accumulators first.
  bool adds_vector = false;
  // How blocks split the k of a tile through the workspace, and in how many slices; 1 for a stream.
  std::uint8_t slices = 1;
  abi::SplitMode split = abi::SplitMode::none;
  // True if an operand goes through registers, which is A in the kernel (`is_turned`): one that
  // wgmma takes only K-major, or codes.
  bool by_registers = false;
  Sm90Form form = Sm90Form::strided;
  // The scales of blocks along k: what a stage has of them, and how many k share theirs.
  abi::ScaleVectors scale_vectors = abi::ScaleVectors::none;
  std::uint8_t scaled_k = 0;

  bool has_pointers() const noexcept { return form == Sm90Form::pointers; }
  bool has_groups() const noexcept { return form >= Sm90Form::groups && form <= Sm90Form::listed; }
  bool has_group_table() const noexcept {
    return form == Sm90Form::group_table || form == Sm90Form::group_table_with_zeros;
  }
  bool has_list() const noexcept { return form == Sm90Form::listed; }
  bool clears_outside() const noexcept {
    return form == Sm90Form::groups_with_zeros || form == Sm90Form::group_table_with_zeros ||
           form == Sm90Form::gathered_groups_with_zeros;
  }
  bool scatters_rows() const noexcept {
    return form == Sm90Form::scattered_groups || form == Sm90Form::gathered_scattered_groups;
  }
  bool gathers_rows() const noexcept {
    return form == Sm90Form::gathered_groups || form == Sm90Form::gathered_scattered_groups ||
           form == Sm90Form::gathered_groups_with_zeros;
  }
  bool has_scales() const noexcept { return scale_vectors != abi::ScaleVectors::none; }
  bool is_convolution() const noexcept { return form >= Sm90Form::fprop_1d; }
  bool has_phases() const noexcept {
    return form >= Sm90Form::strided_dgrad_1d && form <= Sm90Form::strided_dgrad_3d;
  }
  bool has_tap_columns() const noexcept { return form >= Sm90Form::padded_wgrad_1d; }
  friend bool operator==(const Sm90Tile&, const Sm90Tile&) = default;
};
static_assert(sizeof(Sm90Tile) == 18);

// Discovery offers the same tiles for all rules of a class; they have the same bytes and registers.
inline constexpr std::size_t sm90_tile_class_count = 1920;
std::size_t sm90_tile_class(const OperandRules& rules) noexcept;
// Rules that belong to a class.
OperandRules sm90_rules_of_class(std::size_t index) noexcept;

// The tiles that discovery offers for operands of these rules, large ones first, with all stages
// that fit and the default raster.
std::span<const Sm90Tile> sm90_tiles(const OperandRules& rules) noexcept;
// Likewise for programs only: three warpgroups in rotation, with and without a wgmma that adds the
// program's row vector.
std::span<const Sm90Tile> sm90_program_tiles(const OperandRules& rules) noexcept;
inline bool is_for_programs(const Sm90Tile& tile) noexcept {
  return tile.schedule == abi::Schedule::rotation;
}
// Likewise with k split within a cluster: for problems with few small tiles and a long k.
std::span<const Sm90Tile> sm90_split_tiles(const OperandRules& rules) noexcept;
// Likewise with k split through the workspace: in slices, also for more blocks than a cluster has,
// and in streams, for tiles that fill little of their last wave.
std::span<const Sm90Tile> sm90_part_tiles(const OperandRules& rules) noexcept;
// Likewise with as many slices as a problem has at once (`slices_at_once`), within clusters, too.
std::span<const Sm90Tile> sm90_slice_tiles(const OperandRules& rules) noexcept;
// Likewise with a register operand, of 8 bits, for the default program.
std::span<const Sm90Tile> sm90_register_tiles(const OperandRules& rules) noexcept;

// Likewise for groups: also tiles with few rows, or with few columns.
std::span<const Sm90Tile> sm90_group_tiles(const OperandRules& rules) noexcept;

// All schedules, indexed by their value.
inline constexpr abi::Schedule sm90_schedules[] = {
    abi::Schedule::cooperative, abi::Schedule::ping_pong, abi::Schedule::rotation};

// Every supported combination of types; enumeration and explanations iterate over them.
struct Sm90Products {
  DType a;
  DType b;
  DType accumulator;
  Math math;

  friend bool operator==(const Sm90Products&, const Sm90Products&) = default;
};
std::span<const Sm90Products> sm90_products() noexcept;
// The types of a problem. 8-bit floats are promoted by default.
std::optional<Sm90Products> sm90_products_of(const GemmProblem& problem) noexcept;
// Types of out and of C, by the types of A and B.
std::span<const DType> sm90_outputs(DType a, DType b) noexcept;
std::span<const DType> sm90_addends(DType a, DType b) noexcept;

// True if one operand has codes that are decoded to the other one's type, a 16-bit float; and if
// that is A.
bool is_mixed_sm90(DType a, DType b) noexcept;
bool decodes_a_sm90(DType a, DType b) noexcept;

// The rules of a kernel for lists: threads store to out, and read elements of C.
OperandRules listed_rules(OperandRules rules) noexcept;

// True if the design is legal for these rules. Kernels of convolutions are never transposed, and
// repack nothing.
bool is_legal(const OperandRules& rules, const Sm90Tile& tile) noexcept;

// The design as the device sees it. The kernel must be of this family.
abi::Sm90Design sm90_design(const OperandRules& rules, const Sm90Tile& tile) noexcept;
abi::Sm90Design sm90_design(const Kernel& kernel);

// True if the program has a row vector that a wgmma can add.
bool has_vector_addend(const ProgramTensors& tensors, const abi::StoredShare& share) noexcept;

// The shared memory that a program needs, and the design with it.
int program_bytes(const ProgramTensors& tensors, const abi::StoredShare& share) noexcept;
abi::Sm90Design with_program(abi::Sm90Design design, const ProgramTensors& tensors) noexcept;
Sm90Tile sm90_tile(const Kernel& kernel) noexcept;

// True if the device computes out^T = B^T A^T: because out is column major, B has codes, or B is
// the register operand, which must be A on the device.
bool is_turned(const OperandRules& rules) noexcept;
bool is_turned(const OperandRules& rules, const Sm90Tile& tile) noexcept;
bool is_turned(const Kernel& kernel) noexcept;
// True if the kernel stores out by pairs of rows: it is transposed for its operands but not for
// out, or the reverse.
bool has_adjacent_rows(const OperandRules& rules, const Sm90Tile& tile) noexcept;
// True if out can be stored in that way.
bool can_store(const OperandRules& rules, const Sm90Tile& tile) noexcept;

// Extents of out as the device sees them (in a convolution the rows of the largest phase, and the
// columns of taps in whole units), and the tiles of a whole cluster that cover them.
struct Sm90Extents {
  unsigned rows;
  unsigned columns;
};
struct Sm90TileCounts {
  unsigned rows;
  unsigned columns;
};
Sm90Extents extents_of(bool is_turned, const GemmProblem& problem) noexcept;
GroupTileExtents extents_in_out(const Sm90Tile& tile, bool is_turned) noexcept;
Sm90TileCounts count_tiles(const Sm90Extents& extents, const Sm90Tile& tile) noexcept;

// "sm90v7_gemm_bf16r16_bf16c16_bf16r16_acc-f32_128x256x64_1x1_coop_m8_s4". Optional words are:
// "s4_packab" if copies of A and B are multiplied, "s4_rega" if A goes through registers,
// "s4_pointers" if batches may be by pointers, "s4_groups-persistent" or "s4_groups-host" for
// groups, "s4_groups-list" for a list of problems,
// "s4_scale128-rows" if scales of rows, "s4_scale32-both" if scales of rows and columns multiply
// the products of so many k, "wgmma-promoted_128x256x128" if the problem's math is not native,
// "1x1_k4" if the four blocks of a cluster split k, "1x1_parallel4", "1x1_serial4" or "1x1_stream"
// if blocks of the launch split k, "1x1_k4_parallel4" if both do. "_c-bf16r16" at the end is the
// rule of C, if it is read.
std::string sm90_name(const Kernel& kernel);

// The rules and tile of a name; nullopt for other names and for illegal designs.
struct Sm90Parts {
  OperandRules rules;
  Sm90Tile tile;
  EpilogueId epilogue = default_epilogue;
};
std::optional<Sm90Parts> parse_sm90_name(std::string_view name);

// "128x256x64"; "coop", "pingpong", "rotation", or "rotation-add" if a wgmma adds a vector; "m8"
// for bands of 8 tiles along m; "a", "b" or "ab": the operands that are repacked, or "".
std::string tile_text(const OperandRules& rules, const Sm90Tile& tile);
// "4" of a cluster's blocks, or "parallel4", "serial4", "stream", or "k4_parallel4".
SplitWord split_word(const Sm90Tile& tile) noexcept;
std::string split_text(const Sm90Tile& tile);
std::string schedule_text(const Sm90Tile& tile);
std::string raster_text(abi::Raster raster);
std::string repacked_text(const OperandRules& rules);
// "128-rows", or "" without scales.
std::string scale_text(const Sm90Tile& tile);
// "conv2d_fprop", or "a GEMM".
std::string operation_text(Sm90Form form);
// "a" or "b" if that operand goes through registers, else "".
std::string register_text(const OperandRules& rules, const Sm90Tile& tile);

}  // namespace gemmery::templates
