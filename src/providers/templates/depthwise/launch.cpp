// SPDX-License-Identifier: Apache-2.0
// The launches of depthwise kernels: windows, phases, shares of work.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "device/abi/depthwise_params.hpp"
#include "providers/templates/conv_windows.hpp"
#include "providers/templates/depthwise/design.hpp"
#include "providers/templates/depthwise/family.hpp"
#include "providers/templates/depthwise/wide_channels.hpp"
#include "providers/templates/epilogue_parameters.hpp"
#include "providers/templates/split_schedule.hpp"

namespace gemmery::templates {
namespace {

abi::DepthwiseMatrix to_abi(const MatrixType& matrix) {
  return {.batch = matrix.batch_stride, .row = matrix.row_stride, .column = matrix.column_stride};
}

abi::DepthwiseStrides to_abi(const std::array<std::int64_t, 4>& strides) {
  abi::DepthwiseStrides all{};
  std::ranges::copy(strides, all.of);
  return all;
}

// Sets the window along one dimension. Taps ascend with the source's pixels, except in a phase,
// where they descend.
void set_window(const Convolution& convolution, std::size_t d, abi::DepthwiseWindow& window) {
  const bool is_reversed = convolution.mode == ConvMode::convolution;
  const int last = convolution.filter[d] - 1;
  const int dilation = convolution.dilation[d];
  const bool is_dgrad = convolution.kind == ConvKind::dgrad;
  const bool begins_last = is_dgrad && !has_phases(convolution) ? !is_reversed : is_reversed;
  window.step[d] = is_dgrad ? 1 : convolution.stride[d];
  window.origin[d] = is_dgrad ? convolution.lower[d] - last * dilation : -convolution.lower[d];
  window.tap_step[d] = dilation;
  window.taps[d] = static_cast<unsigned>(convolution.filter[d]);
  window.first_tap[d] = begins_last ? last : 0;
  window.tap_walk[d] = begins_last ? -1 : 1;
  window.pixels[d] =
      static_cast<unsigned>(is_dgrad ? pixels_along(convolution, d, 0) : convolution.output[d]);
}

void set_geometry(const Convolution& convolution, int pixels, abi::DepthwiseParams& params) {
  const bool is_dgrad = convolution.kind == ConvKind::dgrad;
  const bool phased = has_phases(convolution);
  const Spatial& source = is_dgrad ? convolution.output : convolution.image;
  const Spatial& out = is_dgrad ? convolution.image : convolution.output;
  for (std::size_t d = 0; d < 3; ++d) {
    set_window(convolution, d, params.window);
    params.extent[d] = static_cast<unsigned>(source[d]);
    params.filter[d] = static_cast<unsigned>(convolution.filter[d]);
    params.out_image[d] = static_cast<unsigned>(out[d]);
    params.pixel_step[d] = static_cast<unsigned>(phased ? convolution.stride[d] : 1);
    params.strips[d] = divisor_of(d < 2 ? params.window.pixels[d]
                                        : (params.window.pixels[d] + pixels - 1) / pixels);
    params.phases[d] = phase_dimension(convolution, d);
    if (phased)
      params.window.tap_step[d] = -static_cast<int>(
          params.phases[d].common.divide(static_cast<unsigned>(convolution.dilation[d])));
  }
  params.filter_walk[0] = divisor_of(convolution.filter[1]);
  params.filter_walk[1] = divisor_of(convolution.filter[2]);
  params.phase_count = divisor_of(phased ? count_phases(convolution) : 1);
  params.images = static_cast<unsigned>(convolution.images);
}

void set_channels(const Convolution& convolution, abi::DepthwiseParams& params) {
  const bool is_dgrad = convolution.kind == ConvKind::dgrad;
  params.channels = static_cast<unsigned>(is_dgrad ? convolution.channels : convolution.filters);
  params.group_channels = divisor_of(is_dgrad ? 1 : filters_of_channel(convolution));
  params.repeats = static_cast<unsigned>(is_dgrad ? filters_of_channel(convolution) : 1);
}

void set_work(const DepthwiseTile& tile, const abi::DepthwiseDesign& design,
              const Convolution& convolution, int multiprocessors, abi::DepthwiseParams& params) {
  const DepthwiseWork work = depthwise_work(tile, design, convolution, multiprocessors);
  const std::int64_t channels = channel_tiles(design, convolution);
  const std::int64_t taps = abi::is_wgrad(design) ? tap_tiles(design, convolution) : 1;
  params.channel_tiles = divisor_of(channels);
  params.units = static_cast<unsigned>(channels * taps * work.shares);
  params.tiles =
      params.is_multiplied != 0 || !abi::is_wgrad(design) ? static_cast<unsigned>(work.tiles) : 0;
  params.tiles_per_unit = static_cast<unsigned>(work.tiles_per_unit);
  params.slices = divisor_of(work.shares);
  const auto chunks = [](std::int32_t count, int size) { return (count + size - 1) / size; };
  params.tap_tiles[0] = divisor_of(convolution.filter[0]);
  params.tap_tiles[1] = divisor_of(chunks(convolution.filter[1], design.rows));
  params.tap_tiles[2] = divisor_of(chunks(convolution.filter[2], design.taps));
}

abi::DepthwiseParams depthwise_params(const runtime::PackRequest& request) {
  const GemmArguments& arguments = request.arguments;
  const GemmProblem& problem = arguments.problem();
  const Convolution& convolution = *problem.convolution;
  const DepthwiseTile tile = depthwise_tile(request.kernel);
  const abi::DepthwiseDesign design = depthwise_design(request.kernel);
  abi::DepthwiseParams params{};
  params.a = arguments.a().data();
  params.b = arguments.b().data();
  params.c = arguments.c() ? arguments.c()->data() : nullptr;
  params.out = const_cast<void*>(arguments.out().data());
  params.alpha = arguments.alpha();
  params.beta = arguments.beta();
  // With alpha = 0, A and B are not read, so that their NaNs do not reach out.
  params.is_multiplied = arguments.alpha() == 0 ? 0 : 1;
  params.a_strides = to_abi(convolution.a_strides);
  params.b_strides = to_abi(convolution.b_strides);
  if (problem.c) params.c_matrix = to_abi(*problem.c);
  params.out_matrix = to_abi(problem.out);
  set_geometry(convolution, tile.pixels, params);
  if (params.is_multiplied == 0) params.window.taps[0] = 0;
  set_channels(convolution, params);
  set_work(tile, design, convolution, request.device.multiprocessors, params);
  params.reductions = static_cast<unsigned>(filter_bytes_of(design, convolution));
  params.is_wide = has_wide_channels(design, problem, addresses_of(arguments)) ? 1 : 0;
  params.is_c_wide = has_wide_c(design, problem, addresses_of(arguments)) ? 1 : 0;
  return params;
}

}  // namespace

void DepthwiseFamily::pack(const runtime::PackRequest& request, runtime::LaunchPlan& plan) const {
  const abi::DepthwiseDesign design = depthwise_design(request.kernel);
  abi::DepthwiseParams params = depthwise_params(request);
  plan.set_parameters(params);
  if (request.kernel.epilogue() != default_epilogue) {
    const abi::RegionGrid regions{.rows = params.slices.divisor,
                                  .columns = params.group_channels.divisor,
                                  .batches = static_cast<unsigned>(request.arguments.problem().l),
                                  .column_parts = 1,
                                  .whole_parts = 1,
                                  .arrivals = 1,
                                  .groups = 0};
    append_epilogue_parameters(request.arguments, request.kernel.epilogue(), false, regions, plan);
  }
  if (abi::is_wgrad(design) && params.slices.divisor > 1) {
    const std::size_t partials = std::size_t{params.units} *
                                 static_cast<std::size_t>(abi::depthwise_shared_bytes(design, 0)) /
                                 (abi::depthwise_threads / 32);
    params.partials = set_split_workspace(params.units / params.slices.divisor, partials,
                                          offsetof(abi::DepthwiseParams, workspace), plan);
    std::memcpy(plan.parameter_bytes, &params, sizeof params);  // with the workspace's layout
  }
  const unsigned limit = request.max_multiprocessors > 0
                             ? static_cast<unsigned>(request.max_multiprocessors)
                             : 0x7fffffffU;
  plan.shape.grid = {std::min(params.units, limit), 1, 1};
  plan.shape.block = {static_cast<std::uint32_t>(abi::depthwise_threads), 1, 1};
  plan.shape.shared_bytes =
      static_cast<std::uint32_t>(shared_bytes_of(design, request.arguments.problem()));
}

}  // namespace gemmery::templates
