// SPDX-License-Identifier: Apache-2.0
// Where the library's words go. Silent by default: nothing is printed and no file is made unless a
// sink is set, or the environment asks for it (GEMMERY_LOG_LEVEL, GEMMERY_LOG_FILE), which gets
// them beside the sink.
#pragma once

#include <functional>
#include <string_view>

#include <gemmery/export.hpp>

namespace gemmery {

enum class LogLevel : unsigned char { debug, info, warning, error };

using LogSink = std::function<void(LogLevel level, std::string_view message)>;

// Replaces the sink; an empty one silences. Called from any thread, one call at a time; must not
// call back into the library.
GEMMERY_API void set_log_sink(LogSink sink, LogLevel least = LogLevel::info);

}  // namespace gemmery
