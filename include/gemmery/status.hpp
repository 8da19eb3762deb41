// SPDX-License-Identifier: Apache-2.0
// The answer to a query: success, or failure with the reason.
#pragma once

#include <string>
#include <utility>

namespace gemmery {

// Returned by `supports`, `match` and `explain`; everything else that fails throws Error.
class [[nodiscard]] Status {
 public:
  static Status success() { return Status{}; }
  static Status fail(std::string reason) { return Status{std::move(reason)}; }

  explicit operator bool() const noexcept { return is_success_; }
  bool is_success() const noexcept { return is_success_; }

  // Why not; empty on success.
  const std::string& error() const noexcept { return reason_; }

 private:
  Status() = default;
  explicit Status(std::string reason) : is_success_(false), reason_(std::move(reason)) {}

  bool is_success_ = true;
  std::string reason_;
};

}  // namespace gemmery
