// SPDX-License-Identifier: Apache-2.0
// An element type as designs have it.
#pragma once

#include <gemmery/dtype.hpp>

#include "device/abi/dtype.hpp"

namespace gemmery::templates {

constexpr abi::DType abi_type(DType dtype) noexcept { return static_cast<abi::DType>(dtype); }

}  // namespace gemmery::templates
