// SPDX-License-Identifier: Apache-2.0
// Hands the library's words to the sink that the user set, if any.
#pragma once

#include <gemmery/log.hpp>

#include <string_view>

namespace gemmery::platform {

// Whether a message of this level would reach a sink; to skip the making of messages.
bool is_logged(LogLevel level) noexcept;

// Never throws: a sink that does loses its message.
void log(LogLevel level, std::string_view message) noexcept;

}  // namespace gemmery::platform
