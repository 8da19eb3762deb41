// SPDX-License-Identifier: Apache-2.0
// A user's kernel that is withdrawn at the end of its test, and access to the reasons given for it.
#pragma once

#include <gemmery/user_kernel.hpp>

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace gemmery::tests {

struct Registered {
  Kernel kernel;
  explicit Registered(UserKernel declared) : kernel(register_kernel(std::move(declared))) {}
  ~Registered() { withdraw_kernel(kernel); }
  Registered(const Registered&) = delete;
  Registered& operator=(const Registered&) = delete;
};

inline void expect_contains(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

}  // namespace gemmery::tests
