// SPDX-License-Identifier: Apache-2.0
// Faults that are planted in the device code of kernels, each a few places of the source replaced:
// what finds them is worth something.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace gemmery::conformance {

// Which sound kernel a fault is planted in.
// A chained one is launched behind itself, on what it has stored.
enum class SoundKernel : std::uint8_t {
  simt,
  groups,          // simt, grouped problems
  indexed_groups,  // simt, with rows by index
  listed,          // simt, lists of problems
  conv_fprop,      // simt, convolutions: pixels of A by taps
  conv_dgrad,      // both operands by pixel and tap
  conv_wgrad,      // taps of B by pixels
  cooperative,
  ping_pong,
  pair_of_blocks,
  chained,
  split,             // k over two blocks
  repacked,          // copies of both operands, A of any strides; threads store out
  pointers,          // matrices anywhere, and a C
  wgmma_groups,      // grouped problems
  wgmma_outside,     // zeros outside of groups
  wgmma_scatter,     // rows of groups that indices name
  wgmma_weights,     // rows of groups that indices name, with a program that weighs them
  wgmma_gather,      // rows of A that indices name
  wgmma_group_sums,  // grouped problems, with a program's reductions
  wgmma_listed,      // lists of problems, with a C
  wgmma_fprop,       // convolutions, images in im2col mode; a pair of blocks shares A
  wgmma_dgrad,       // likewise, k over two blocks
  wgmma_wgrad,       // likewise; a pair of blocks shares B
  wgmma_phases,      // a dgrad with a stride
  wgmma_taps,        // a wgrad whose taps have more columns than channels
  far,               // elements far from each other, and a C; threads store out
  transposed,        // int8, both operands transposed in shared memory
  registers,         // int8, B through registers, pairs of rows of out^T stored at once
  promoted,          // 8-bit floats, whose products are added to accumulators by FADD
  bf16_parts,        // float32 by bf16x9
  tf32_parts,        // float32 by tf32x3, both operands transposed
  rotation,          // three consumers in turn, with a program
  addition,          // likewise, and a wgmma adds what the program adds first
  reduction,         // two consumers, with a program that makes single values of out
  parallel,          // two consumers, k in slices that meet at the last to arrive
  serial,            // likewise, in slices that add up one after the other
  stream,            // consumers in turn, every block with as many blocks of k
  promoted_parts,    // 8-bit floats, promoted, in slices that meet at the last to arrive
  transposed_parts,  // int8, transposed, in slices that add up one after the other
  part_reduction,    // slices that meet at the last to arrive, with a program's reductions
  mma,               // sm80: two groups of warps share each block of k
  mma_parallel,      // k in slices that meet at the last to arrive
  mma_serial,        // k in slices that add up one after the other
  mma_narrow,        // float32 by f16x3, with m16n8k8
  mma_groups,        // grouped problems, a block for every tile
  mma_persistent,    // grouped problems, three blocks
  mma_table,         // grouped problems, sizes in host memory
  mma_indexed,       // grouped problems, three blocks, rows by index
  mma_outside,       // rows of A by index, in single elements; zeros outside of groups
  mma_listed,        // lists of problems
  mma_fprop,         // convolutions: rows of pixels by taps
  mma_dgrad,         // likewise, and lines of B by taps
  mma_wgrad,         // lines of B by pixels
  mma_phases,        // a dgrad with a stride
  skinny,            // B adjacent along k
  skinny_columns,    // B adjacent along columns, k in slices
  depthwise,         // strips of several taps
  depthwise_phases,  // a dgrad with a stride
  depthwise_wgrad    // chunks of taps, pixels in slices
};

// What a sound kernel makes of A B, in the words of a problem line; empty: A B itself.
struct SoundProgram {
  std::string_view text;
  std::string_view operands;
};
SoundProgram program_of(SoundKernel kernel) noexcept;

// One place of the source.
struct Edit {
  std::string_view sound;
  std::string_view faulty;
  bool is_everywhere = false;  // otherwise `sound` stands once
};

// Whether a fault shows where it is looked for: always, or not as a rule.
enum class Shows : std::uint8_t { surely, seldom };

struct DeviceFault {
  std::string_view name;
  SoundKernel kernel;
  std::array<Edit, 2> edits{};
  bool maps_a_row_too_many = false;  // planted on the host: in the tensor map of out
  bool maps_a_later_corner = false;  // likewise, in that of images: the pixel box is moved by one
  Shows on_gpu = Shows::surely;      // in wrong results, or to a sanitizer
  Shows on_emulator = Shows::surely;

  bool is_none() const { return name == "nothing"; }
};

constexpr bool is_simt(SoundKernel kernel) noexcept { return kernel <= SoundKernel::conv_wgrad; }
constexpr bool is_of_convolutions(SoundKernel kernel) noexcept {
  return (kernel >= SoundKernel::conv_fprop && kernel <= SoundKernel::conv_wgrad) ||
         (kernel >= SoundKernel::wgmma_fprop && kernel <= SoundKernel::wgmma_taps) ||
         (kernel >= SoundKernel::mma_fprop && kernel <= SoundKernel::mma_phases) ||
         kernel >= SoundKernel::depthwise;
}

// Whether it is one of the family sm80.
constexpr bool is_mma(SoundKernel kernel) noexcept {
  return kernel >= SoundKernel::mma && kernel <= SoundKernel::mma_phases;
}
constexpr bool is_mma_of_groups(SoundKernel kernel) noexcept {
  return kernel >= SoundKernel::mma_groups && kernel <= SoundKernel::mma_listed;
}
constexpr bool is_depthwise(SoundKernel kernel) noexcept {
  return kernel >= SoundKernel::depthwise;
}
constexpr bool is_skinny(SoundKernel kernel) noexcept {
  return kernel == SoundKernel::skinny || kernel == SoundKernel::skinny_columns;
}

// Whether blocks of sm90 share tiles through the workspace.
constexpr bool has_parts(SoundKernel kernel) noexcept {
  return kernel >= SoundKernel::parallel && kernel <= SoundKernel::part_reduction;
}

// For each sound kernel one fault that is called "nothing".
std::span<const DeviceFault> device_faults();
std::span<const DeviceFault> skinny_faults() noexcept;       // of them
std::span<const DeviceFault> pointer_faults() noexcept;      // of them
std::span<const DeviceFault> far_faults() noexcept;          // of them
std::span<const DeviceFault> group_faults() noexcept;        // of them
std::span<const DeviceFault> conv_faults() noexcept;         // of them
std::span<const DeviceFault> mma_group_faults() noexcept;    // of them
std::span<const DeviceFault> wgmma_group_faults() noexcept;  // of them
std::span<const DeviceFault> mma_conv_faults() noexcept;     // of them
std::span<const DeviceFault> wgmma_conv_faults() noexcept;   // of them
std::span<const DeviceFault> depthwise_faults() noexcept;    // of them

// "sm90 coop, reductions".
std::string_view name(SoundKernel kernel) noexcept;

// Whether "sm90 coop, reductions, nothing" holds what GEMMERY_TEST_FAULTS says; any does where it
// says nothing.
bool is_wanted(const DeviceFault& fault);

// Which of a fault's places the source lacks, or nothing: the table has to follow the source.
std::string find_misfit(std::string_view source, const DeviceFault& fault);

// The source with all embedded headers in it and the fault planted. Aborts if it does not fit.
std::string plant(std::string_view source, const DeviceFault& fault);

// The same source in which threads sleep at random before they act, by role, place and turn; the
// seed says how. What is too early somewhere by luck only shows.
std::string plant_delays(std::string source, std::uint32_t seed);

}  // namespace gemmery::conformance
