// SPDX-License-Identifier: Apache-2.0
// Code that the launches of all sm90 kernels share.
#pragma once

#include <gemmery/device.hpp>
#include <gemmery/problem.hpp>

#include <array>
#include <bit>

#include "device/abi/sm90_params.hpp"
#include "driver/tensor_map.hpp"
#include "providers/templates/repacking.hpp"
#include "providers/templates/sm90/design.hpp"
#include "providers/templates/tma_view.hpp"
#include "runtime/device_family.hpp"
#include "runtime/launch_plan.hpp"

namespace gemmery::templates {

template <class View>
abi::TensorMap encode_map(const driver::DriverApi& api, const View& view) {
  return std::bit_cast<abi::TensorMap>(driver::encode(api, view));
}

// The box of one copy of A or B as the kernel sees them.
TmaBox a_box(const abi::Sm90Design& design);
TmaBox b_box(const abi::Sm90Design& design);

// A and B, or B and A if the kernel computes out^T.
std::array<ProductOperand, 2> sides_of(const GemmProblem& problem, const Kernel& kernel);
std::array<const void*, 2> data_of(const GemmArguments& arguments, const Kernel& kernel);

// An address that a tensor map may have. Used for repacked copies, whose maps get their address
// with the workspace, and if nothing is read.
const void* aligned_down(const void* address);

void set_shape(const abi::Sm90Design& design, unsigned blocks, runtime::LaunchPlan& plan);

// True if blocks fill at most half of the multiprocessors or nearly all of them (sm90_params.hpp
// says why).
bool lets_next_begin(unsigned blocks, const DeviceInfo& device);

// Clusters stride over tiles, so as many as are resident cover all tiles.
unsigned resident_clusters(const runtime::PackRequest& request, int cluster_size);

// The launch of a list of problems.
void pack_list(const runtime::PackRequest& request, const abi::Sm90Design& design,
               runtime::LaunchPlan& plan);

}  // namespace gemmery::templates
