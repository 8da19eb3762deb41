// SPDX-License-Identifier: Apache-2.0
// The sm90 kernels as values: their tiles, the device's description of them, their names.
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
#include "providers/templates/split_schedule.hpp"

namespace gemmery::templates {

inline constexpr int sm90_version = 7;
inline constexpr std::array sm90_targets{Target{90, 'a'}};

// What an sm90 kernel is beside its operand rules; kept in DesignBytes. Where out is column major
// the kernel computes out^T: m counts its rows there. No padding, so that equal tiles are equal
// bytes.
struct Sm90Tile {
  std::uint16_t m;
  std::uint16_t n;
  std::uint8_t cluster_m;
  std::uint8_t cluster_n;
  std::uint8_t stages;
  abi::Schedule schedule = abi::Schedule::cooperative;
  // What discovery offers: at bf16 4096^3 and 8192^3, in all layouts, m2 to m32 and n2 to n16 are
  // within 3 % of each other in no lasting order, which is what the board moves by itself (H200,
  // 2026-11-21, bench/results/h200-sm90-launch.md).
  abi::Raster raster{.along = abi::Along::m, .band = 8};
  std::uint8_t split_k = 1;
  // Whether a wgmma adds the row vector that a program adds to the sums first: for such programs.
  bool adds_vector = false;
  // How blocks share the k of a tile through the workspace, and in how many slices; 1 of a stream.
  std::uint8_t slices = 1;
  abi::SplitMode split = abi::SplitMode::none;
  // Whether an operand that wgmma takes K-major only goes through registers: that of the two
  // which the kernel has as A (`is_turned`).
  bool by_registers = false;
  // Whether batches may be arrays of pointers: where any of the problem is.
  bool has_pointers = false;

  friend bool operator==(const Sm90Tile&, const Sm90Tile&) = default;
};
static_assert(sizeof(Sm90Tile) == 16);

// Rules of the same class are offered the same tiles, of the same bytes and registers.
inline constexpr std::size_t sm90_tile_class_count = 1152;
std::size_t sm90_tile_class(const OperandRules& rules) noexcept;
// Some rules of a class.
OperandRules sm90_rules_of_class(std::size_t index) noexcept;

// Those that are offered for operands of these rules, large ones first, with all stages that fit
// and the default raster.
std::span<const Sm90Tile> sm90_tiles(const OperandRules& rules) noexcept;
// Those that are offered to programs alone, likewise: three warpgroups in rotation, with and
// without a wgmma for what a program adds first.
std::span<const Sm90Tile> sm90_program_tiles(const OperandRules& rules) noexcept;
inline bool is_for_programs(const Sm90Tile& tile) noexcept {
  return tile.schedule == abi::Schedule::rotation;
}
// Those whose k is split within a cluster, likewise. They are for problems of few tiles, small ones
// and a long k.
std::span<const Sm90Tile> sm90_split_tiles(const OperandRules& rules) noexcept;
// Those whose k is split through the workspace, likewise: in slices, also for more blocks than a
// cluster has, and in streams, for tiles that fill little of their last wave.
std::span<const Sm90Tile> sm90_part_tiles(const OperandRules& rules) noexcept;
// Those where an operand goes through registers, likewise: of 8 bits, for the default program.
std::span<const Sm90Tile> sm90_register_tiles(const OperandRules& rules) noexcept;

// All of them, each at its number.
inline constexpr abi::Schedule sm90_schedules[] = {
    abi::Schedule::cooperative, abi::Schedule::ping_pong, abi::Schedule::rotation};

// Every combination of types that is served: what enumeration and explanations walk.
struct Sm90Products {
  DType a;
  DType b;
  DType accumulator;
  Math math;

  friend bool operator==(const Sm90Products&, const Sm90Products&) = default;
};
std::span<const Sm90Products> sm90_products() noexcept;
// Those of a problem: 8-bit floats are promoted where it does not choose.
std::optional<Sm90Products> sm90_products_of(const GemmProblem& problem) noexcept;
// Of out and C, by the type of A.
std::span<const DType> sm90_outputs(DType input) noexcept;

// The device's own description. The kernel must be of this family.
abi::Sm90Design sm90_design(const OperandRules& rules, const Sm90Tile& tile) noexcept;
abi::Sm90Design sm90_design(const Kernel& kernel);

// Whether there is a row vector that a wgmma can add for a program.
bool has_vector_addend(const ProgramTensors& tensors, const abi::StoredShare& share) noexcept;

// The shared memory that a program takes, and the design with it.
int program_bytes(const ProgramTensors& tensors, const abi::StoredShare& share) noexcept;
abi::Sm90Design with_program(abi::Sm90Design design, const ProgramTensors& tensors) noexcept;
Sm90Tile sm90_tile(const Kernel& kernel) noexcept;

// Whether the device computes out^T = B^T A^T: because out is column major, or because B is the
// operand that goes through registers, which the device has as A.
bool is_turned(const OperandRules& rules) noexcept;
bool is_turned(const OperandRules& rules, const Sm90Tile& tile) noexcept;
bool is_turned(const Kernel& kernel) noexcept;
// Whether the kernel stores out by pairs of rows, as it has them: it is turned for its operands,
// not for out, or the reverse.
bool has_adjacent_rows(const OperandRules& rules, const Sm90Tile& tile) noexcept;
// Whether out can be stored so.
bool can_store(const OperandRules& rules, const Sm90Tile& tile) noexcept;

// Extents of out as the device sees them, and how many tiles of a whole cluster cover them.
struct Sm90Extents {
  unsigned rows;
  unsigned columns;
};
struct Sm90TileCounts {
  unsigned rows;
  unsigned columns;
};
Sm90Extents extents_of(bool is_turned, const GemmProblem& problem) noexcept;
Sm90TileCounts count_tiles(const Sm90Extents& extents, const Sm90Tile& tile) noexcept;

// "sm90v7_gemm_bf16r16_bf16c16_bf16r16_acc-f32_128x256x64_1x1_coop_m8_s4", with "_c-bf16r16" at the
// end where C is read, "s4_packab" where copies of A and B are multiplied, and
// "s4_rega" where A goes through registers, "s4_pointers" where batches may be by pointers, and
// "wgmma-promoted_128x256x128" where the problem's math is not native. "1x1_k4": the four blocks of
// a cluster have shares of k; "1x1_parallel4", "1x1_serial4", "1x1_stream": blocks of the launch
// have.
std::string sm90_name(const Kernel& kernel);

// The rules and tile that a name spells; nothing for other names, and for designs that are not
// legal.
struct Sm90Parts {
  OperandRules rules;
  Sm90Tile tile;
  EpilogueId epilogue = default_epilogue;
};
std::optional<Sm90Parts> parse_sm90_name(std::string_view name);

// "128x256x64", "coop", "pingpong", "rotation", or "rotation-add" where a wgmma adds a vector, and
// "m8" for bands of 8 tiles along m, and "a", "b" or "ab" of which copies are multiplied, or ""
std::string tile_text(const OperandRules& rules, const Sm90Tile& tile);
// "4" of a cluster's blocks, or "parallel4", "serial4", "stream".
SplitWord split_word(const Sm90Tile& tile) noexcept;
std::string split_text(const Sm90Tile& tile);
std::string schedule_text(const Sm90Tile& tile);
std::string raster_text(abi::Raster raster);
std::string repacked_text(const OperandRules& rules);
// "a" or "b" if that operand goes through registers, else "".
std::string register_text(const OperandRules& rules, const Sm90Tile& tile);

}  // namespace gemmery::templates
