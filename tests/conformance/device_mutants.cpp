// SPDX-License-Identifier: Apache-2.0
// The family of mutants: it changes only the source, and forwards everything else to the family of
// the correct kernel.
#include "tests/conformance/device_mutants.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <string>
#include <type_traits>

#include <fmt/format.h>

#include <gemmery/problem.hpp>

#include "kernel/epilogue.hpp"
#include "kernel/rules.hpp"
#include "providers/templates/depthwise/design.hpp"
#include "providers/templates/depthwise/family.hpp"
#include "providers/templates/repacking.hpp"
#include "providers/templates/simt/design.hpp"
#include "providers/templates/simt/family.hpp"
#include "providers/templates/skinny/design.hpp"
#include "providers/templates/skinny/family.hpp"
#include "providers/templates/sm80/design.hpp"
#include "providers/templates/sm80/family.hpp"
#include "providers/templates/sm90/design.hpp"
#include "providers/templates/sm90/family.hpp"

namespace gemmery::conformance {
namespace {

using templates::DepthwiseTile;
using templates::SimtTile;
using templates::SkinnyTile;
using templates::Sm80Tile;
using templates::Sm90Tile;

// --- designs ------------------------------------------------------------------------------------

// Marks a correct kernel's design as a mutant: the bytes after the design, which its family
// ignores. No padding, since kernels are compared by bytes.
struct Mark {
  std::uint16_t row;  // in the table of faults
  std::uint16_t delays;
};
static_assert(std::has_unique_object_representations_v<Mark>);

constexpr std::size_t mark_offset = DesignBytes::capacity - sizeof(Mark);
static_assert(sizeof(SimtTile) <= mark_offset && sizeof(Sm80Tile) <= mark_offset &&
              sizeof(Sm90Tile) <= mark_offset && sizeof(SkinnyTile) <= mark_offset &&
              sizeof(DepthwiseTile) <= mark_offset);

template <class Tile>
DesignBytes marked(const Tile& tile, const Mark& mark) {
  std::array<std::byte, DesignBytes::capacity> bytes{};
  std::memcpy(bytes.data(), &tile, sizeof tile);
  std::memcpy(bytes.data() + mark_offset, &mark, sizeof mark);
  return DesignBytes::of(bytes);
}

Mark mark_of(const Kernel& kernel) {
  Mark mark;
  std::memcpy(&mark, kernel.design().bytes().data() + mark_offset, sizeof mark);
  return mark;
}

// The sums of two slices of k are added in shared memory; tiles are small, with few accumulators.
constexpr SimtTile tile_of_two_slices{
    .m = 32, .n = 32, .k = 16, .thread_m = 4, .thread_n = 4, .k_slices = 2, .stages = 3};

SimtTile simt_tile_of(SoundKernel kernel) {
  SimtTile tile = tile_of_two_slices;
  if (kernel == SoundKernel::groups) tile.form = templates::SimtForm::ordered;
  if (kernel == SoundKernel::indexed_groups || kernel == SoundKernel::indexed_sums)
    tile.form = templates::SimtForm::indexed_rows;
  if (kernel == SoundKernel::listed) tile.form = templates::SimtForm::listed;
  if (kernel == SoundKernel::conv_fprop) tile.form = templates::SimtForm::fprop;
  if (kernel == SoundKernel::conv_dgrad) tile.form = templates::SimtForm::dgrad;
  if (kernel == SoundKernel::conv_wgrad) tile.form = templates::SimtForm::wgrad;
  return tile;
}

bool is_in_rotation(SoundKernel kernel) {
  return kernel == SoundKernel::rotation || kernel == SoundKernel::addition;
}

abi::Schedule schedule_of(SoundKernel kernel) {
  if (kernel == SoundKernel::ping_pong || kernel == SoundKernel::stream)
    return abi::Schedule::ping_pong;
  return is_in_rotation(kernel) ? abi::Schedule::rotation : abi::Schedule::cooperative;
}

bool is_scaled(SoundKernel kernel) {
  return kernel == SoundKernel::scaled || kernel == SoundKernel::scaled_groups;
}
bool is_decoded(SoundKernel kernel) {
  return kernel == SoundKernel::decoded || kernel == SoundKernel::decoded_groups;
}
bool is_promoted(SoundKernel kernel) {
  return kernel == SoundKernel::promoted || kernel == SoundKernel::promoted_parts ||
         is_scaled(kernel);
}
bool is_transposed(SoundKernel kernel) {
  return kernel == SoundKernel::transposed || kernel == SoundKernel::transposed_parts;
}

abi::SplitMode split_of(SoundKernel kernel) {
  switch (kernel) {
    case SoundKernel::parallel:
    case SoundKernel::cluster_parts:
    case SoundKernel::promoted_parts:
    case SoundKernel::part_reduction:
      return abi::SplitMode::parallel;
    case SoundKernel::serial:
    case SoundKernel::transposed_parts:
      return abi::SplitMode::serial;
    case SoundKernel::stream:
      return abi::SplitMode::stream;
    default:
      return abi::SplitMode::none;
  }
}

templates::Sm90Form form_of(SoundKernel kernel) {
  using enum templates::Sm90Form;
  switch (kernel) {
    case SoundKernel::pointers:
      return pointers;
    case SoundKernel::wgmma_groups:
    case SoundKernel::wgmma_group_sums:
    case SoundKernel::scaled_groups:
    case SoundKernel::decoded_groups:
      return groups;
    case SoundKernel::wgmma_outside:
      return groups_with_zeros;
    case SoundKernel::wgmma_scatter:
    case SoundKernel::wgmma_weights:
      return scattered_groups;
    case SoundKernel::wgmma_gather:
      return gathered_groups;
    case SoundKernel::wgmma_rounded:
      return gathered_groups_with_zeros;
    case SoundKernel::wgmma_listed:
      return templates::Sm90Form::listed;
    case SoundKernel::wgmma_fprop:
      return fprop_2d;
    case SoundKernel::wgmma_dgrad:
      return dgrad_2d;
    case SoundKernel::wgmma_wgrad:
      return wgrad_2d;
    case SoundKernel::wgmma_phases:
      return strided_dgrad_2d;
    case SoundKernel::wgmma_taps:
      return padded_wgrad_2d;
    default:
      return strided;
  }
}

// Mostly two stages, so that few blocks of k wrap around; two or three consumers, or two blocks.
Sm90Tile sm90_tile_of(SoundKernel kernel) {
  Sm90Tile tile{};
  constexpr SoundKernel with_two_consumers[] = {
      SoundKernel::cooperative,      SoundKernel::chained,        SoundKernel::reduction,
      SoundKernel::parallel,         SoundKernel::serial,         SoundKernel::transposed,
      SoundKernel::promoted,         SoundKernel::promoted_parts, SoundKernel::transposed_parts,
      SoundKernel::part_reduction,   SoundKernel::registers,      SoundKernel::pointers,
      SoundKernel::wgmma_groups,     SoundKernel::wgmma_scatter,  SoundKernel::wgmma_weights,
      SoundKernel::wgmma_gather,     SoundKernel::wgmma_rounded,  SoundKernel::wgmma_outside,
      SoundKernel::wgmma_group_sums, SoundKernel::wgmma_listed,   SoundKernel::far,
      SoundKernel::bf16_parts,       SoundKernel::tf32_parts,     SoundKernel::cluster_parts,
      SoundKernel::scaled,           SoundKernel::scaled_groups,  SoundKernel::decoded,
      SoundKernel::decoded_groups};
  const bool has_two_consumers =
      std::ranges::find(with_two_consumers, kernel) != std::end(with_two_consumers);
  tile.m = is_in_rotation(kernel) || has_two_consumers ? 128 : 64;
  // With 64 columns for each block of a cluster, five parts are requested in two steps.
  const bool is_wide = is_in_rotation(kernel) || kernel == SoundKernel::cluster_parts;
  tile.n = is_wide ? 128 : kernel == SoundKernel::serial ? 144 : 64;
  tile.cluster_m = kernel == SoundKernel::pair_of_blocks ? 2 : 1;
  tile.cluster_n = 1;
  // The producer of groups can be ahead by more tiles of one block of k than there are records.
  tile.stages = kernel == SoundKernel::wgmma_groups ? 6 : 2;
  tile.schedule = schedule_of(kernel);
  const bool has_clusters = kernel == SoundKernel::split || kernel == SoundKernel::cluster_parts;
  tile.split_k = has_clusters ? 2 : 1;
  tile.adds_vector = kernel == SoundKernel::addition;
  tile.split = split_of(kernel);
  tile.by_registers = kernel == SoundKernel::registers || is_decoded(kernel);
  const bool has_slices = has_parts(kernel) && kernel != SoundKernel::stream;
  const int slices = kernel == SoundKernel::promoted_parts  ? 2
                     : kernel == SoundKernel::cluster_parts ? 5
                                                            : 3;
  tile.slices = static_cast<std::uint8_t>(has_slices ? slices : 1);
  if (kernel == SoundKernel::wgmma_fprop) tile.cluster_n = 2;
  if (kernel == SoundKernel::wgmma_dgrad) tile.split_k = 2;
  if (kernel == SoundKernel::wgmma_wgrad) {
    tile.n = 128;
    tile.cluster_m = 2;
  }
  if (is_scaled(kernel)) {
    tile.scale_vectors = abi::ScaleVectors::both;
    tile.scaled_k = 32;
  }
  if (kernel == SoundKernel::decoded_groups) {
    tile.scale_vectors = abi::ScaleVectors::rows;
    tile.scaled_k = 32;
  }
  tile.form = form_of(kernel);
  return tile;
}

// Groups are small: a tile of two warps.
Sm80Tile sm80_tile_of_groups(SoundKernel kernel) {
  const Sm80Tile tile{.m = 16, .n = 32, .k = 32, .warps_m = 1, .warps_n = 2, .stages = 3};
  switch (kernel) {
    case SoundKernel::mma_persistent:
      return with_groups(tile, abi::GroupSchedule::persistent);
    case SoundKernel::mma_table:
      return with_groups(tile, abi::GroupSchedule::host);
    case SoundKernel::mma_listed:
      return with_groups(tile, abi::GroupSchedule::list);
    case SoundKernel::mma_indexed:
    case SoundKernel::mma_outside: {
      const bool is_outside = kernel == SoundKernel::mma_outside;
      Sm80Tile indexed = with_groups(
          tile, is_outside ? abi::GroupSchedule::device : abi::GroupSchedule::persistent);
      indexed.indexed = abi::IndexedExtent::rows;
      indexed.clears_outside = is_outside;
      return indexed;
    }
    default:
      return with_groups(tile, abi::GroupSchedule::device);
  }
}

bool has_few_blocks(SoundKernel kernel) {
  return kernel == SoundKernel::mma_persistent || kernel == SoundKernel::mma_indexed;
}

// Three stages of two steps for each of two groups of warps.
Sm80Tile sm80_tile_of(SoundKernel kernel) {
  Sm80Tile tile{.m = 64, .n = 32, .k = 64, .warps_m = 2, .warps_n = 1, .warps_k = 2, .stages = 3};
  if (kernel == SoundKernel::mma_narrow) tile.mma_k = 8;
  if (kernel == SoundKernel::mma_fprop) tile.conv = templates::Sm80Conv::fprop_2d;
  if (kernel == SoundKernel::mma_dgrad) tile.conv = templates::Sm80Conv::dgrad_2d;
  if (kernel == SoundKernel::mma_wgrad) tile.conv = templates::Sm80Conv::wgrad_2d;
  if (kernel == SoundKernel::mma_elements) tile.conv = templates::Sm80Conv::fprop_2d;
  if (kernel == SoundKernel::mma_bytes) tile.conv = templates::Sm80Conv::wgrad_2d;
  if (kernel == SoundKernel::mma_bytes) tile.k = 128;  // two steps of bytes likewise
  if (kernel == SoundKernel::mma_phases) tile.conv = templates::Sm80Conv::strided_dgrad_2d;
  if (is_mma_of_groups(kernel)) return sm80_tile_of_groups(kernel);
  if (kernel == SoundKernel::mma_parallel) return with_split(tile, abi::SplitMode::parallel, 3);
  if (kernel == SoundKernel::mma_serial) return with_split(tile, abi::SplitMode::serial, 3);
  return tile;
}

// With three multiprocessors, the middle block of a stream has parts of two tiles; four have two
// clusters.
int multiprocessors_of(SoundKernel kernel) {
  if (kernel == SoundKernel::cluster_parts) return 4;
  return kernel == SoundKernel::stream ? 3 : 2;
}

// Two warps of two columns, or eight groups of eight lanes; panels of few k.
SkinnyTile skinny_tile_of(SoundKernel kernel) {
  SkinnyTile tile{.rows = 4, .loads = 2, .slots = 2, .threads = 64};
  if (kernel != SoundKernel::skinny_columns) return tile;
  tile.lanes = 8;
  tile.slices = 3;
  return tile;
}

OperandRules skinny_rules(SoundKernel kernel) {
  const bool is_along_k = kernel == SoundKernel::skinny;
  const OperandRule any{.dtype = DType::float32, .layout = LayoutRule::any, .alignment = 4};
  OperandRule a = any;
  if (is_along_k) a = {.dtype = DType::float32, .layout = LayoutRule::row, .alignment = 16};
  const OperandRule b{.dtype = DType::float32,
                      .layout = is_along_k ? LayoutRule::column : LayoutRule::row,
                      .alignment = 16};
  return {.a = a, .b = b, .c = {}, .out = any, .accumulator = DType::float32};
}

// Two tiles of channels; taps of a line together, or one by one in phases; two chunks of taps.
DepthwiseTile depthwise_tile_of(SoundKernel kernel) {
  DepthwiseTile tile{.taps = 3, .pixels = 4, .channels = 4, .lanes = 4};
  if (kernel == SoundKernel::depthwise_phases) {
    tile.kind = abi::DepthwiseKind::strided_dgrad;
    tile.taps = 1;
  }
  if (kernel == SoundKernel::depthwise_wgrad) {
    tile.kind = abi::DepthwiseKind::wgrad;
    tile.rows = 2;
    tile.slices = 3;
  }
  return tile;
}

OperandRules depthwise_rules() {
  const OperandRule any{.dtype = DType::float32, .layout = LayoutRule::any, .alignment = 4};
  return {.a = any, .b = any, .c = {}, .out = any, .accumulator = DType::float32};
}

OperandRules sm80_byte_rules() {
  const OperandRule in{.dtype = DType::int8, .layout = LayoutRule::row, .alignment = 16};
  OperandRule a = in;
  a.layout = LayoutRule::column;
  const OperandRule out{.dtype = DType::int32, .layout = LayoutRule::any, .alignment = 4};
  return {.a = a, .b = in, .c = {}, .out = out, .accumulator = DType::int32};
}

OperandRules sm80_rules(SoundKernel kernel) {
  if (kernel == SoundKernel::mma_bytes) return sm80_byte_rules();
  const bool splits = kernel == SoundKernel::mma_narrow;
  const OperandRule in{.dtype = splits ? DType::float32 : DType::bfloat16,
                       .layout = LayoutRule::row,
                       .alignment = 16};
  OperandRule a = in;
  if (kernel == SoundKernel::mma_outside || kernel == SoundKernel::mma_elements) a.alignment = 2;
  OperandRule b = in;
  if (kernel == SoundKernel::mma_elements) b.alignment = 2;
  if (kernel == SoundKernel::mma_fprop || kernel == SoundKernel::mma_elements)
    b.layout = LayoutRule::column;
  if (kernel == SoundKernel::mma_wgrad) a.layout = LayoutRule::column;
  const OperandRule out{.dtype = DType::float32, .layout = LayoutRule::any, .alignment = 4};
  return {.a = a,
          .b = b,
          .c = {},
          .out = out,
          .accumulator = DType::float32,
          .math = splits ? Math::f16x3 : Math::native};
}

OperandRules simt_rules(SoundKernel kernel) {
  const OperandRule any{.dtype = DType::float32, .layout = LayoutRule::any, .alignment = 4};
  const bool finds_pixels = kernel == SoundKernel::conv_fprop || kernel == SoundKernel::conv_dgrad;
  OperandRule a = any;
  if (finds_pixels) a.layout = LayoutRule::row;
  return {.a = a, .b = any, .c = {}, .out = any, .accumulator = DType::float32};
}

OperandRules sm90_rules(SoundKernel kernel) {
  const OperandRule in{.dtype = DType::bfloat16, .layout = LayoutRule::row, .alignment = 16};
  OperandRule out = in;
  const bool is_narrow = kernel == SoundKernel::chained || kernel == SoundKernel::addition;
  if (!is_narrow && !has_parts(kernel)) out.dtype = DType::float32;
  OperandRules rules{.a = in, .b = in, .c = {}, .out = out, .accumulator = DType::float32};
  if (kernel == SoundKernel::repacked) {
    rules.a = templates::repacked_rule(DType::bfloat16, LayoutRule::any);
    rules.b = templates::repacked_rule(DType::bfloat16, LayoutRule::row);
    rules.out.alignment = 4;
  }
  if (kernel == SoundKernel::wgmma_fprop) rules.b.layout = LayoutRule::column;
  if (kernel == SoundKernel::wgmma_wgrad || kernel == SoundKernel::wgmma_taps)
    rules.a.layout = LayoutRule::column;
  if (kernel == SoundKernel::far) rules.out.alignment = 4;
  if (kernel == SoundKernel::far || kernel == SoundKernel::pointers ||
      kernel == SoundKernel::wgmma_phases) {
    rules.c = rules.out;
    rules.has_c = true;
  }
  if (kernel == SoundKernel::wgmma_rounded) {
    rules.a.dtype = rules.b.dtype = DType::float32;
    rules.math = Math::tf32;
    rules.b.layout = LayoutRule::column;  // else its transposition synchronises, too
  }
  if (kernel == SoundKernel::wgmma_scatter) {
    rules.c = {.dtype = DType::float32, .layout = LayoutRule::any, .alignment = 4};
    rules.has_c = true;
  }
  if (kernel == SoundKernel::wgmma_listed) {
    rules.out.alignment = 4;
    rules.c = {.dtype = DType::float32, .layout = LayoutRule::any, .alignment = 4};
    rules.has_c = true;
  }
  if (is_transposed(kernel)) {
    rules.a = {.dtype = DType::int8, .layout = LayoutRule::column, .alignment = 16};
    rules.b = {.dtype = DType::int8, .layout = LayoutRule::row, .alignment = 16};
    rules.out.dtype = rules.accumulator = DType::int32;
  }
  if (kernel == SoundKernel::bf16_parts || kernel == SoundKernel::tf32_parts) {
    const bool is_bf16 = kernel == SoundKernel::bf16_parts;
    rules.a = {.dtype = DType::float32,
               .layout = is_bf16 ? LayoutRule::row : LayoutRule::column,
               .alignment = 16};
    rules.b = {.dtype = DType::float32, .layout = LayoutRule::row, .alignment = 16};
    rules.math = is_bf16 ? Math::bf16x9 : Math::tf32x3;
  }
  if (kernel == SoundKernel::registers) {
    rules.a = {.dtype = DType::int8, .layout = LayoutRule::row, .alignment = 16};
    rules.b = {.dtype = DType::int8, .layout = LayoutRule::row, .alignment = 16};
    rules.out.dtype = rules.accumulator = DType::int32;
  }
  if (kernel == SoundKernel::decoded_groups)
    rules.b_companions.scales[0] = {DType::float32, ScaleLayout::strided};
  if (is_decoded(kernel))
    rules.b = {.dtype = DType::float8_e4m3fn, .layout = LayoutRule::column, .alignment = 16};
  if (is_promoted(kernel)) {
    rules.a = {.dtype = DType::float8_e4m3fn, .layout = LayoutRule::row, .alignment = 16};
    rules.b = {.dtype = DType::float8_e5m2, .layout = LayoutRule::column, .alignment = 16};
    rules.math = Math::fp8_promoted;
  }
  if (is_scaled(kernel)) {
    rules.a_companions.scales[0] = {DType::float8_e8m0fnu, ScaleLayout::strided};
    rules.b_companions.scales[0] = {DType::float8_e8m0fnu, ScaleLayout::swizzled_128x4};
  }
  return rules;
}

EpilogueId epilogue_of(SoundKernel kernel) {
  if (program_of(kernel).text.empty()) return default_epilogue;
  return parse_problem(program_line(kernel, {8, 8, 8, 1})).problem.epilogue;
}

// --- faults of the host -------------------------------------------------------------------------

decltype(driver::DriverApi::cuTensorMapEncodeTiled) sound_encode = nullptr;

// Changes the tensor map of out, the only operand of float32.
driver::cuda::Result encode_with_a_row_too_many(
    driver::cuda::TensorMap* map, driver::cuda::TensorMapDataType type, std::uint32_t rank,
    void* address, const std::uint64_t* extents, const std::uint64_t* byte_strides,
    const std::uint32_t* box, const std::uint32_t* element_strides,
    driver::cuda::TensorMapInterleave interleave, driver::cuda::TensorMapSwizzle swizzle,
    driver::cuda::TensorMapL2Promotion promotion,
    driver::cuda::TensorMapOutOfBounds out_of_bounds) {
  std::array<std::uint64_t, 5> longer{};
  std::copy_n(extents, rank, longer.begin());
  if (type == driver::cuda::TensorMapDataType::float32) ++longer[1];
  return sound_encode(map, type, rank, address, longer.data(), byte_strides, box, element_strides,
                      interleave, swizzle, promotion, out_of_bounds);
}

driver::DriverApi with_maps_of_a_row_too_many(driver::DriverApi api) {
  sound_encode = api.cuTensorMapEncodeTiled;
  api.cuTensorMapEncodeTiled = encode_with_a_row_too_many;
  return api;
}

decltype(driver::DriverApi::cuTensorMapEncodeIm2col) sound_images = nullptr;

driver::cuda::Result encode_with_a_later_corner(
    driver::cuda::TensorMap* map, driver::cuda::TensorMapDataType type, std::uint32_t rank,
    void* address, const std::uint64_t* extents, const std::uint64_t* byte_strides,
    const int* lower_corner, const int* upper_corner, std::uint32_t channels, std::uint32_t pixels,
    const std::uint32_t* element_strides, driver::cuda::TensorMapInterleave interleave,
    driver::cuda::TensorMapSwizzle swizzle, driver::cuda::TensorMapL2Promotion promotion,
    driver::cuda::TensorMapOutOfBounds out_of_bounds) {
  const int lower[] = {lower_corner[0] + 1, lower_corner[1], lower_corner[2]};
  const int upper[] = {upper_corner[0] + 1, upper_corner[1], upper_corner[2]};
  return sound_images(map, type, rank, address, extents, byte_strides, lower, upper, channels,
                      pixels, element_strides, interleave, swizzle, promotion, out_of_bounds);
}

driver::DriverApi with_a_later_corner(driver::DriverApi api) {
  sound_images = api.cuTensorMapEncodeIm2col;
  api.cuTensorMapEncodeIm2col = encode_with_a_later_corner;
  return api;
}

driver::DriverApi faulty_api(const DeviceFault& fault, const driver::DriverApi& api) {
  if (fault.maps_a_row_too_many) return with_maps_of_a_row_too_many(api);
  return fault.maps_a_later_corner ? with_a_later_corner(api) : api;
}

// --- the family ---------------------------------------------------------------------------------

class DeviceMutants final : public runtime::DeviceFamily {
 public:
  std::string_view provider() const noexcept override { return "test"; }
  std::string_view name() const noexcept override { return "device_mutants"; }
  int version() const noexcept override { return 2; }

