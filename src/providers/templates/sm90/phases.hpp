// SPDX-License-Identifier: Apache-2.0
// A dgrad with a stride: the phases of dx's pixels. All pixels of a phase use the same taps.
#pragma once

#include <gemmery/problem.hpp>

#include <cstdint>
#include <functional>
#include <string>

#include "device/abi/sm90_conv_params.hpp"
#include "driver/tensor_map.hpp"
#include "operation/window.hpp"
#include "providers/templates/conv_windows.hpp"
#include "providers/templates/tma_view.hpp"

namespace gemmery::templates {

// Why kernels with phases do not support a dgrad with a stride, in words; empty if they do.
std::string find_sm90_phase_failure(const GemmProblem& problem);

// A window of dy that covers the windows of all phases: as many pixels as the largest phase has,
// and offsets for each phase.
operation::Window window_of_phases(const Convolution& convolution);

// Sets the maps, windows and blocks of k of all phases. `reads`: false if nothing is read of A.
struct PhaseOperands {
  const void* a;
  const void* out;
  TmaBox a_box;
  TmaBox out_box;
  bool is_tf32;
  bool reads;
};
using EncodePixels = std::function<abi::TensorMap(const driver::Im2colTensorMap&)>;
void set_phases(const GemmProblem& problem, const PhaseOperands& operands,
                const EncodePixels& encode, abi::Sm90PhaseParams& params);

}  // namespace gemmery::templates
