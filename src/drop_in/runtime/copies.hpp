// SPDX-License-Identifier: Apache-2.0
// Copies as the driver describes them.
#pragma once

#include "drop_in/runtime/call.hpp"

namespace gemmery::drop_in::runtime {

// Rows and planes between addresses of any kind. Arrays keep their type, which the driver refuses.
cuda::Copy3D driver_copy(const CopyParameters& parameters) noexcept;
cuda::Copy3D driver_copy(void* to, const void* from, std::size_t bytes) noexcept;

// The code for a direction that there is not.
cuda::Result check(CopyKind kind) noexcept;

}  // namespace gemmery::drop_in::runtime
