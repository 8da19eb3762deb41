// SPDX-License-Identifier: Apache-2.0
// One build per key: what was built in this process, what a cache kept, or the compiler, in this
// order.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "jit/code_cache.hpp"
#include "jit/compiler.hpp"
#include "jit/once_map.hpp"

namespace gemmery::jit {

// Builds each request once, from any number of threads; builds of different requests run side by
// side.
class Builder {
 public:
  using Compile = std::function<CompiledCode(const CompileRequest&)>;

  Builder(std::unique_ptr<CodeCache> cache, Compile compile)
      : cache_(std::move(cache)), compile_(std::move(compile)) {}

  // Throws what the compiler throws; a build that failed is tried again when it is asked for again.
  std::shared_ptr<const CompiledCode> build(const CompileRequest& request);

 private:
  CompiledCode find_or_compile(const std::string& key, const CompileRequest& request);

  std::unique_ptr<CodeCache> cache_;
  Compile compile_;
  OnceMap<std::string, CompiledCode> built_;
};

// By the process's builder. Throws Error (unavailable) in a child that was forked in the middle of
// a build.
std::shared_ptr<const CompiledCode> build(const CompileRequest& request);

}  // namespace gemmery::jit
