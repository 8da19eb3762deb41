// SPDX-License-Identifier: Apache-2.0
// The compiler of this process, and the versions that are known to miscompile.
#pragma once

#include <compare>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace gemmery::jit {

// NVRTC compiles in this process. nvcc is a program of the toolkit and needs a host compiler.
enum class CompilerKind : std::uint8_t { nvrtc, nvcc };
std::string_view name(CompilerKind kind) noexcept;

struct CompilerVersion {
  int major = 0;
  int minor = 0;

  friend auto operator<=>(const CompilerVersion&, const CompilerVersion&) = default;
};
std::string to_string(CompilerVersion version);

// GEMMERY_COMPILER: "nvrtc" (the default) or "nvcc". Throws Error (invalid_argument) for anything
// else.
CompilerKind chosen_compiler();

// The result of looking for a compiler.
struct CompilerStatus {
  bool found = false;
  std::string path;
  std::string version;
  std::string searched;  // where it was looked for, if it was not found
};

// A range of compiler versions, both ends included, that miscompile something that our kernels use.
struct BlockedCompiler {
  CompilerKind kind;
  CompilerVersion first;
  CompilerVersion last;
  std::string_view fault;  // what goes wrong, and where that is documented
};

// None is known today. ptxas 13.0 miscompiles shared atom.add.noftz.f16x2, which no kernel of ours
// uses. A version gets a line here if a kernel's results leave their bound with it.
std::span<const BlockedCompiler> blocked_compilers() noexcept;

// Throws Error (unsupported), with the fault, for a listed version.
void refuse_blocked(CompilerKind kind, CompilerVersion version,
                    std::span<const BlockedCompiler> list = blocked_compilers());

}  // namespace gemmery::jit
