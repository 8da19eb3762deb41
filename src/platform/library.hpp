// SPDX-License-Identifier: Apache-2.0
// Shared libraries opened at run time: absolute paths or sonames that the system's loader resolves,
// never the working directory.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace gemmery::platform {

// A shared library that stays open until the process ends: closing one that started threads or
// registered handlers crashes.
class SharedLibrary {
 public:
  // The address of a function or object; nullptr if the library has none of that name.
  void* find(const char* symbol) const noexcept;

  template <class Function>
  Function* find_function(const char* symbol) const noexcept {
    return reinterpret_cast<Function*>(find(symbol));
  }

  // The absolute path of the file that was loaded.
  const std::string& path() const noexcept { return path_; }

 private:
  friend struct LibrarySearch;
  SharedLibrary(void* handle, std::string path) : handle_(handle), path_(std::move(path)) {}

  void* handle_;
  std::string path_;
};

// The result of a search: the library, or every place that was tried with the loader's message.
struct LibrarySearch {
  std::optional<SharedLibrary> library;
  std::vector<std::string> tried;

  // "libcuda.so.1 (not found), /usr/local/cuda/lib64/libnvrtc.so.13 (no such file)"
  std::string report() const;

  // Tries each candidate in order: an absolute path, or a plain soname for the system's loader.
  // Relative paths are skipped and reported. Opened with RTLD_LOCAL and RTLD_NOW.
  static LibrarySearch open_first(std::span<const std::string> candidates);

  // Only libraries that this process has already loaded.
  static LibrarySearch find_loaded(std::span<const std::string> sonames);

 private:
  static LibrarySearch open(std::span<const std::string> candidates, int flags);
};

}  // namespace gemmery::platform
