// SPDX-License-Identifier: Apache-2.0
// The result of a system call: a value, or the error that it failed with. For callers that treat
// failure as a normal outcome.
#pragma once

#include <optional>
#include <system_error>
#include <utility>

namespace gemmery::platform {

template <class Value>
class Attempt {
 public:
  Attempt(Value value) : value_(std::move(value)) {}
  Attempt(std::error_code error) : error_(error) {}

  explicit operator bool() const noexcept { return value_.has_value(); }
  Value& operator*() & noexcept { return *value_; }
  const Value& operator*() const& noexcept { return *value_; }
  Value&& operator*() && noexcept { return *std::move(value_); }
  Value* operator->() noexcept { return &*value_; }
  const Value* operator->() const noexcept { return &*value_; }

  // The error of a failed attempt; none of a successful one.
  std::error_code error() const noexcept { return error_; }

 private:
  std::optional<Value> value_;
  std::error_code error_;
};

}  // namespace gemmery::platform
