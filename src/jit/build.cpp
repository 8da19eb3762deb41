// SPDX-License-Identifier: Apache-2.0
// The process's builder.
#include "jit/build.hpp"

#include "jit/fork_guard.hpp"

namespace gemmery::jit {

std::shared_ptr<const CompiledCode> Builder::build(const CompileRequest& request) {
  const std::string key = key_text(request);
  return built_.get(key, [&] { return find_or_compile(key, request); });
}

CompiledCode Builder::find_or_compile(const std::string& key, const CompileRequest& request) {
  if (std::optional<CompiledCode> kept = cache_->find(key)) return *std::move(kept);
  CompiledCode code = compile_(request);
  cache_->keep(key, code);
  return code;
}

std::shared_ptr<const CompiledCode> build(const CompileRequest& request) {
  // Covers the builder's own locks too: a child that is forked while another thread holds one would
  // wait for ever.
  const CompilationInFlight in_flight;
  static Builder* const builder = new Builder(std::make_unique<NoCache>(), compile);
  return builder->build(request);
}

}  // namespace gemmery::jit
