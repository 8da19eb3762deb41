// SPDX-License-Identifier: Apache-2.0
// Shell completion of verbs, the options of each verb, devices and targets.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace gemmery::cli {

// The shells that have a script.
std::span<const std::string_view> completed_shells();

// The script of one of these shells. The shell reads it when it starts.
std::string completion_script(std::string_view shell);

}  // namespace gemmery::cli
