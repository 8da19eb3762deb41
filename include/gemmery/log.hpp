// SPDX-License-Identifier: Apache-2.0
// Log messages of the library. By default nothing is printed and no file is made. A sink receives
// the messages; so does the output that the environment selects (GEMMERY_LOG_LEVEL,
// GEMMERY_LOG_FILE).
#pragma once

#include <functional>
#include <string_view>

#include <gemmery/export.hpp>

namespace gemmery {

enum class LogLevel : unsigned char { debug, info, warning, error };

using LogSink = std::function<void(LogLevel level, std::string_view message)>;

// Replaces the sink; an empty one disables it. The sink is called from any thread, one call at a
// time; it must not call back into the library.
GEMMERY_API void set_log_sink(LogSink sink, LogLevel least = LogLevel::info);

}  // namespace gemmery
