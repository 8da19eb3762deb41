// SPDX-License-Identifier: Apache-2.0
// One build per key. Code comes from an earlier build of this process, from a cache, or from the
// compiler, in this order.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "jit/build_dump.hpp"
#include "jit/code_cache.hpp"
#include "jit/compiler.hpp"
#include "jit/once_map.hpp"

namespace gemmery::jit {

// The compiler as a builder uses it; `chosen_compiler_steps` is the real one.
struct CompilerSteps {
  std::function<CacheKey(const CompileRequest&)> key;
  // After it, `key` names the compiler that `compile` uses, not the expected one.
  std::function<void()> open;
  std::function<CompiledCode(const CompileRequest&)> compile;
};
CompilerSteps chosen_compiler_steps();

// Builds each request once, from any number of threads. Builds of different requests run in
// parallel.
class Builder {
 public:
  // With `dump`: each build is copied there, wherever it came from.
  Builder(std::shared_ptr<CodeCache> cache, CompilerSteps compiler,
          std::shared_ptr<BuildDump> dump = nullptr)
      : cache_(std::move(cache)), compiler_(std::move(compiler)), dump_(std::move(dump)) {}

  // Throws what the compiler throws. A failed build is tried again at the next request.
  std::shared_ptr<const CompiledCode> build(const CompileRequest& request);

  // Replaces code from a cache that a driver refuses: compiled anew, once for all threads that ask,
  // and kept instead.
  std::shared_ptr<const CompiledCode> build_other(
      const CompileRequest& request, const std::shared_ptr<const CompiledCode>& refused);

 private:
  CompiledCode find_or_compile(const CacheKey& expected, const CompileRequest& request);
  CompiledCode compile_in_place(const CacheKey& expected, const CompileRequest& request);
  CompiledCode dumped(const CacheKey& expected, const CompileRequest& request,
                      const std::function<CompiledCode()>& make);

  std::shared_ptr<CodeCache> cache_;
  CompilerSteps compiler_;
  std::shared_ptr<BuildDump> dump_;
  OnceMap<std::string, CompiledCode> built_;
};

// By the process's builder. Throws Error (unavailable) in a child that was forked during a build.
std::shared_ptr<const CompiledCode> build(const CompileRequest& request);
std::shared_ptr<const CompiledCode> build_other(const CompileRequest& request,
                                                const std::shared_ptr<const CompiledCode>& refused);

}  // namespace gemmery::jit
