// SPDX-License-Identifier: Apache-2.0
// What the library lacks of the driver API: functions that refuse by their name.
#include "drop_in/driver/call.hpp"
#include "drop_in/driver/exports.hpp"

extern "C" gemmery::driver::cuda::Result gemmery::driver::gemmery_refuse_call(
    const char* function) {
  drop_in::say_refused(function);
  return cuda::Result::not_supported;
}

// Their parameters are not looked at, so none are declared; whoever calls cleans up behind them.
extern "C" {
#define X(name)                                                                 \
  __attribute__((visibility("default"))) gemmery::drop_in::cuda::Result name(); \
  gemmery::drop_in::cuda::Result name() { return gemmery::driver::gemmery_refuse_call(#name); }
#include "drop_in/driver/absent_calls.def"
#undef X
}