  bool takes_pointers() const noexcept override { return true; }
  bool takes_groups(const Groups& groups) const noexcept override {
    return simt_.takes_groups(groups) || sm80_.takes_groups(groups);
  }
  bool takes_convolution(const Convolution& convolution) const noexcept override {
    return simt_.takes_convolution(convolution);
  }
  bool takes_indices(const Groups& groups) const noexcept override {
    return simt_.takes_indices(groups) || sm80_.takes_indices(groups) ||
           sm90_.takes_indices(groups);
  }
  bool takes_companions(const GemmProblem& problem) const noexcept override {
    return sm90_.takes_companions(problem);
  }
  Status carries(const GemmProblem& problem) const override { return sm90_.carries(problem); }
  void match(const Query& query, std::vector<RankedKernel>& kernels) const override {
    visit_all([&](const Kernel& kernel) {
      const auto runs_there = [&](Target target) { return runs_on(target, query.device.target); };
      const bool runs = std::ranges::any_of(targets(kernel), runs_there);
      if (runs && kernel::keeps_rules(kernel.operands(), query.problem) &&
          kernel::serves_epilogue(kernel.epilogue(), query.problem.epilogue) &&
          supports(kernel, query))
        kernels.emplace_back(kernel, 1e12);
    });
  }
  void explain(const Query&, std::vector<Reason>& reasons) const override {
    reasons.push_back({.provider = "test",
                       .family = "device_mutants",
                       .design_class = {},
                       .failed = "not meant to fit",
                       .fitting = 0,
                       .nearest = {}});
  }
  void enumerate(const std::function<void(const Kernel&)>& visit) const override {
    for (std::size_t row = 0; row < device_faults().size(); ++row) visit(make(row));
  }
  std::string kernel_name(const Kernel& kernel) const override {
    const Mark mark = mark_of(kernel);
    return mark.delays == 0 ? fmt::format("device-mutant{}", mark.row)
                            : fmt::format("device-mutant{}-delays{}", mark.row, mark.delays);
  }
  std::optional<Kernel> parse_name(std::string_view kernel_name) const override {
    std::optional<Kernel> found;
    visit_all([&](const Kernel& kernel) {
      if (this->kernel_name(kernel) == kernel_name) found = kernel;
    });
    return found;
  }
  std::vector<DesignField> design_fields(const Kernel& kernel) const override {
    std::vector<DesignField> fields = sound_family(kernel).design_fields(kernel);
    fields.push_back({"fault", std::string(fault_of(kernel).name)});
    return fields;
  }
  std::vector<Target> targets(const Kernel& kernel) const override {
    return sound_family(kernel).targets(kernel);
  }
  Status supports(const Kernel& kernel, const Query& query) const override {
    const auto& groups = query.problem.groups;
    if (groups && !sound_family(kernel).takes_groups(*groups))
      return Status::fail("groups: expected a form that the sound kernel's family takes");
    if (groups && groups->have_indices() && !sound_family(kernel).takes_indices(*groups))
      return Status::fail("groups: expected indices that the sound kernel's family takes");
    return sound_family(kernel).supports(kernel, query);
  }
  runtime::EmittedSource emit(const Kernel& kernel, Target target) const override {
    runtime::EmittedSource source = sound_family(kernel).emit(kernel, target);
    source.text = plant(source.text, fault_of(kernel));
    const std::uint32_t delays = mark_of(kernel).delays;
    if (delays != 0) source.text = plant_delays(std::move(source.text), delays);
    return source;
  }
  void pack(const runtime::PackRequest& request, runtime::LaunchPlan& plan) const override {
    const DeviceFault& fault = fault_of(request.kernel);
    if (is_simt(fault.kernel)) return simt_.pack(request, plan);
    if (has_few_blocks(fault.kernel)) return pack_in_few_blocks(request, plan);
    if (is_mma(fault.kernel)) return sm80_.pack(request, plan);
    if (is_skinny(fault.kernel)) return skinny_.pack(request, plan);
    if (is_depthwise(fault.kernel)) return pack_depthwise(request, plan);
    const driver::DriverApi api = faulty_api(fault, request.driver);
    sm90_.pack({.kernel = request.kernel,
                .arguments = request.arguments,
                .device = request.device,
                .max_multiprocessors =
                    request.max_multiprocessors == 1 ? 1 : multiprocessors_of(fault.kernel),
                .driver = api},
               plan);
  }

