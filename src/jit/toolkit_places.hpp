// SPDX-License-Identifier: Apache-2.0
// Where the environment says that CUDA toolkits and their programs are. What is not absolute is
// passed over: it would mean the working directory, which is nobody's choice.
#pragma once

#include <string>
#include <vector>

namespace gemmery::jit {

// Where a toolkit is installed if nobody says anything.
inline constexpr const char* usual_toolkit = "/usr/local/cuda";

// What CUDA_HOME, CUDA_PATH and CUDA_INSTALL_PATH name, in this order.
std::vector<std::string> named_toolkits();

// The absolute folders of a variable that lists folders with ':' between them.
std::vector<std::string> listed_folders(const char* variable);

}  // namespace gemmery::jit
