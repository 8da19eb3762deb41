// SPDX-License-Identifier: Apache-2.0
// Which compiler serves this process, and which versions are known to make wrong code.
#pragma once

#include <compare>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace gemmery::jit {

// NVRTC compiles in this process; nvcc is a program of the toolkit, and needs a host compiler
// beside it.
enum class CompilerKind : std::uint8_t { nvrtc, nvcc };
std::string_view name(CompilerKind kind) noexcept;

struct CompilerVersion {
  int major = 0;
  int minor = 0;

  friend auto operator<=>(const CompilerVersion&, const CompilerVersion&) = default;
};
std::string to_string(CompilerVersion version);

// GEMMERY_COMPILER: "nvrtc" (also where it is not set) or "nvcc". Throws Error (invalid_argument)
// for anything else.
CompilerKind chosen_compiler();

// What is told of a compiler that was looked for.
struct CompilerStatus {
  bool found = false;
  std::string path;
  std::string version;
  std::string searched;  // where it was looked for, when it was not found
};

// Versions of a compiler, both ends included, that make wrong code of something that our kernels
// are made of.
struct BlockedCompiler {
  CompilerKind kind;
  CompilerVersion first;
  CompilerVersion last;
  std::string_view fault;  // what goes wrong, and where that is written down
};

// None is known today. ptxas 13.0 makes wrong code of shared atom.add.noftz.f16x2, which is in no
// kernel of ours. What puts a line here: a version with which a kernel's results leave their bound.
std::span<const BlockedCompiler> blocked_compilers() noexcept;

// Throws Error (unsupported) with the fault for a version that is in the list.
void refuse_blocked(CompilerKind kind, CompilerVersion version,
                    std::span<const BlockedCompiler> list = blocked_compilers());

}  // namespace gemmery::jit
