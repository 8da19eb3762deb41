// SPDX-License-Identifier: Apache-2.0
// The provider `cublaslt`: NVIDIA's cuBLASLt, opened at run time.
#pragma once

#include <gemmery/family.hpp>

#include <memory>
#include <vector>

namespace gemmery::cublaslt {

std::vector<std::unique_ptr<Family>> make_families();

}  // namespace gemmery::cublaslt
