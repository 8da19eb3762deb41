// SPDX-License-Identifier: Apache-2.0
// The steps that a run and a prepared launch share.
#pragma once

#include <gemmery/stream.hpp>

#include "runtime/device_artifact.hpp"
#include "runtime/launch_plan.hpp"

namespace gemmery::runtime {

// Writes the address of the workspace into the parameters of the plan's kernels.
void place_workspace(const LoadedKernel& loaded, LaunchPlan& plan, void* workspace);

// Launches the preparation first, if the plan has one. Throws Error (launch) with the
// kernel and its launch shape.
void put_launch(const Kernel& kernel, const LoadedKernel& loaded, LaunchPlan& plan, Stream stream);

// Clears the zeroed part of the workspace, then launches.
void clear_and_launch(const Kernel& kernel, const LoadedKernel& loaded, LaunchPlan& plan,
                      void* workspace, Stream stream);

}  // namespace gemmery::runtime
