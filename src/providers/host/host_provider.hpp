// SPDX-License-Identifier: Apache-2.0
// The CPU's families: oneDNN if it is installed, our own loops, the reference.
#pragma once

#include <gemmery/family.hpp>

#include <memory>
#include <vector>

namespace gemmery::host {

// Best first; the reference, which accepts everything, last.
std::vector<std::unique_ptr<Family>> make_families();

}  // namespace gemmery::host
