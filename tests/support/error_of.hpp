// SPDX-License-Identifier: Apache-2.0
// The error that a call throws; the test fails if it throws none.
#pragma once

#include <gtest/gtest.h>
#include <gemmery/error.hpp>

namespace gemmery::tests {

template <class Body>
Error error_of(Body&& body) {
  try {
    body();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "nothing was thrown";
  return Error({.kind = ErrorKind::io});
}

}  // namespace gemmery::tests
