// SPDX-License-Identifier: Apache-2.0
// The faults of sm90 kernels whose batches are arrays of pointers.
#include "tests/conformance/device_faults.hpp"

namespace gemmery::conformance {
namespace {

constexpr auto pointers = SoundKernel::pointers;

constexpr DeviceFault fault_table[] = {
    {.name = "nothing", .kernel = pointers},
    {.name = "A's first matrix for all",
     .kernel = pointers,
     .edits = {{{"(params_.a_array, place.batch * params_.a_batch_step)",
                 "(params_.a_array, 0)"}}}},
    {.name = "B's matrix of the batch before",
     .kernel = pointers,
     .edits = {{{"(params_.b_array, place.batch * params_.b_batch_step)",
                 "(params_.b_array, place.batch == 0 ? 0 : place.batch - 1)"}}}},
    {.name = "out's matrix is found for the first tile only",
     .kernel = pointers,
     .edits = {{{"matrix_ = find_in_map<true>(",
                 "if (filled_.row + filled_.column == 0) matrix_ = find_in_map<true>("}}}},
    {.name = "out's matrix is found for a block of rows too late",
     .kernel = pointers,
     .edits = {{{"if (index == 0) find_matrix(place);", ""},
                {"block.end();\n", "block.end();\n    find_matrix(place);\n"}}}},
    {.name = "distances of 35 bits",
     .kernel = pointers,
     .edits = {{{"static_cast<int>(distance / far_step_bytes)", "0"}}}},
    {.name = "distances of 31 bits",
     .kernel = pointers,
     .edits = {{{"distance / near_step_bytes % near_extent",
                 "distance / near_step_bytes % (near_extent >> 4)"}}}},
    {.name = "a strided batch beside others stays at its first matrix",
     .kernel = pointers,
     .edits = {{{"return {{static_cast<int>(batch), 0}};", "return {{0, 0}};"}}}},
    {.name = "C's first matrix for all",
     .kernel = pointers,
     .edits = {{{"static_cast<void* const*>(data) + batch), 0}",
                 "static_cast<void* const*>(data)), 0}"}}}},
    {.name = "C's addresses read as its elements",
     .kernel = pointers,
     .edits = {{{"if (batch_stride == abi::by_pointers)\n      return {ptx",
                 "if (false)\n      return {ptx"}}}},
};

}  // namespace

std::span<const DeviceFault> pointer_faults() noexcept { return fault_table; }

}  // namespace gemmery::conformance
