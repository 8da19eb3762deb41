// SPDX-License-Identifier: Apache-2.0
// The second compiler: nvcc, run as a program in a private folder with a private environment. The
// interface is NVRTC's: a request in, code out.
#pragma once

#include <string>
#include <vector>

#include "jit/compiler.hpp"
#include "jit/compiler_choice.hpp"

namespace gemmery::jit {

struct Nvcc {
  std::string path;  // absolute
  CompilerVersion version;
  std::string build;  // "cuda_13.0.r13.0/compiler.36424714_0"
};

// Throws Error (unavailable) with every place that was searched. Places, in order: bin of
// CUDA_HOME, CUDA_PATH, CUDA_INSTALL_PATH; the folders of PATH; /usr/local/cuda/bin. Paths that are
// not absolute are skipped. GEMMERY_HIDE_CUDA=1 leaves none.
const Nvcc& find_nvcc();

// The arguments that do not depend on where the files are, in order; part of the key.
std::vector<std::string> nvcc_options(const CompileRequest& request);

// Throws what `compile` throws.
CompiledCode compile_with_nvcc(const CompileRequest& request);

// nvcc's part of `doctor`. Never throws.
CompilerStatus nvcc_status() noexcept;

}  // namespace gemmery::jit
