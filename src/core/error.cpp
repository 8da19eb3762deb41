// SPDX-License-Identifier: Apache-2.0
// Puts an error's fields into one line.
#include <gemmery/error.hpp>

#include <utility>

namespace gemmery {
namespace {

// The most bytes of a user's input that an error repeats.
constexpr std::size_t longest_repeat = 4000;

bool continues_character(char c) { return (static_cast<unsigned char>(c) & 0xc0U) == 0x80U; }

std::string shortened(const std::string& text) {
  if (text.size() <= longest_repeat) return text;
  std::size_t size = longest_repeat;
  while (size > 0 && continues_character(text[size])) --size;
  return text.substr(0, size) + "... (" + std::to_string(text.size()) + " bytes)";
}

void append_part(std::string& message, std::string_view before, const std::string& part) {
  if (part.empty()) return;
  message += before;
  // what() would end at a null character, so it is written as "\0".
  for (const char c : part) c == '\0' ? message += "\\0" : message += c;
}

std::string compose_message(const ErrorDetails& details) {
  std::string message{name(details.kind)};
  append_part(message, ": ", shortened(details.operand));
  append_part(message, ": expected ", details.expected);
  append_part(message, details.expected.empty() ? ": " : ", got ", shortened(details.got));
  append_part(message, "; ", details.hint);
  append_part(message, " [", details.cause);
  if (!details.cause.empty()) message += ']';
  return message;
}

}  // namespace

std::string_view name(ErrorKind kind) noexcept {
  switch (kind) {
    case ErrorKind::invalid_argument:
      return "invalid argument";
    case ErrorKind::unsupported:
      return "unsupported";
    case ErrorKind::unavailable:
      return "unavailable";
    case ErrorKind::compile:
      return "compile error";
    case ErrorKind::launch:
      return "launch failure";
    case ErrorKind::out_of_memory:
      return "out of memory";
    case ErrorKind::io:
      return "input/output error";
  }
  return "error";
}

Error::Error(ErrorDetails details)
    : details_(std::move(details)), message_(compose_message(details_)) {}

Interruption::~Interruption() = default;

}  // namespace gemmery
