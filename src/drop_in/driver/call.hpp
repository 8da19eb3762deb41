// SPDX-License-Identifier: Apache-2.0
// How a function of the library answers: a code, and a line on standard error for what it refuses.
#pragma once

#include <string_view>
#include <utility>

#include "drop_in/driver/driver_calls.hpp"
#include "emulator/check/fault.hpp"
#include "emulator/handles.hpp"

namespace gemmery::drop_in {

namespace cuda = driver::cuda;
using emulator::EmulatedDevice;
using emulator::Refusal;

// Prints "gemmery: WORDS" on standard error.
void say(std::string_view words) noexcept;

// "gemmery: FUNCTION is not emulated", once for each function.
void say_refused(const char* function) noexcept;

// The code for the exception in flight; its reason is printed behind the function's name.
cuda::Result refuse_call(const char* function) noexcept;

// The code that a device answers after one of its blocks could not continue; success if none did.
// As on hardware, every later call that needs the device fails, until its context is reset.
cuda::Result failure_of(const EmulatedDevice& device) noexcept;
void forget_failure(const EmulatedDevice& device) noexcept;

// Runs the body of a driver function.
template <class Body>
cuda::Result answer(const char* function, Body&& body) noexcept {
  try {
    std::forward<Body>(body)();
    return cuda::Result::success;
  } catch (...) {
    return refuse_call(function);
  }
}

// The same for calls that need a working device: after a failure they return its code.
template <class Body>
cuda::Result answer_on_device(const char* function, Body&& body) noexcept {
  return answer(function, [&] {
    const cuda::Result failure = failure_of(emulator::current_device());
    if (failure != cuda::Result::success) throw Refusal{failure, {}};
    std::forward<Body>(body)();
  });
}

// Throws Refusal (invalid_value) for a null pointer.
template <class T>
T& require(T* pointer) {
  if (pointer == nullptr) throw Refusal{cuda::Result::invalid_value, {}};
  return *pointer;
}

}  // namespace gemmery::drop_in
