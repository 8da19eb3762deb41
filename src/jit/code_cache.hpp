// SPDX-License-Identifier: Apache-2.0
// Where compiled code may be kept beyond this process: what the builder asks of it.
#pragma once

#include <memory>
#include <optional>

#include "jit/cache_key.hpp"
#include "jit/compiler.hpp"

namespace gemmery::jit {

// Asked before the compiler, told after it. A cache that fails is a cache that has nothing: no
// function throws.
class CodeCache {
 public:
  // Held by the one who compiles what was not found, so that others may wait for it instead of
  // compiling it, too. Its end tells them.
  class Claim {
   public:
    virtual ~Claim() = default;
  };

  struct Found {
    std::optional<CompiledCode> code;
    std::unique_ptr<Claim> claim = nullptr;  // of what was not found; none where nobody can wait
  };

  virtual ~CodeCache() = default;
  // Waits, for a bounded time, while another process that has a claim to this key makes its code.
  virtual Found find(const CacheKey& key) noexcept = 0;
  virtual void keep(const CacheKey& key, const CompiledCode& code) noexcept = 0;
  // Removes what turned out to be of no use, so that other code can be kept for its key.
  virtual void discard(const CacheKey& key) noexcept = 0;
};

// Has nothing and keeps nothing.
class NoCache final : public CodeCache {
 public:
  Found find(const CacheKey&) noexcept override { return {}; }
  void keep(const CacheKey&, const CompiledCode&) noexcept override {}
  void discard(const CacheKey&) noexcept override {}
};

}  // namespace gemmery::jit
