// SPDX-License-Identifier: Apache-2.0
// The Error that a call throws, to look into.
#pragma once

#include <gtest/gtest.h>
#include <gemmery/error.hpp>

namespace gemmery::tests {

template <class Body>
Error thrown_error(Body&& body) {
  try {
    body();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "nothing was thrown";
  return Error({.kind = ErrorKind::io});
}

}  // namespace gemmery::tests