 private:
  template <class Visit>
  void visit_all(Visit&& visit) const {
    enumerate([&](const Kernel& kernel) {
      for (std::uint32_t delays = 0; delays <= most_delays; ++delays)
        visit(with_delays(kernel, delays));
    });
  }

  // So that blocks have several tiles.
  void pack_in_few_blocks(const runtime::PackRequest& request, runtime::LaunchPlan& plan) const {
    sm80_.pack({.kernel = request.kernel,
                .arguments = request.arguments,
                .device = request.device,
                .max_multiprocessors = 3,
                .driver = request.driver},
               plan);
  }

  // So that blocks have several tiles of strips, and of channels.
  void pack_depthwise(const runtime::PackRequest& request, runtime::LaunchPlan& plan) const {
    DeviceInfo small = request.device;
    small.multiprocessors = 1;
    depthwise_.pack({.kernel = request.kernel,
                     .arguments = request.arguments,
                     .device = small,
                     .max_multiprocessors = 3,
                     .driver = request.driver},
                    plan);
  }

  Kernel make(std::size_t row) const {
    const SoundKernel sound = device_faults()[row].kernel;
    const Mark mark{.row = static_cast<std::uint16_t>(row), .delays = 0};
    if (is_mma(sound)) return Kernel(*this, sm80_rules(sound), marked(sm80_tile_of(sound), mark));
    if (is_skinny(sound))
      return Kernel(*this, skinny_rules(sound), marked(skinny_tile_of(sound), mark));
    if (is_depthwise(sound))
      return Kernel(*this, depthwise_rules(), marked(depthwise_tile_of(sound), mark),
                    epilogue_of(sound));
    return is_simt(sound) ? Kernel(*this, simt_rules(sound), marked(simt_tile_of(sound), mark),
                                   epilogue_of(sound))
                          : Kernel(*this, sm90_rules(sound), marked(sm90_tile_of(sound), mark),
                                   epilogue_of(sound));
  }

