// SPDX-License-Identifier: Apache-2.0
// Finds NVRTC once and reports where it was searched for. The library stays open until the process
// ends.
#pragma once

#include <gemmery/target.hpp>

#include <string>
#include <vector>

#include "jit/compiler_choice.hpp"
#include "jit/nvrtc_api.hpp"

namespace gemmery::jit {

// The oldest NVRTC that knows the options and the language of our device code.
inline constexpr CompilerVersion oldest_nvrtc{12, 4};

// NVRTC, opened and resolved.
struct Nvrtc {
  NvrtcApi api;
  std::string path;  // absolute
  CompilerVersion version;
  std::vector<int> architectures;  // supported targets: 75, 80, …

  bool knows(Target target) const noexcept;
};

// Throws Error: unavailable with every place that was searched, invalid_argument for a relative
// GEMMERY_NVRTC_LIBRARY.
//
// Places, in order: GEMMERY_NVRTC_LIBRARY (and then nowhere else); a libnvrtc that the process has
// loaded already; lib64 of CUDA_HOME, CUDA_PATH, CUDA_INSTALL_PATH; /usr/local/cuda/lib64; the
// system's loader. GEMMERY_HIDE_CUDA=1 leaves only the first.
const Nvrtc& find_nvrtc();

// The identity of NVRTC's files: of the open one; before NVRTC is opened, of the one that a search
// would find first, without opening it unless only the system's loader knows its place. Throws what
// `find_nvrtc` throws.
std::string nvrtc_identity();

// The compiler's part of `doctor`. Never throws.
CompilerStatus compiler_status() noexcept;

}  // namespace gemmery::jit
