// SPDX-License-Identifier: Apache-2.0
// Finds NVRTC, once, and says where it was looked for. The library stays open until the process
// ends.
#pragma once

#include <gemmery/target.hpp>

#include <compare>
#include <string>
#include <vector>

#include "jit/nvrtc_api.hpp"

namespace gemmery::jit {

struct CompilerVersion {
  int major = 0;
  int minor = 0;

  friend auto operator<=>(const CompilerVersion&, const CompilerVersion&) = default;
};
std::string to_string(CompilerVersion version);

// The oldest NVRTC that knows the options and the language that device code is written with.
inline constexpr CompilerVersion oldest_nvrtc{12, 4};

// NVRTC, opened and resolved.
struct Nvrtc {
  NvrtcApi api;
  std::string path;  // absolute
  CompilerVersion version;
  std::vector<int> architectures;  // that it compiles for: 75, 80, …

  bool knows(Target target) const noexcept;
};

// Throws Error: unavailable with every place that was looked in, invalid_argument for a relative
// GEMMERY_NVRTC_LIBRARY.
//
// Places, in order: GEMMERY_NVRTC_LIBRARY (and then nowhere else); a libnvrtc that the process has
// loaded already; lib64 of CUDA_HOME, CUDA_PATH, CUDA_INSTALL_PATH; /usr/local/cuda/lib64; the
// system's loader. GEMMERY_HIDE_CUDA=1 leaves only the first.
const Nvrtc& find_nvrtc();

// What `doctor` tells of the compiler. Never throws.
struct CompilerStatus {
  bool found = false;
  std::string path;
  std::string version;
  std::string searched;  // where it was looked for, when it was not found
};
CompilerStatus compiler_status() noexcept;

}  // namespace gemmery::jit
