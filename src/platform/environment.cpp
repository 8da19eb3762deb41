// SPDX-License-Identifier: Apache-2.0
// Reads and checks environment variables.
#include "platform/environment.hpp"

#include <gemmery/error.hpp>

#include <charconv>
#include <cstdlib>

namespace gemmery::platform {
namespace {

[[noreturn]] void refuse_variable(const char* name, std::string expected, const std::string& got) {
  throw Error({.kind = ErrorKind::invalid_argument,
               .operand = name,
               .expected = std::move(expected),
               .got = "\"" + got + "\"",
               .hint = "unset the environment variable or correct it"});
}

}  // namespace

std::optional<std::string> read_environment(const char* name) {
  const char* const value = secure_getenv(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

std::optional<std::int64_t> read_environment_integer(const char* name, std::int64_t least,
                                                     std::int64_t most) {
  const auto text = read_environment(name);
  if (!text) return std::nullopt;
  std::int64_t value = 0;
  const char* const end = text->data() + text->size();
  const auto [after, failure] = std::from_chars(text->data(), end, value);
  if (failure != std::errc{} || after != end || value < least || value > most) {
    refuse_variable(name,
                    "a whole number from " + std::to_string(least) + " to " + std::to_string(most),
                    *text);
  }
  return value;
}

bool read_environment_flag(const char* name, bool default_value) {
  const auto text = read_environment(name);
  if (!text) return default_value;
  if (*text == "0" || *text == "false" || *text == "off") return false;
  if (*text == "1" || *text == "true" || *text == "on") return true;
  refuse_variable(name, "1, 0, true, false, on or off", *text);
}

std::optional<std::string> read_environment_path(const char* name) {
  auto text = read_environment(name);
  if (text && !text->starts_with('/')) refuse_variable(name, "an absolute path", *text);
  return text;
}

}  // namespace gemmery::platform
