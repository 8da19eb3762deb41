// SPDX-License-Identifier: Apache-2.0
// Converts a description to a design of the families sm80 and simt, and translates a fault of the
// design to the field that causes it.
#include "describe/described_kernel.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gemmery/family.hpp>

#include <algorithm>
#include <string>
#include <string_view>

#include "core/invariant.hpp"
#include "describe/combinations.hpp"
#include "describe/refusal.hpp"
#include "kernel/registry.hpp"
#include "providers/list.hpp"
#include "providers/templates/conv_windows.hpp"
#include "providers/templates/simt/design.hpp"
#include "providers/templates/sm80/convolution.hpp"
#include "providers/templates/sm80/design.hpp"
#include "runtime/portable_targets.hpp"

namespace gemmery::describe {
namespace {

const Family& family_of(OpcodeClass opcode_class) {
  providers::register_built_in();
  const std::string_view wanted = opcode_class == OpcodeClass::Simt ? "simt" : "sm80";
  for (const Family* family : kernel::families())
    if (family->provider() == "templates" && family->name() == wanted) return *family;
  abort_on_bug("a built-in family is not registered");
}

LayoutRule layout_rule(Layout layout) noexcept {
  return layout == Layout::RowMajor ? LayoutRule::row : LayoutRule::column;
}

OperandRule rule_of(const TensorDescription& tensor) {
  const DType dtype = storage_type(tensor.element);
  const std::size_t bytes = byte_width(dtype) * static_cast<std::size_t>(tensor.alignment);
  return {dtype, layout_rule(tensor.layout), static_cast<std::uint8_t>(bytes)};
}

int shared_limit(int compute_capability) {
  const DeviceInfo device =
      typical_device_info({static_cast<std::uint16_t>(compute_capability), 0});
  return static_cast<int>(device.shared_bytes_per_block);
}

// --- what the shape of a tile must be -----------------------------------------------------------

std::string extents_text(const std::array<int, 3>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

bool fits_in(const std::array<int, 3>& values, int most) {
  return std::ranges::all_of(values, [&](int value) { return value >= 1 && value <= most; });
}

[[noreturn]] void refuse_shape(const TileDescription& tile, std::string expected) {
  refuse_unsupported("tile_description.threadblock_shape", std::move(expected),
                     extents_text(tile.threadblock_shape));
}

[[noreturn]] void refuse_warps(const TileDescription& tile, std::string expected) {
  refuse_unsupported("tile_description.warp_count", std::move(expected),
                     fmt::format("{} for a tile of {}", extents_text(tile.warp_count),
                                 extents_text(tile.threadblock_shape)));
}

[[noreturn]] void refuse_stages(const TileDescription& tile, std::string expected) {
  refuse_unsupported("tile_description.stages", std::move(expected), std::to_string(tile.stages));
}

[[noreturn]] void refuse_bytes(const TileDescription& tile, int needed, int available) {
  refuse_unsupported("tile_description.stages",
                     fmt::format("at most {} bytes of shared memory for a block", available),
                     fmt::format("{} bytes for {} stages of {}", needed, tile.stages,
                                 extents_text(tile.threadblock_shape)));
}

// The requirements of both families for a tile before it becomes a design.
void check_tile(const TileDescription& tile) {
  if (!fits_in(tile.threadblock_shape, 512)) refuse_shape(tile, "three extents from 1 to 512");
  if (!fits_in(tile.warp_count, 32)) refuse_warps(tile, "three counts from 1 to 32");
  for (std::size_t i = 0; i < 3; ++i) {
    if (tile.threadblock_shape[i] % tile.warp_count[i] != 0)
      refuse_warps(tile, "counts that divide the tile's extents");
  }
  if (tile.stages < 2 || tile.stages > 12) refuse_stages(tile, "from 2 to 12");
}

// --- sm80 ---------------------------------------------------------------------------------------

abi::Raster raster_of(SwizzlingFunctor swizzle) noexcept {
  switch (swizzle) {
    case SwizzlingFunctor::IdentitySwizzle2:
      return {.along = abi::Along::n, .band = 2};
    case SwizzlingFunctor::IdentitySwizzle4:
    case SwizzlingFunctor::StridedDgradIdentitySwizzle4:
      return {.along = abi::Along::n, .band = 4};
    case SwizzlingFunctor::IdentitySwizzle8:
      return {.along = abi::Along::n, .band = 8};
    case SwizzlingFunctor::HorizontalSwizzle:
    case SwizzlingFunctor::StridedDgradHorizontalSwizzle:
      return {.along = abi::Along::m, .band = 1};
    case SwizzlingFunctor::IdentitySwizzle1:
    case SwizzlingFunctor::BatchedIdentitySwizzle:
    case SwizzlingFunctor::StridedDgradIdentitySwizzle1:
      break;
  }
  return {.along = abi::Along::n, .band = 1};
}

abi::SplitMode split_mode(KSplit split) noexcept {
  switch (split) {
    case KSplit::serial:
      return abi::SplitMode::serial;
    case KSplit::parallel:
      return abi::SplitMode::parallel;
    case KSplit::none:
      break;
  }
  return abi::SplitMode::none;
}

templates::Sm80Tile sm80_tile_of(const GemmDescription& description, const KernelForm& form) {
  const TileDescription& tile = description.tile_description;
  templates::Sm80Tile result{.m = static_cast<std::uint16_t>(tile.threadblock_shape[0]),
                             .n = static_cast<std::uint16_t>(tile.threadblock_shape[1]),
                             .k = static_cast<std::uint16_t>(tile.threadblock_shape[2]),
                             .warps_m = static_cast<std::uint8_t>(tile.warp_count[0]),
                             .warps_n = static_cast<std::uint8_t>(tile.warp_count[1]),
                             .warps_k = static_cast<std::uint8_t>(tile.warp_count[2]),
                             .stages = static_cast<std::uint8_t>(tile.stages),
                             .raster = raster_of(description.swizzling_functor)};
  if (form.convolution) result.conv = templates::conv_of(*form.convolution);
  if (form.slices.slices < 2) return result;
  return templates::with_split(result, split_mode(form.slices.split),
                               static_cast<std::uint16_t>(form.slices.slices));
}

[[noreturn]] void refuse_design(abi::Sm80Fault fault, const TileDescription& tile,
                                const abi::Sm80Design& design, int limit) {
  using enum abi::Sm80Fault;
  const int step = abi::step_k(design);
  switch (fault) {
    case tile_m:
      refuse_shape(tile, fmt::format("M a power of two up to 256, at least {} for each warp",
                                     abi::mma_shape(design).m));
    case tile_n:
      refuse_shape(tile, "N a power of two up to 256, at least 16 for each warp");
    case tile_k:
      refuse_shape(tile, fmt::format("K a power of two, 2 to 8 steps of {} for each warp, rows of "
                                     "16 to 256 bytes",
                                     step));
    case warps:
      refuse_warps(tile, "powers of two, at most 32 warps, and threads for a row of A, B and D");
    case accumulators:
      refuse_warps(tile, fmt::format("at most 128 registers of accumulators for a thread ({} here)",
                                     abi::accumulators_per_thread(design) *
                                         abi::accumulator_bytes(design) / 4));
    case shared_bytes:
      refuse_bytes(tile, abi::shared_bytes(design), limit);
    case convolution:
      refuse_warps(tile, "threads that each copy at most 32 rows of A for a convolution");
    default:
      break;
  }
  refuse_unsupported("tile_description", "a design of the family sm80",
                     fmt::format("fault {} of its design", static_cast<int>(fault)));
}

DesignBytes sm80_bytes(const GemmDescription& description, const OperandRules& rules,
                       const KernelForm& form) {
  templates::Sm80Tile tile = sm80_tile_of(description, form);
  const int mma_k = description.tile_description.math_instruction.instruction_shape[2];
  if (mma_k != abi::step_k(templates::sm80_design(rules, tile)))
    tile.mma_k = static_cast<std::uint8_t>(mma_k);
  const abi::Sm80Design design = templates::sm80_design(rules, tile);
  const int limit = shared_limit(description.compute_capability);
  const abi::Sm80Fault fault = abi::find_fault(design, limit);
  if (fault != abi::Sm80Fault::none)
    refuse_design(fault, description.tile_description, design, limit);
  return DesignBytes::of(tile);
}

// --- simt ---------------------------------------------------------------------------------------

[[noreturn]] void refuse_design(abi::SimtFault fault, const TileDescription& tile,
                                const abi::SimtDesign& design) {
  using enum abi::SimtFault;
  switch (fault) {
    case tile_m:
    case tile_n:
      refuse_shape(tile, "M and N powers of two from 8 to 256");
    case tile_k:
      refuse_shape(tile, fmt::format("K a power of two from {} to 128",
                                     std::max(8, 16 * design.k_slices / abi::word_bytes(design)) *
                                         abi::k_per_word(design)));
    case k_slices:
    case thread_m:
    case thread_n:
    case thread_count:
      refuse_warps(tile,
                   "powers of two, at most 32 warps, with 16x16 accumulators of a thread at "
                   "most");
    case shared_bytes:
      refuse_bytes(tile, abi::shared_bytes(design), 99 * 1024);
    default:
      break;
  }
  refuse_unsupported("tile_description", "a design of the family simt",
                     fmt::format("fault {} of its design", static_cast<int>(fault)));
}

templates::SimtForm simt_form_of(const std::optional<Convolution>& convolution) noexcept {
  if (!convolution) return templates::SimtForm::gemm;
  switch (convolution->kind) {
    case ConvKind::fprop:
      return templates::SimtForm::fprop;
    case ConvKind::dgrad:
      return templates::has_phases(*convolution) ? templates::SimtForm::strided_dgrad
                                                 : templates::SimtForm::dgrad;
    case ConvKind::wgrad:
      break;
  }
  return templates::SimtForm::wgrad;
}

templates::SimtTile simt_tile_of(const TileDescription& tile, int thread_m, int thread_n) {
  return {.m = static_cast<std::uint16_t>(tile.threadblock_shape[0]),
          .n = static_cast<std::uint16_t>(tile.threadblock_shape[1]),
          .k = static_cast<std::uint8_t>(tile.threadblock_shape[2]),
          .thread_m = static_cast<std::uint8_t>(thread_m),
          .thread_n = static_cast<std::uint8_t>(thread_n),
          .k_slices = static_cast<std::uint8_t>(tile.warp_count[2]),
          .stages = static_cast<std::uint8_t>(tile.stages)};
}

// Shapes of a thread's accumulators that divide the tile among the described number of warps; the
// most square ones first.
std::vector<std::array<int, 2>> thread_shapes(const TileDescription& tile) {
  const int accumulators = tile.threadblock_shape[0] * tile.threadblock_shape[1] /
                           (32 * tile.warp_count[0] * tile.warp_count[1]);
  std::vector<std::array<int, 2>> shapes;
  for (int m = 1; m <= std::min(accumulators, 16); m *= 2) {
    if (accumulators % m == 0 && accumulators / m <= 16) shapes.push_back({m, accumulators / m});
  }
  std::ranges::stable_sort(
      shapes, {}, [](const std::array<int, 2>& shape) { return std::max(shape[0], shape[1]); });
  return shapes;
}

DesignBytes simt_bytes(const GemmDescription& description, const OperandRules& rules,
                       const KernelForm& form) {
  const TileDescription& tile = description.tile_description;
  if (tile.threadblock_shape[2] > 128) refuse_shape(tile, "K up to 128 for Simt");
  abi::SimtFault first = abi::SimtFault::none;
  abi::SimtDesign design{};
  const auto shapes = thread_shapes(tile);
  if (shapes.empty())
    refuse_warps(tile, "from 1 to 256 accumulators for each thread, at most 16 along each index");
  for (const auto& [thread_m, thread_n] : shapes) {
    templates::SimtTile candidate = simt_tile_of(tile, thread_m, thread_n);
    candidate.form = simt_form_of(form.convolution);
    design = templates::simt_design(rules, candidate);
    const abi::SimtFault fault = abi::find_fault(design);
    if (fault == abi::SimtFault::none) return DesignBytes::of(candidate);
    if (first == abi::SimtFault::none) first = fault;
  }
  refuse_design(first, tile, design);
}

}  // namespace

OperandRules rules_of(const GemmDescription& description, bool has_c) {
  const Combination& combination = find_combination(description.tile_description.math_instruction);
  return {.a = rule_of(description.A),
          .b = rule_of(description.B),
          .c = has_c ? rule_of(description.C) : OperandRule{},
          .out = rule_of(description.C),
          .accumulator = storage_type(combination.element_accumulator),
          .math = combination.math,
          .has_c = has_c};
}

Kernel described_kernel(const GemmDescription& description, const OperandRules& rules,
                        const KernelForm& form) {
  const TileDescription& tile = description.tile_description;
  check_tile(tile);
  const OpcodeClass opcode_class = tile.math_instruction.opcode_class;
  const DesignBytes design = opcode_class == OpcodeClass::Simt
                                 ? simt_bytes(description, rules, form)
                                 : sm80_bytes(description, rules, form);
  return Kernel(family_of(opcode_class), rules, design, form.epilogue);
}

bool is_interleaved(const GemmDescription& description) noexcept {
  return description.A.layout == Layout::ColumnMajorInterleaved32 &&
         description.B.layout == Layout::RowMajorInterleaved32 &&
         description.C.layout == Layout::ColumnMajorInterleaved32;
}

GemmDescription with_plain_layouts(GemmDescription description) {
  if (!is_interleaved(description)) return description;
  description.A.layout = Layout::RowMajor;
  description.B.layout = Layout::ColumnMajor;
  description.C.layout = Layout::RowMajor;
  return description;
}

Target target_of(int compute_capability) noexcept {
  Target found = runtime::portable_targets.front();
  for (const Target target : runtime::portable_targets) {
    if (target.architecture <= compute_capability) found = target;
  }
  return found;
}

}  // namespace gemmery::describe