  const runtime::DeviceFamily& sound_family(const Kernel& kernel) const {
    if (is_simt(fault_of(kernel).kernel)) return simt_;
    if (is_mma(fault_of(kernel).kernel)) return sm80_;
    if (is_skinny(fault_of(kernel).kernel)) return skinny_;
    if (is_depthwise(fault_of(kernel).kernel)) return depthwise_;
    return sm90_;
  }

  templates::DepthwiseFamily depthwise_;
  templates::SimtFamily simt_;
  templates::SkinnyFamily skinny_;
  templates::Sm80Family sm80_;
  templates::Sm90Family sm90_;
};

}  // namespace

std::unique_ptr<Family> make_device_mutants() { return std::make_unique<DeviceMutants>(); }

std::string program_line(SoundKernel kernel, const Extents& extents) {
  const SoundProgram program = program_of(kernel);
  if (kernel == SoundKernel::depthwise_sums)
    return fmt::format(
        "conv2d_fprop {0}x19x21x{1} k={1} r=3 s=3 pad=1 groups={1} a=f32 epilogue=\"{2}\" {3}",
        extents.l + 1, extents.n, program.text, program.operands);
  if (kernel == SoundKernel::wgmma_weights)
    return fmt::format(
        "grouped_gemm {}x{}x{} groups={} scatter=i32/of={} a=bf16 out=f32 epilogue=\"{}\" {}",
        extents.m, extents.n, extents.k, 9 * extents.l, extents.m + 60, program.text,
        program.operands);
  if (kernel == SoundKernel::indexed_sums)
    return fmt::format(
        "grouped_gemm {}x{}x{} groups={} gather=i32/of=37 scatter=i32/of={} a=f32 epilogue=\"{}\" "
        "{}",
        extents.m, extents.n / 4, extents.k, 9 * extents.l, extents.m + 60, program.text,
        program.operands);
  if (kernel == SoundKernel::wgmma_group_sums)
    return fmt::format("grouped_gemm {}x{}x{} groups={} a=bf16 out=f32 epilogue=\"{}\" {}",
                       extents.m, extents.n, extents.k, 9 * extents.l, program.text,
                       program.operands);
  return fmt::format("gemm {}x{}x{}x{} a=bf16 out={} epilogue=\"{}\" {}", extents.m, extents.n,
                     extents.k, extents.l, name(sm90_rules(kernel).out.dtype), program.text,
                     program.operands);
}

const DeviceFault& fault_of(const Kernel& kernel) { return device_faults()[mark_of(kernel).row]; }

Kernel with_delays(const Kernel& kernel, std::uint32_t seed) {
  auto bytes = kernel.design().bytes();
  const Mark mark{.row = mark_of(kernel).row, .delays = static_cast<std::uint16_t>(seed)};
  std::memcpy(bytes.data() + mark_offset, &mark, sizeof mark);
  return {kernel.family(), kernel.operands(), DesignBytes::of(bytes), kernel.epilogue()};
}

}  // namespace gemmery::conformance
