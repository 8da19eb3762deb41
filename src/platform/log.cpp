// SPDX-License-Identifier: Apache-2.0
// The sink and its lock.
#include "platform/log.hpp"

#include <atomic>
#include <mutex>
#include <utility>

namespace gemmery {
namespace {

constexpr int silent = 255;

struct SinkState {
  std::mutex mutex;
  LogSink sink;
  std::atomic<int> least{silent};
};

// Leaked on purpose: threads of the user may log while static objects are being destroyed.
SinkState& sink_state() {
  static auto* const state = new SinkState;
  return *state;
}

}  // namespace

void set_log_sink(LogSink sink, LogLevel least) {
  SinkState& state = sink_state();
  const std::scoped_lock lock(state.mutex);
  state.least = sink ? static_cast<int>(least) : silent;
  state.sink = std::move(sink);
}

namespace platform {

bool is_logged(LogLevel level) noexcept {
  return static_cast<int>(level) >= sink_state().least.load(std::memory_order_relaxed);
}

void log(LogLevel level, std::string_view message) noexcept {
  if (!is_logged(level)) return;
  try {
    SinkState& state = sink_state();
    const std::scoped_lock lock(state.mutex);
    if (state.sink) state.sink(level, message);
  } catch (...) {  // a failing sink must not fail the work that it reports on
  }
}

}  // namespace platform
}  // namespace gemmery
