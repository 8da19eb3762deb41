// SPDX-License-Identifier: Apache-2.0
// The cuBLASLt that was found. It stays open until the process ends.
#pragma once

#include <memory>
#include <string>

#include "providers/cublaslt/cublaslt_api.hpp"

namespace gemmery::cublaslt {

struct Version {
  int major = 0;
  int minor = 0;
  int patch = 0;

  friend auto operator<=>(const Version&, const Version&) = default;
};

// "13.1.2"
std::string to_string(Version version);
// Of the number that cublasLtGetVersion returns: 130102.
Version version_of(std::size_t number) noexcept;

struct Library {
  Api api;
  Version version;
  std::string path;
};

struct FoundLibrary {
  std::unique_ptr<const Library> library;
  std::string reason;  // why there is none: "unavailable: …"
};

// Opens the library that GEMMERY_CUBLASLT_LIBRARY names, otherwise one that the process has loaded,
// one of a Python package, of a toolkit, or the system's. Never throws.
FoundLibrary find_library() noexcept;

// The library of this process: searched for at the first call.
const FoundLibrary& process_library();

// Throws Error (unsupported, out_of_memory or launch) for the result of a function.
[[noreturn]] void fail(const Library& library, Result result, const char* function);
inline void check(const Library& library, Result result, const char* function) {
  if (result != Result::success) [[unlikely]]
    fail(library, result, function);
}
// "CUBLAS_STATUS_…: what the library says"
std::string describe(const Library& library, Result result);

}  // namespace gemmery::cublaslt
