// SPDX-License-Identifier: Apache-2.0
// The kernels of depthwise convolutions as values: tiles, operand rules, names.
#pragma once

#include <gemmery/device.hpp>
#include <gemmery/kernel.hpp>
#include <gemmery/problem.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "device/abi/depthwise_design.hpp"
#include "providers/templates/split_schedule.hpp"

namespace gemmery::templates {

inline constexpr int depthwise_version = 1;

// A kernel's design apart from its operand rules; stored in DesignBytes. It has no padding, so
// equal tiles have equal bytes. abi::DepthwiseDesign documents the fields.
struct DepthwiseTile {
  abi::DepthwiseKind kind = abi::DepthwiseKind::fprop;
  std::uint8_t rows = 1;
  std::uint8_t taps = 1;
  std::uint8_t stride = 1;
  std::uint8_t pixels = 4;
  std::uint8_t channels = 8;
  std::uint8_t lanes = 8;
  std::uint8_t reserved = 0;
  std::uint16_t slices = 1;  // slices of a wgrad's pixels

  friend bool operator==(const DepthwiseTile&, const DepthwiseTile&) = default;
};
static_assert(sizeof(DepthwiseTile) == 10);

// True if each group has one channel, and one or several filters.
bool is_depthwise(const Convolution& convolution) noexcept;

abi::DepthwiseKind depthwise_kind(const Convolution& convolution) noexcept;

// The number of filters per channel.
std::int64_t filters_of_channel(const Convolution& convolution) noexcept;

// The number of taps of all filters for a computed channel, which a block keeps in shared memory.
std::int64_t kept_taps(const Convolution& convolution) noexcept;

// Shared memory of a block, for the filters of a problem and the reductions of its epilogue.
std::int64_t shared_bytes_of(const abi::DepthwiseDesign& design, const GemmProblem& problem);
// The bytes of it for filters (or partial sums of a wgrad).
std::int64_t filter_bytes_of(const abi::DepthwiseDesign& design, const Convolution& convolution);

// True if a kernel supports a problem's taps along width: its filter's width and stride, or any
// with single taps.
bool fits_taps(const DepthwiseTile& tile, const Convolution& convolution) noexcept;

// The number of chunks into which a wgrad's taps are divided.
std::int64_t tap_tiles(const abi::DepthwiseDesign& design, const Convolution& convolution) noexcept;

// The number of tiles of channels, and of tiles of strips in all phases.
std::int64_t channel_tiles(const abi::DepthwiseDesign& design,
                           const Convolution& convolution) noexcept;
std::int64_t strip_tiles(const abi::DepthwiseDesign& design,
                         const Convolution& convolution) noexcept;

// The work of a launch, divided into units: each has a tile of channels (for a wgrad, of channels
// and taps) and some tiles of strips. A wgrad's units do not depend on the device, so that equal
// inputs give equal bits.
struct DepthwiseWork {
  std::int64_t tiles;  // tiles of strips
  std::int64_t tiles_per_unit;
  std::int64_t shares;  // units per tile of channels
};
DepthwiseWork depthwise_work(const DepthwiseTile& tile, const abi::DepthwiseDesign& design,
                             const Convolution& convolution, int multiprocessors) noexcept;

// The tiles that are offered for a problem, likely the best ones; none if filters have more taps
// than fit shared memory.
std::vector<DepthwiseTile> depthwise_tiles(const OperandRules& rules, const GemmProblem& problem,
                                           const DeviceInfo& device);
// The tiles that are listed for operands of these types: those for common filters.
std::vector<DepthwiseTile> listed_depthwise_tiles(const OperandRules& rules);

abi::DepthwiseDesign depthwise_design(const OperandRules& rules,
                                      const DepthwiseTile& tile) noexcept;
abi::DepthwiseDesign depthwise_design(const Kernel& kernel) noexcept;
DepthwiseTile depthwise_tile(const Kernel& kernel) noexcept;

// "fprop", "dgrad", "dgrad-strided", "wgrad"
std::string_view kind_text(abi::DepthwiseKind kind) noexcept;

SplitWord split_word(const DepthwiseTile& tile) noexcept;

// "depthwise1_gemm_bf16x2_bf16x2_bf16x2_acc-f32_fprop_1x3x1_4x8x8_none": the kind; rows and taps of
// the filter in registers, and the stride between strips; pixels, channels and lanes; the split of
// pixels.
std::string depthwise_name(const Kernel& kernel);

// The rules and tile of a name; nullopt for other names and for illegal designs.
struct DepthwiseParts {
  OperandRules rules;
  DepthwiseTile tile;
  EpilogueId epilogue = default_epilogue;
};
std::optional<DepthwiseParts> parse_depthwise_name(std::string_view name);

}  // namespace gemmery::templates
