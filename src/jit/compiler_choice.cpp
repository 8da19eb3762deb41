// SPDX-License-Identifier: Apache-2.0
// Reads GEMMERY_COMPILER and looks up versions.
#include "jit/compiler_choice.hpp"

#include <gemmery/error.hpp>

#include <optional>

#include "platform/environment.hpp"

namespace gemmery::jit {

std::string_view name(CompilerKind kind) noexcept {
  return kind == CompilerKind::nvcc ? "nvcc" : "nvrtc";
}

std::string to_string(CompilerVersion version) {
  return std::to_string(version.major) + "." + std::to_string(version.minor);
}

CompilerKind chosen_compiler() {
  constexpr const char* variable = "GEMMERY_COMPILER";
  const std::optional<std::string> word = platform::read_environment(variable);
  if (!word || *word == "nvrtc") return CompilerKind::nvrtc;
  if (*word == "nvcc") return CompilerKind::nvcc;
  throw Error({.kind = ErrorKind::invalid_argument,
               .operand = variable,
               .expected = "nvrtc or nvcc",
               .got = "\"" + *word + "\"",
               .hint = "unset the environment variable or correct it"});
}

std::span<const BlockedCompiler> blocked_compilers() noexcept { return {}; }

void refuse_blocked(CompilerKind kind, CompilerVersion version,
                    std::span<const BlockedCompiler> list) {
  for (const BlockedCompiler& blocked : list) {
    if (blocked.kind != kind || version < blocked.first || version > blocked.last) continue;
    throw Error({.kind = ErrorKind::unsupported,
                 .operand = std::string(name(kind)) + " " + to_string(version),
                 .expected = "a compiler that is not known to make wrong code",
                 .got = std::string(blocked.fault),
                 .hint = "install another version, or choose the other compiler with "
                         "GEMMERY_COMPILER"});
  }
}

}  // namespace gemmery::jit
