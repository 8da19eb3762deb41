// SPDX-License-Identifier: Apache-2.0
// Reads the variables anew at each call: the user may correct them meanwhile.
#include "jit/toolkit_places.hpp"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <optional>
#include <system_error>

#include "platform/environment.hpp"

namespace gemmery::jit {
namespace {

namespace fs = std::filesystem;

// ROOT/lib/python3.12/site-packages, for every version that exists; the latest first.
void add_site_folders(const fs::path& root, std::vector<std::string>& folders) {
  std::vector<std::string> found;
  std::error_code ignored;  // a missing folder counts as empty
  for (fs::directory_iterator entry(root / "lib", ignored), end; entry != end;
       entry.increment(ignored)) {
    if (!entry->path().filename().string().starts_with("python3")) continue;
    for (const char* const kind : {"site-packages", "dist-packages"})
      found.push_back((entry->path() / kind).string());
  }
  std::ranges::sort(found, std::greater<>());
  folders.insert(folders.end(), found.begin(), found.end());
}

}  // namespace

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

std::vector<std::string> python_folders() {
  std::vector<std::string> folders = listed_folders("PYTHONPATH");
  for (const std::string& root : listed_folders("VIRTUAL_ENV")) add_site_folders(root, folders);
  for (const char* const root : {"/usr/local", "/usr"}) add_site_folders(root, folders);
  return folders;
}

}  // namespace gemmery::jit
