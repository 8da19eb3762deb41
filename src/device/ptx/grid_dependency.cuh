// SPDX-License-Identifier: Apache-2.0
// Programmatic dependent launches of sm_90: a kernel starts while the previous one on the stream
// ends.
#pragma once

namespace gemmery::device::ptx {

/// Waits until the kernels that this launch depends on are complete and their writes visible.
/// Without such kernels it does nothing.
__device__ inline void griddepcontrol_wait() { asm volatile("griddepcontrol.wait;" ::: "memory"); }

/// Lets the dependent launch start once every block has called this or has ended.
__device__ inline void griddepcontrol_launch_dependents() {
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}

}  // namespace gemmery::device::ptx
