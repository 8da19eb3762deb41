// SPDX-License-Identifier: Apache-2.0
// Results of the emulator's driver functions: a code, and a message on request.
#pragma once

#include <string>
#include <utility>

#include "driver/cuda_api.hpp"

namespace gemmery::emulator {

namespace cuda = driver::cuda;

// Thrown within a driver function to refuse a call.
struct Refusal {
  cuda::Result result = cuda::Result::invalid_value;
  std::string words;
};

// The code for the exception in flight. Its message is kept for this thread; a Fault is logged.
cuda::Result note_exception() noexcept;

// "CUDA_ERROR_INVALID_VALUE"
const char* name_of(cuda::Result result) noexcept;

// The message of this thread's last failure with that code, else the manual's text.
const char* words_of(cuda::Result result) noexcept;

// Runs the body of a driver function.
template <class Body>
cuda::Result answer(Body&& body) noexcept {
  try {
    std::forward<Body>(body)();
    return cuda::Result::success;
  } catch (...) {
    return note_exception();
  }
}

}  // namespace gemmery::emulator
