// SPDX-License-Identifier: Apache-2.0
// Faults that are planted in the device code of kernels, each by replacing a few places of the
// source. The tests are judged by the faults that they find.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace gemmery::conformance {

// The correct kernel in which a fault is planted.
// A chained kernel is launched repeatedly, each time on its previous result.
enum class SoundKernel : std::uint8_t {
  simt,
  groups,          // simt, grouped problems
  indexed_groups,  // simt, with rows by index
  indexed_sums,    // likewise, with a program's reductions
  listed,          // simt, lists of problems
  conv_fprop,      // simt, convolutions: pixels of A by taps
  conv_dgrad,      // both operands by pixel and tap
  conv_wgrad,      // taps of B by pixels
  cooperative,
  ping_pong,
  pair_of_blocks,
  chained,
  split,             // k over two blocks
  repacked,          // copies of both operands, A with any strides; threads store out
  pointers,          // batches by pointers, and a C
  wgmma_groups,      // grouped problems
  wgmma_outside,     // zeros outside of groups
  wgmma_scatter,     // rows of groups by index
  wgmma_weights,     // rows of groups by index, with a program that multiplies them by weights
  wgmma_gather,      // rows of A by index
  wgmma_rounded,     // float32 rows of A that indices name, in tf32; zeros outside of groups
  wgmma_group_sums,  // grouped problems, with a program's reductions
  wgmma_listed,      // lists of problems, with a C
  wgmma_fprop,       // convolutions, images in im2col mode; a pair of blocks shares A
  wgmma_dgrad,       // likewise, k over two blocks
  wgmma_wgrad,       // likewise; a pair of blocks shares B
  wgmma_phases,      // a dgrad with a stride
  wgmma_taps,        // a wgrad whose taps have more columns than channels
  far,               // elements far apart, and a C; threads store out
  transposed,        // int8, both operands transposed in shared memory
  registers,         // int8, B through registers, pairs of rows of out^T stored at once
  decoded,           // codes of 8 bits in B, decoded in registers; rows of out^T
  decoded_groups,    // the same with scales of 32 k, grouped problems
  promoted,          // 8-bit floats, whose products are added to accumulators by FADD
  scaled,            // the same with scales of 32 k, of rows and columns
  scaled_groups,     // the same, grouped problems
  bf16_parts,        // float32 by bf16x9
  tf32_parts,        // float32 by tf32x3, both operands transposed
  rotation,          // three consumers in turn, with a program
  addition,          // likewise, and a wgmma adds what the program adds first
  reduction,         // two consumers, with a program that reduces out to single values
  parallel,          // two consumers, k in parallel slices
  serial,            // two consumers, k in serial slices
  stream,            // ping-pong, stream-K
  cluster_parts,     // k over two blocks, and in parallel slices
  promoted_parts,    // 8-bit floats, promoted, in parallel slices
  transposed_parts,  // int8, transposed, in serial slices
  part_reduction,    // parallel slices, with a program's reductions
  mma,               // sm80: two groups of warps share each block of k
  mma_parallel,      // k in parallel slices
  mma_serial,        // k in serial slices
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
  mma_elements,      // rows of pixels by taps, element by element
  mma_bytes,         // lines of B by pixels, bytes that are transposed
  mma_phases,        // a dgrad with a stride
  skinny,            // B contiguous along k
  skinny_columns,    // B contiguous along columns, k in slices
  depthwise,         // strips of several taps
  depthwise_phases,  // a dgrad with a stride
  depthwise_sums,    // strips, with a program's reductions
  depthwise_wgrad    // chunks of taps, pixels in slices
};

// The epilogue of a correct kernel as fields of a problem line; empty: the default.
struct SoundProgram {
  std::string_view text;
  std::string_view operands;
};
SoundProgram program_of(SoundKernel kernel) noexcept;

// The replacement of one place in the source.
struct Edit {
  std::string_view sound;
  std::string_view faulty;
  bool is_everywhere = false;  // false: `sound` must occur exactly once
};

// Whether a search for the fault finds it always, or only rarely.
enum class Shows : std::uint8_t { surely, seldom };

struct DeviceFault {
  std::string_view name;
  SoundKernel kernel;
  std::array<Edit, 2> edits{};
  bool maps_a_row_too_many = false;  // planted on the host: in the tensor map of out
  bool maps_a_later_corner = false;  // the same in that of images: the pixel box is moved by one
  Shows on_gpu = Shows::surely;      // by wrong results, or by a sanitizer
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

// Whether it is a kernel of the family sm80.
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

// Whether a lane arrives at an mbarrier for its warp, behind __syncwarp, when all lanes have read
// what other warps overwrite (records of groups' tiles, scales). racecheck orders an mbarrier's
// wait behind the arriving thread alone and reports these kernels, faulty or not.
constexpr bool has_arrivals_for_warps(SoundKernel kernel) noexcept {
  return (kernel >= SoundKernel::wgmma_groups && kernel <= SoundKernel::wgmma_listed) ||
         kernel == SoundKernel::scaled || kernel == SoundKernel::scaled_groups;
}

// All faults. Each correct kernel has one called "nothing", which changes nothing.
std::span<const DeviceFault> device_faults();
std::span<const DeviceFault> skinny_faults() noexcept;       // of them
std::span<const DeviceFault> pointer_faults() noexcept;      // of them
std::span<const DeviceFault> far_faults() noexcept;          // of them
std::span<const DeviceFault> group_faults() noexcept;        // of them
std::span<const DeviceFault> conv_faults() noexcept;         // of them
std::span<const DeviceFault> mma_group_faults() noexcept;    // of them
std::span<const DeviceFault> wgmma_group_faults() noexcept;  // of them
std::span<const DeviceFault> scale_faults() noexcept;        // of them
std::span<const DeviceFault> mma_conv_faults() noexcept;     // of them
std::span<const DeviceFault> wgmma_conv_faults() noexcept;   // of them
std::span<const DeviceFault> depthwise_faults() noexcept;    // of them

// "sm90 coop, reductions".
std::string_view name(SoundKernel kernel) noexcept;

// Whether the fault's name ("sm90 coop, reductions, nothing") contains one of the texts that
// GEMMERY_TEST_FAULTS lists, separated by "|"; true if that is not set.
bool is_wanted(const DeviceFault& fault);

// The places of a fault that the source lacks, or "". The table must be updated with the source.
std::string find_misfit(std::string_view source, const DeviceFault& fault);

// The source with all embedded headers and the fault in it. Aborts if the fault does not fit.
std::string plant(std::string_view source, const DeviceFault& fault);

// The source with random sleeps of threads, which depend on role, place, iteration and `seed`. They
// reveal missing waits that are otherwise hidden by timing.
std::string plant_delays(std::string source, std::uint32_t seed);

}  // namespace gemmery::conformance
