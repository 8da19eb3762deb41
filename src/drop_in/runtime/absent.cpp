// SPDX-License-Identifier: Apache-2.0
// What the library lacks of the runtime API: functions that refuse by their name.
#include "drop_in/runtime/call.hpp"

// Here the names mean the older forms.
#undef cudaGetDeviceProperties
#undef cudaStreamGetCaptureInfo

namespace gemmery::drop_in::runtime {
namespace {

Error refuse(const char* function) noexcept { return note(driver::gemmery_refuse_call(function)); }

}  // namespace
}  // namespace gemmery::drop_in::runtime

// Their parameters are not looked at, so none are declared; whoever calls cleans up behind them.
extern "C" {
#define X(name)                                                                   \
  __attribute__((visibility("default"))) gemmery::drop_in::runtime::Error name(); \
  gemmery::drop_in::runtime::Error name() { return gemmery::drop_in::runtime::refuse(#name); }
#include "drop_in/runtime/absent_calls.def"
#undef X
}
