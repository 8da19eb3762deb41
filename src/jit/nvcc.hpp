// SPDX-License-Identifier: Apache-2.0
// The second compiler: nvcc, run as a program in a folder of its own with an environment of its
// own. Its signature is NVRTC's: a request in, code out.
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

// Throws Error (unavailable) with every place that was looked in. Places, in order: bin of
// CUDA_HOME, CUDA_PATH, CUDA_INSTALL_PATH; the folders of PATH; /usr/local/cuda/bin. What is not an
// absolute path is passed over. GEMMERY_HIDE_CUDA=1 leaves none.
const Nvcc& find_nvcc();

// The words behind the program's name that do not depend on where the files are, in order; part of
// the key of what is built.
std::vector<std::string> nvcc_options(const CompileRequest& request);

// Throws what `compile` throws.
CompiledCode compile_with_nvcc(const CompileRequest& request);

// What `doctor` tells of it. Never throws.
CompilerStatus nvcc_status() noexcept;

}  // namespace gemmery::jit
