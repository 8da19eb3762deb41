// SPDX-License-Identifier: Apache-2.0
// For launches that continue after a fault: checks after which execution can continue pass their
// fault to a handler instead of throwing it.
#pragma once

#include "emulator/check/fault.hpp"

namespace gemmery::emulator {

class FaultHandler {
 public:
  virtual ~FaultHandler() = default;
  // Keeps the fault, with its place filled in.
  virtual void take(Fault& fault) = 0;
};

// The handler of this thread's launch; nullptr (the default): the first fault ends the launch.
inline FaultHandler*& fault_handler() noexcept {
  thread_local FaultHandler* handler = nullptr;
  return handler;
}

class FaultHandlerScope {
 public:
  explicit FaultHandlerScope(FaultHandler* handler) noexcept : outer_(fault_handler()) {
    fault_handler() = handler;
  }
  ~FaultHandlerScope() { fault_handler() = outer_; }
  FaultHandlerScope(const FaultHandlerScope&) = delete;
  FaultHandlerScope& operator=(const FaultHandlerScope&) = delete;

 private:
  FaultHandler* outer_;
};

// Passes the fault to the handler and returns, and the caller continues as if the kernel were
// right. Throws the fault if there is no handler.
template <class AnyFault>
[[gnu::noinline, gnu::cold]] void take_or_throw(AnyFault fault) {
  FaultHandler* const handler = fault_handler();
  if (handler == nullptr) throw fault;
  handler->take(fault);
}

}  // namespace gemmery::emulator
