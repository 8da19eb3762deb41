// SPDX-License-Identifier: Apache-2.0
// A folder that is removed at the end of a test: in memory if possible, since disks are slow to
// confirm writes.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace gemmery::tests {

class TemporaryFolder {
 public:
  TemporaryFolder() : TemporaryFolder(usual_parent()) {}
  explicit TemporaryFolder(const std::filesystem::path& parent) {
    std::string pattern = parent / "gemmery-test-XXXXXX";
    if (mkdtemp(pattern.data()) == nullptr) std::abort();
    path_ = pattern;
  }
  ~TemporaryFolder() {
    std::error_code failure;
    std::filesystem::remove_all(path_, failure);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const noexcept { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  static std::filesystem::path usual_parent() {
    const std::filesystem::path memory = "/dev/shm";
    const bool is_chosen = std::getenv("TMPDIR") != nullptr;
    return !is_chosen && access(memory.c_str(), W_OK) == 0 ? memory
                                                           : std::filesystem::temp_directory_path();
  }

  std::string path_;
};

}  // namespace gemmery::tests
