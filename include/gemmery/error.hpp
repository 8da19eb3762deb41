// SPDX-License-Identifier: Apache-2.0
// The exception of this library. It names the operand, what was expected, what was found, and what
// to do.
#pragma once

#include <exception>
#include <string>
#include <string_view>

#include <gemmery/export.hpp>

namespace gemmery {

enum class ErrorKind : unsigned char {
  invalid_argument,  // the caller's values contradict each other or the documentation
  unsupported,       // legal, but not supported by the kernel, file or device
  unavailable,       // a required library, device or service is missing
  compile,           // the compiler rejected a kernel's source
  launch,            // the driver refused or lost a launch
  out_of_memory,
  io,
};

GEMMERY_API std::string_view name(ErrorKind kind) noexcept;

// The fields of an Error. Empty fields are left out of the message.
struct ErrorDetails {
  ErrorKind kind = ErrorKind::invalid_argument;
  std::string operand = {};  // what it is about: "B", "stream", "GEMMERY_LOG_LEVEL"
  std::string expected = {};
  std::string got = {};
  std::string hint = {};   // what to do
  std::string cause = {};  // the message of an underlying library
};

// Thrown by everything that fails except queries (`supports`, `explain`), which return a Status.
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

// The base class of exceptions by which a function of the caller ends the library call that invoked
// it, such as Python's KeyboardInterrupt. The library passes them on unchanged; other exceptions of
// such functions are reported or replaced.
class GEMMERY_API Interruption {
 public:
  virtual ~Interruption();
};

}  // namespace gemmery
