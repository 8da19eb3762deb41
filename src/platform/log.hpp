// SPDX-License-Identifier: Apache-2.0
// Hands the library's words to the sink that the user set, if any, and to the place that the
// environment names, if any: GEMMERY_LOG_LEVEL and GEMMERY_LOG_FILE.
#pragma once

#include <gemmery/log.hpp>

#include <string_view>

namespace gemmery::platform {

// Whether a message of this level would reach a sink; to skip the making of messages.
bool is_logged(LogLevel level) noexcept;

// Never throws: a sink that does loses its message, as does a file that is full.
void log(LogLevel level, std::string_view message) noexcept;

// Throws Error where one of the two variables cannot be served: invalid_argument for a value that
// cannot be read, io for a file that cannot be written. `log` itself goes without them then.
void check_log_environment();

}  // namespace gemmery::platform
