// SPDX-License-Identifier: Apache-2.0
// The part of NVRTC (12.4 and later) that is used here, written from its manual, so that no toolkit
// header is needed.
#pragma once

#include <cstddef>

namespace gemmery::jit {

namespace nvrtc {

using Program = struct ProgramHandle*;

enum class Result : int {
  success = 0,
  out_of_memory = 1,
  invalid_option = 5,
  compilation = 6,
  cancelled = 16,
};

}  // namespace nvrtc

// Every function that is called: name in the manual, return type, parameters.
#define GEMMERY_NVRTC_FUNCTIONS(X)                                                        \
  X(nvrtcVersion, nvrtc::Result, (int* major, int* minor))                                \
  X(nvrtcGetErrorString, const char*, (nvrtc::Result result))                             \
  X(nvrtcGetNumSupportedArchs, nvrtc::Result, (int* count))                               \
  X(nvrtcGetSupportedArchs, nvrtc::Result, (int* architectures))                          \
  X(nvrtcCreateProgram, nvrtc::Result,                                                    \
    (nvrtc::Program * program, const char* source, const char* name, int header_count,    \
     const char* const* headers, const char* const* include_names))                       \
  X(nvrtcDestroyProgram, nvrtc::Result, (nvrtc::Program * program))                       \
  X(nvrtcCompileProgram, nvrtc::Result,                                                   \
    (nvrtc::Program program, int option_count, const char* const* options))               \
  X(nvrtcGetCUBINSize, nvrtc::Result, (nvrtc::Program program, std::size_t * bytes))      \
  X(nvrtcGetCUBIN, nvrtc::Result, (nvrtc::Program program, char* cubin))                  \
  X(nvrtcGetPTXSize, nvrtc::Result, (nvrtc::Program program, std::size_t * bytes))        \
  X(nvrtcGetPTX, nvrtc::Result, (nvrtc::Program program, char* ptx))                      \
  X(nvrtcGetProgramLogSize, nvrtc::Result, (nvrtc::Program program, std::size_t * bytes)) \
  X(nvrtcGetProgramLog, nvrtc::Result, (nvrtc::Program program, char* log))

// The table of functions; the last one exists in later versions only.
struct NvrtcApi {
#define GEMMERY_DECLARE(name, result, parameters) result(*name) parameters = nullptr;
  GEMMERY_NVRTC_FUNCTIONS(GEMMERY_DECLARE)
#undef GEMMERY_DECLARE
  nvrtc::Result (*nvrtcSetFlowCallback)(nvrtc::Program program, int (*callback)(void*, void*),
                                        void* payload) = nullptr;
};

}  // namespace gemmery::jit
