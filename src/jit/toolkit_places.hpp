// SPDX-License-Identifier: Apache-2.0
// The places of CUDA toolkits and their programs, by the environment. Paths that are not absolute
// are skipped: they would mean the working directory.
#pragma once

#include <string>
#include <vector>

namespace gemmery::jit {

// The default place of a toolkit.
inline constexpr const char* usual_toolkit = "/usr/local/cuda";

// The folders that CUDA_HOME, CUDA_PATH and CUDA_INSTALL_PATH name, in this order.
std::vector<std::string> named_toolkits();

// The absolute folders of a variable that lists folders separated by ':'.
std::vector<std::string> listed_folders(const char* variable);

// Folders of Python packages: those of PYTHONPATH, of VIRTUAL_ENV and of the system.
std::vector<std::string> python_folders();

}  // namespace gemmery::jit
