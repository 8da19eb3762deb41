// SPDX-License-Identifier: Apache-2.0
// The interface of a cache that outlives the process, as the builder uses it.
#pragma once

#include <memory>
#include <optional>

#include "jit/cache_key.hpp"
#include "jit/compiler.hpp"

namespace gemmery::jit {

// Searched before compiling and filled after it. A failing cache counts as an empty one: no
// function throws.
class CodeCache {
 public:
  // Held by the process that compiles missing code, so that others wait for it instead of compiling
  // it too. Its destructor releases them.
  class Claim {
   public:
    virtual ~Claim() = default;
  };

  struct Found {
    std::optional<CompiledCode> code;
    // The lock for missing code; none if processes cannot wait for each other.
    std::unique_ptr<Claim> claim = nullptr;
  };

  virtual ~CodeCache() = default;
  // Waits, for a bounded time, while another process with a claim to this key compiles its code.
  virtual Found find(const CacheKey& key) noexcept = 0;
  virtual void keep(const CacheKey& key, const CompiledCode& code) noexcept = 0;
  // Removes useless code, so that other code can be kept under its key.
  virtual void discard(const CacheKey& key) noexcept = 0;
};

// A cache that is always empty.
class NoCache final : public CodeCache {
 public:
  Found find(const CacheKey&) noexcept override { return {}; }
  void keep(const CacheKey&, const CompiledCode&) noexcept override {}
  void discard(const CacheKey&) noexcept override {}
};

}  // namespace gemmery::jit
