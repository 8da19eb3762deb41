// SPDX-License-Identifier: Apache-2.0
// A source and the embedded headers that it includes as one text, for people and for compilers that
// do not have the headers.
#pragma once

#include <string>
#include <string_view>

namespace gemmery::jit {

// Replaces lines `#include <NAME>` of embedded headers by their texts. Headers with `#pragma once`
// appear once. Other lines stay.
std::string inline_headers(std::string_view source);

}  // namespace gemmery::jit
