// SPDX-License-Identifier: Apache-2.0
// Passes messages to the sink that the user set, if any, and to the one that the environment names,
// if any: GEMMERY_LOG_LEVEL and GEMMERY_LOG_FILE.
#pragma once

#include <gemmery/log.hpp>

#include <string_view>

namespace gemmery::platform {

// True if a message of this level would reach a sink; lets callers skip composing it.
bool is_logged(LogLevel level) noexcept;

// Never throws. A message is lost if its sink throws or its file system is full.
void log(LogLevel level, std::string_view message) noexcept;

// Throws Error if one of the two variables cannot be used: invalid_argument for a value that cannot
// be parsed, io for a file that cannot be written. `log` itself ignores such variables.
void check_log_environment();

}  // namespace gemmery::platform
