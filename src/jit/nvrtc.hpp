// SPDX-License-Identifier: Apache-2.0
// Finds NVRTC, once, and says where it was looked for. The library stays open until the process
// ends.
#pragma once

#include <gemmery/target.hpp>

#include <string>
#include <vector>

#include "jit/compiler_choice.hpp"
#include "jit/nvrtc_api.hpp"

namespace gemmery::jit {

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

// What tells this NVRTC from every other one: the identities of its files. Of the one that is open;
// before that of the one that a search would come to first, which is then not opened, unless only
// the system's loader knows where it is. Throws what `find_nvrtc` throws.
std::string nvrtc_identity();

// What `doctor` tells of the compiler. Never throws.
CompilerStatus compiler_status() noexcept;

}  // namespace gemmery::jit
