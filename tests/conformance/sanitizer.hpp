// SPDX-License-Identifier: Apache-2.0
// compute-sanitizer: where it is, and how a program runs under one of its tools.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gemmery::conformance {

inline constexpr int sanitizer_code = 99;  // compute-sanitizer's exit code if it found an error

// Looked for in CUDA_HOME, CUDA_PATH and /usr/local/cuda.
std::optional<std::string> find_sanitizer();

// The words before a program's own: memcheck, racecheck, initcheck or synccheck.
std::vector<std::string> sanitizer_words(const std::string& sanitizer, std::string_view tool);

// Of this process, each "NAME=value".
std::vector<std::string> environment();

}  // namespace gemmery::conformance
