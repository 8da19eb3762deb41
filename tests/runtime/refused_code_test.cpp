// SPDX-License-Identifier: Apache-2.0
// Code in the cache that is as it was written and that a driver refuses all the same (RELIABILITY
// F4, F24): it is compiled anew, once, and the kernel runs.
#include <gtest/gtest.h>
#include <gemmery/cache.hpp>
#include <gemmery/error.hpp>

#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "jit/build.hpp"
#include "jit/disk_cache.hpp"
#include "tests/runtime/on_device.hpp"
#include "tests/support/error_of.hpp"
#include "tests/support/temporary_folder.hpp"

namespace gemmery::tests {

bool is_fake_driver_wanted() { return false; }

namespace {

// The process's cache is where the environment says at its first use.
std::string cache_folder() {
  static const TemporaryFolder folder;
  return folder / "cache";
}
const bool has_own_cache = setenv("GEMMERY_CACHE_DIR", cache_folder().c_str(), 1) == 0;

class RefusedCode : public OnDevice {
 protected:
  // The key of what the device would run.
  jit::CacheKey key_of(const Kernel& kernel) const {
    const DirectFamily& family = DirectFamily::instance();
    const Target target = family.target_for(kernel, driver::open_device(device()).info());
    const runtime::EmittedSource source = family.emit(kernel, target);
    return jit::key_of({.source = source.text,
                        .entry = source.entry,
                        .target = target,
                        .form = CodeForm::ptx,
                        .extra_options = source.options});
  }

  jit::CacheKey keep(const Kernel& kernel, const std::string& ptx) const {
    const jit::CacheKey key = key_of(kernel);
    jit::CompiledCode code;
    code.ptx = ptx;
    jit::process_cache()->discard(key);
    jit::process_cache()->keep(key, code);
    return key;
  }

  static std::string kept_ptx(const jit::CacheKey& key) {
    const jit::CodeCache::Found found = jit::process_cache()->find(key);
    return found.code ? found.code->ptx : "";
  }
};
INSTANTIATE_TEST_SUITE_P(H200, RefusedCode, testing::Values(Device::emulated(1)));

const std::vector<std::string> unfit{
    "no PTX at all",
    ".version 9.0\n.target sm_90a\n.address_size 64\n",  // without the entry
    ".version 9.0\n.target sm_90a\n.address_size 64\n.visible .entry direct_(",
};

TEST_P(RefusedCode, is_compiled_anew_and_replaced_in_the_cache) {
  for (const std::string& ptx : unfit) {
    const OwnedStream stream(device());
    Operands operands({}, stream);
    const Kernel kernel = new_kernel();
    const jit::CacheKey key = keep(kernel, ptx);
    kernel.run(operands.arguments(), {.stream = stream});
    operands.expect_right();
    EXPECT_NE(kept_ptx(key), ptx);
    EXPECT_NE(kept_ptx(key).find(".entry"), std::string::npos);
  }
}

TEST_P(RefusedCode, is_compiled_once_for_all_threads) {
  const Kernel kernel = new_kernel();
  keep(kernel, unfit.front());
  const std::uint64_t kept_before = cache_report().own_counters.kept;
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < 24; ++thread) {
      threads.emplace_back([&] {
        const OwnedStream stream(device());
        Operands operands({}, stream);
        kernel.run(operands.arguments(), {.stream = stream});
        operands.expect_right();
      });
    }
  }
  EXPECT_EQ(cache_report().own_counters.kept, kept_before + 1);
}

TEST_P(RefusedCode, is_told_with_the_drivers_words_where_nothing_may_be_compiled) {
  const OwnedStream stream(device());
  Operands operands({}, stream);
  const Kernel kernel = new_kernel();
  const jit::CacheKey key = keep(kernel, unfit.front());
  setenv("GEMMERY_DISABLE_JIT", "1", 1);
  const Error error = error_of([&] { kernel.run(operands.arguments(), {.stream = stream}); });
  unsetenv("GEMMERY_DISABLE_JIT");
  EXPECT_EQ(error.kind(), ErrorKind::launch);
  EXPECT_EQ(error.operand(), "cuLibraryLoadData") << error.what();
  EXPECT_EQ(kept_ptx(key), unfit.front());
  kernel.run(operands.arguments(), {.stream = stream});
  operands.expect_right();
}

}  // namespace
}  // namespace gemmery::tests
