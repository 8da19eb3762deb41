// SPDX-License-Identifier: Apache-2.0
// How a function of the runtime answers: with the driver's code, which it keeps as this thread's
// last error.
#pragma once

#include <utility>

#include "drop_in/driver/exports.hpp"
#include "drop_in/runtime/runtime_calls.hpp"

namespace gemmery::drop_in::runtime {

// Keeps an error as this thread's last one.
Error note(Error error) noexcept;
inline Error note(cuda::Result result) noexcept { return note(static_cast<Error>(result)); }

// Makes the primary context of this thread's device current, unless the program has set a context.
cuda::Result enter() noexcept;

// Runs a call of the driver, or several, with a context.
template <class Call>
Error call(Call&& driver_call) noexcept {
  const cuda::Result entered = enter();
  return note(entered != cuda::Result::success ? entered : std::forward<Call>(driver_call)());
}

inline cuda::DevicePointer device_pointer(const void* pointer) noexcept {
  return static_cast<cuda::DevicePointer>(reinterpret_cast<std::uintptr_t>(pointer));
}
inline void* host_pointer(cuda::DevicePointer pointer) noexcept {
  return reinterpret_cast<void*>(static_cast<std::uintptr_t>(pointer));
}

}  // namespace gemmery::drop_in::runtime
