// SPDX-License-Identifier: Apache-2.0
// Opens the fake library as the provider opens the real one.
#pragma once

#include <cstdlib>
#include <string>

#include "platform/library.hpp"
#include "providers/cublaslt/library.hpp"
#include "tests/providers/cublaslt/fake_cublaslt.hpp"

namespace gemmery::tests {

// The absolute path of a fake library, which lies beside the test program.
inline std::string fake_library_path(const std::string& file = "libfake_cublaslt.so") {
  std::string program(4096, '\0');
  char* const resolved = ::realpath("/proc/self/exe", program.data());
  const std::string path = resolved == nullptr ? "" : resolved;
  return path.substr(0, path.rfind('/') + 1) + file;
}

// Names a library in the environment.
class NamedLibrary {
 public:
  explicit NamedLibrary(const std::string& path) {
    ::setenv("GEMMERY_CUBLASLT_LIBRARY", path.c_str(), 1);
  }
  ~NamedLibrary() { ::unsetenv("GEMMERY_CUBLASLT_LIBRARY"); }
  NamedLibrary(const NamedLibrary&) = delete;
  NamedLibrary& operator=(const NamedLibrary&) = delete;
};

inline FakeCublasLt& fake_cublaslt() {
  static FakeCublasLt* const state = [] {
    const std::vector<std::string> path{fake_library_path()};
    const auto opened = platform::LibrarySearch::open_first(path);
    return opened.library->find_function<FindFakeCublasLt>("fake_cublaslt")();
  }();
  return *state;
}

inline const cublaslt::FoundLibrary& fake_library() {
  static const auto* const found = [] {
    const NamedLibrary named(fake_library_path());
    return new cublaslt::FoundLibrary(cublaslt::find_library());
  }();
  return *found;
}

}  // namespace gemmery::tests
