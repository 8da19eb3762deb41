// SPDX-License-Identifier: Apache-2.0
// Searches for a fault in a kernel with a program: in random problems with several tiles per block,
// and in launches that leave their workspace to the next one.
#pragma once

#include <string>

#include "tests/conformance/fault_hunt.hpp"

namespace gemmery::conformance {

// As hunt_at_random, but each round has one case more than the previous one.
std::string hunt_with_program(const Kernel& kernel, const Hunt& hunt);

}  // namespace gemmery::conformance
