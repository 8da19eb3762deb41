// SPDX-License-Identifier: Apache-2.0
// Reads the variables anew at each call: the user may correct them meanwhile.
#include "jit/toolkit_places.hpp"

#include <algorithm>
#include <optional>

#include "platform/environment.hpp"

namespace gemmery::jit {

std::vector<std::string> named_toolkits() {
  std::vector<std::string> roots;
  for (const char* const variable : {"CUDA_HOME", "CUDA_PATH", "CUDA_INSTALL_PATH"}) {
    const std::optional<std::string> root = platform::read_environment(variable);
    if (root && root->starts_with('/')) roots.push_back(*root);
  }
  return roots;
}

std::vector<std::string> listed_folders(const char* variable) {
  std::vector<std::string> folders;
  const std::string list = platform::read_environment(variable).value_or("");
  for (std::size_t begin = 0; begin < list.size();) {
    const std::size_t end = std::min(list.find(':', begin), list.size());
    if (list[begin] == '/') folders.push_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  return folders;
}

}  // namespace gemmery::jit
