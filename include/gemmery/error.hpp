// SPDX-License-Identifier: Apache-2.0
// The exception of this library: what was wrong with what, what was expected, what was found, and
// what to do about it.
#pragma once

#include <exception>
#include <string>
#include <string_view>

#include <gemmery/export.hpp>

namespace gemmery {

enum class ErrorKind : unsigned char {
  invalid_argument,  // the caller's values contradict each other or the documentation
  unsupported,       // legal, but not served by what was asked to serve it
  unavailable,       // a library, device or service that is needed is not there
  compile,           // a kernel's source was refused by its compiler
  launch,            // the driver refused or lost a launch
  out_of_memory,
  io,
};

GEMMERY_API std::string_view name(ErrorKind kind) noexcept;

// What an Error tells. Empty fields are left out of the message.
struct ErrorDetails {
  ErrorKind kind = ErrorKind::invalid_argument;
  std::string operand = {};  // what it is about: "B", "stream", "GEMMERY_LOG_LEVEL"
  std::string expected = {};
  std::string got = {};
  std::string hint = {};   // what to do
  std::string cause = {};  // what a library below said
};

// Thrown by everything that fails except questions (`supports`, `explain`), which return a Status.
class GEMMERY_API Error : public std::exception {
 public:
  explicit Error(ErrorDetails details);

  const char* what() const noexcept override { return message_.c_str(); }
  ErrorKind kind() const noexcept { return details_.kind; }
  const std::string& operand() const noexcept { return details_.operand; }
  const std::string& expected() const noexcept { return details_.expected; }
  const std::string& got() const noexcept { return details_.got; }
  const std::string& hint() const noexcept { return details_.hint; }
  const std::string& cause() const noexcept { return details_.cause; }

 private:
  ErrorDetails details_;
  std::string message_;
};

// What a function of the caller's throws where it is no fault of the function but is to end the
// call that it was asked in, such as Python's KeyboardInterrupt. Derive from it: nobody reports it,
// replaces it or goes on without it, as is done with what else such functions throw.
class GEMMERY_API Interruption {
 public:
  virtual ~Interruption();
};

}  // namespace gemmery
