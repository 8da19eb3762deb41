// SPDX-License-Identifier: Apache-2.0
// Where compiled code may be kept beyond this process. The place of the cache on disk; for now
// nothing is kept.
#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "jit/compiler.hpp"

namespace gemmery::jit {

// Asked before the compiler, told after it. A cache that fails is a cache that has nothing: neither
// function throws.
class CodeCache {
 public:
  virtual ~CodeCache() = default;
  virtual std::optional<CompiledCode> find(std::string_view key) noexcept = 0;
  virtual void keep(std::string_view key, const CompiledCode& code) noexcept = 0;
};

// Has nothing and keeps nothing.
class NoCache final : public CodeCache {
 public:
  std::optional<CompiledCode> find(std::string_view) noexcept override { return std::nullopt; }
  void keep(std::string_view, const CompiledCode&) noexcept override {}
};

}  // namespace gemmery::jit
