// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/sanitizer.hpp"

#include <unistd.h>

#include <cstdlib>

#include <fmt/format.h>

namespace gemmery::conformance {

std::vector<std::string> environment() {
  std::vector<std::string> entries;
  for (char** entry = environ; *entry != nullptr; ++entry) entries.emplace_back(*entry);
  return entries;
}

std::optional<std::string> find_sanitizer() {
  std::vector<std::string> folders;
  for (const char* const name : {"CUDA_HOME", "CUDA_PATH"}) {
    if (const char* const folder = std::getenv(name))
      folders.push_back(std::string(folder) + "/bin");
  }
  folders.push_back("/usr/local/cuda/bin");
  folders.push_back("/usr/local/cuda/compute-sanitizer");
  for (const std::string& folder : folders) {
    const std::string path = folder + "/compute-sanitizer";
    if (access(path.c_str(), X_OK) == 0) return path;
  }
  return std::nullopt;
}

std::vector<std::string> sanitizer_words(const std::string& sanitizer, std::string_view tool) {
  return {sanitizer, fmt::format("--tool={}", tool), "--print-limit=3",
          fmt::format("--error-exitcode={}", sanitizer_code)};
}

}  // namespace gemmery::conformance
