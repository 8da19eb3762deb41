// SPDX-License-Identifier: Apache-2.0
// The process's builder.
#include "jit/build.hpp"

#include <gemmery/error.hpp>

#include "jit/cancellation.hpp"
#include "jit/compiler_choice.hpp"
#include "jit/disk_cache.hpp"
#include "jit/fork_guard.hpp"
#include "jit/nvrtc.hpp"
#include "platform/environment.hpp"
#include "platform/log.hpp"

namespace gemmery::jit {
namespace {

void tell_found(const CompileRequest& request) {
  if (!platform::is_logged(LogLevel::debug)) return;
  platform::log(LogLevel::debug,
                "found " + request.entry + " for " + to_string(request.target) + " in the cache");
}

// Tries again if another thread, for whose build this one waited, cancelled it.
template <class Build>
std::shared_ptr<const CompiledCode> until_this_thread_cancels(Build build) {
  for (;;) {
    try {
      return build();
    } catch (const Cancelled&) {
      if (current_cancellation().stop_requested()) throw;
    }
  }
}

}  // namespace

std::shared_ptr<const CompiledCode> Builder::build(const CompileRequest& request) {
  const CacheKey key = compiler_.key(request);
  const auto make = [&] {
    return dumped(key, request, [&] { return find_or_compile(key, request); });
  };
  return until_this_thread_cancels([&] { return built_.get(key.text(), make); });
}

std::shared_ptr<const CompiledCode> Builder::build_other(
    const CompileRequest& request, const std::shared_ptr<const CompiledCode>& refused) {
  const CacheKey key = compiler_.key(request);
  const auto make = [&] {
    return dumped(key, request, [&] { return compile_in_place(key, request); });
  };
  return until_this_thread_cancels([&] { return built_.get_other(key.text(), refused, make); });
}

CompiledCode Builder::find_or_compile(const CacheKey& expected, const CompileRequest& request) {
  if (!is_covered_by_key(request)) return compiler_.compile(request);
  CodeCache::Found found = cache_->find(expected);
  if (found.code) {
    tell_found(request);
    return *std::move(found.code);
  }
  compiler_.open();
  const CacheKey key = compiler_.key(request);
  if (key != expected) {
    found.claim.reset();
    found = cache_->find(key);
    if (found.code) return *std::move(found.code);
  }
  CompiledCode code = compiler_.compile(request);
  cache_->keep(key, code);
  return code;
}

// Kept code stays until better code replaces it.
CompiledCode Builder::compile_in_place(const CacheKey& expected, const CompileRequest& request) {
  compiler_.open();
  CompiledCode code = compiler_.compile(request);
  cache_->discard(expected);
  cache_->keep(compiler_.key(request), code);
  return code;
}

CompiledCode Builder::dumped(const CacheKey& expected, const CompileRequest& request,
                             const std::function<CompiledCode()>& make) {
  if (dump_ == nullptr) return make();
  try {
    CompiledCode code = make();
    dump_->write(compiler_.key(request), code);  // by the compiler that was used
    return code;
  } catch (const Error& error) {
    dump_->write_failure(expected, error);
    throw;
  }
}

namespace {

void refuse_disabled_compiler() {
  constexpr const char* variable = "GEMMERY_DISABLE_JIT";
  if (!platform::read_environment_flag(variable)) return;
  throw Error({.kind = ErrorKind::unavailable,
               .operand = "compiler",
               .expected = "code that was compiled before, in the cache or in an artifact",
               .got = std::string("none, and ") + variable + " is set",
               .hint = "unset it, or compile ahead of time"});
}

}  // namespace

CompilerSteps chosen_compiler_steps() {
  return {.key = key_of,
          .open =
              [] {
                refuse_disabled_compiler();
                if (chosen_compiler() == CompilerKind::nvrtc) find_nvrtc();
              },
          .compile =
              [](const CompileRequest& request) {
                refuse_disabled_compiler();
                return compile(request);
              }};
}

namespace {

Builder& process_builder() {
  static Builder* const builder =
      new Builder(process_cache(), chosen_compiler_steps(), environment_dump());
  return *builder;
}

}  // namespace

std::shared_ptr<const CompiledCode> build(const CompileRequest& request) {
  // Also covers the builder's own locks: a child forked while another thread holds one would wait
  // forever.
  platform::check_log_environment();
  const CompilationInFlight in_flight;
  return process_builder().build(request);
}

std::shared_ptr<const CompiledCode> build_other(
    const CompileRequest& request, const std::shared_ptr<const CompiledCode>& refused) {
  const CompilationInFlight in_flight;
  return process_builder().build_other(request, refused);
}

}  // namespace gemmery::jit
