// SPDX-License-Identifier: Apache-2.0
// The families of our own GPU kernels.
#pragma once

#include <gemmery/family.hpp>

#include <memory>
#include <vector>

namespace gemmery::templates {

// Best first; simt, the fallback, is last.
std::vector<std::unique_ptr<Family>> make_families();

}  // namespace gemmery::templates
