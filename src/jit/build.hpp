// SPDX-License-Identifier: Apache-2.0
// One build per key: what was built in this process, what a cache kept, or the compiler, in this
// order.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "jit/build_dump.hpp"
#include "jit/code_cache.hpp"
#include "jit/compiler.hpp"
#include "jit/once_map.hpp"

namespace gemmery::jit {

// What a builder compiles with; `chosen_compiler_steps` is the real one.
struct CompilerSteps {
  std::function<CacheKey(const CompileRequest&)> key;
  // After which `key` names the very compiler that `compile` uses, not the one that is expected.
  std::function<void()> open;
  std::function<CompiledCode(const CompileRequest&)> compile;
};
CompilerSteps chosen_compiler_steps();

// Builds each request once, from any number of threads; builds of different requests run side by
// side.
class Builder {
 public:
  // With `dump`: a copy of each build goes there, wherever it came from.
  Builder(std::shared_ptr<CodeCache> cache, CompilerSteps compiler,
          std::shared_ptr<BuildDump> dump = nullptr)
      : cache_(std::move(cache)), compiler_(std::move(compiler)), dump_(std::move(dump)) {}

  // Throws what the compiler throws; a build that failed is tried again when it is asked for again.
  std::shared_ptr<const CompiledCode> build(const CompileRequest& request);

  // What takes the place of code that a cache had kept and a driver refuses: compiled anew, once
  // for all threads that ask, and kept instead of it.
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

// By the process's builder. Throws Error (unavailable) in a child that was forked in the middle of
// a build.
std::shared_ptr<const CompiledCode> build(const CompileRequest& request);
std::shared_ptr<const CompiledCode> build_other(const CompileRequest& request,
                                                const std::shared_ptr<const CompiledCode>& refused);

}  // namespace gemmery::jit
