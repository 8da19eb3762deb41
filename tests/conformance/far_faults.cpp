// SPDX-License-Identifier: Apache-2.0
// Planted faults: 32-bit products in address arithmetic of sm90 kernels.
#include "tests/conformance/device_faults.hpp"

namespace gemmery::conformance {
namespace {

constexpr auto far = SoundKernel::far;

constexpr DeviceFault fault_table[] = {
    {.name = "nothing", .kernel = far},
    {.name = "rows of C in 32 bits",
     .kernel = far,
     .edits = {{{"start.elements + row * c.row_stride",
                 "start.elements + static_cast<int>(row * c.row_stride)"}}}},
    {.name = "batches in 32 bits",
     .kernel = far,
     .edits = {{{"static_cast<abi::Int64>(batch) * batch_stride};",
                 "static_cast<int>(batch * batch_stride)};"}}}},
    {.name = "rows of out in 32 bits",
     .kernel = far,
     .edits = {{{"start.elements + corner.row * out.row_stride",
                 "start.elements + static_cast<int>(corner.row * out.row_stride)"}}}},
    {.name = "rows of a warp in 32 bits",
     .kernel = far,
     .edits = {{{"(row * out.row_stride + column) * static_cast<int>(element_bytes);",
                 "static_cast<int>((row * out.row_stride + column) * "
                 "static_cast<int>(element_bytes));"}}}},
};

}  // namespace

std::span<const DeviceFault> far_faults() noexcept { return fault_table; }

}  // namespace gemmery::conformance
