// SPDX-License-Identifier: Apache-2.0
// The error that this room throws about an epilogue as a whole.
#pragma once

#include <gemmery/error.hpp>

#include <string>
#include <utility>

namespace gemmery::epilogue {

[[noreturn]] inline void refuse(std::string expected, std::string got, std::string hint = {}) {
  throw Error({.kind = ErrorKind::invalid_argument,
               .operand = "epilogue",
               .expected = std::move(expected),
               .got = std::move(got),
               .hint = std::move(hint)});
}

}  // namespace gemmery::epilogue
