// SPDX-License-Identifier: Apache-2.0
// The source of a described kernel.
#pragma once

#include <gemmery/kernel.hpp>

#include <string>

namespace gemmery::describe {

std::string emitted_text(const Kernel& kernel, Target target);

}  // namespace gemmery::describe
