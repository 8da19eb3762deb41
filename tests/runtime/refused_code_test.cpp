// SPDX-License-Identifier: Apache-2.0
// Undamaged code in the cache that the driver refuses (RELIABILITY F4, F24): it is compiled again,
// once, and the kernel runs.
#include <gtest/gtest.h>
#include <gemmery/cache.hpp>
#include <gemmery/error.hpp>

#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "jit/compiler.hpp"
#include "jit/disk_cache.hpp"
#include "tests/runtime/on_device.hpp"
#include "tests/support/error_of.hpp"
#include "tests/support/temporary_folder.hpp"

namespace gemmery::tests {

bool is_fake_driver_wanted() { return false; }

namespace {

// The process's cache is in the folder that the environment names at its first use.
std::string cache_folder() {
  static const TemporaryFolder folder;
  return folder / "cache";
}
const bool has_own_cache = setenv("GEMMERY_CACHE_DIR", cache_folder().c_str(), 1) == 0 &&
                           unsetenv("GEMMERY_CACHE_MAX_BYTES") == 0 &&
                           unsetenv("GEMMERY_CACHE_READONLY") == 0;

class RefusedCode : public OnDevice {
 protected:
  CodeForm form() const { return driver::open_device(device()).driver().code_form(); }

  // The request with which the kernel is compiled for the device.
  jit::CompileRequest request_of(const Kernel& kernel) const {
    const DirectFamily& family = DirectFamily::instance();
    const Target target = family.target_for(kernel, driver::open_device(device()).info());
    const runtime::EmittedSource source = family.emit(kernel, target);
    return {.source = source.text,
            .entry = source.entry,
            .target = target,
            .form = form(),
            .extra_options = source.options};
  }

  // No code, truncated code, and code without the entry. Drivers are not given the length, so each
  // is followed by enough zeros.
  std::vector<jit::CompiledCode> unfit_codes() const {
    const bool is_ptx = form() == CodeForm::ptx;
    const jit::CompiledCode of_another = jit::compile(request_of(new_kernel()));
    std::vector<jit::CompiledCode> codes{of_another};
    const std::string beginning =
        is_ptx ? ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry direct_("
               : elf_mark;
    for (const std::string& text : {std::string("no code at all"), beginning}) {
      jit::CompiledCode& code = codes.emplace_back();
      if (is_ptx) {
        code.ptx = text;
      } else {
        code.cubin.resize(65536);
        std::memcpy(code.cubin.data(), text.data(), text.size());
      }
    }
    return codes;
  }

  jit::CacheKey keep(const Kernel& kernel, const jit::CompiledCode& code) const {
    const jit::CacheKey key = jit::key_of(request_of(kernel));
    jit::process_cache()->keep(key, code);
    return key;
  }

  static bool is_kept(const jit::CacheKey& key, const jit::CompiledCode& code) {
    const jit::CodeCache::Found found = jit::process_cache()->find(key);
    return found.code && found.code->ptx == code.ptx && found.code->cubin == code.cubin;
  }

  static bool is_anything_kept(const jit::CacheKey& key) {
    return jit::process_cache()->find(key).code.has_value();
  }

 private:
  static constexpr const char* elf_mark =
      "\x7f"
      "ELF";
};
INSTANTIATE_TEST_SUITE_P(Emulated, RefusedCode, testing::Values(Device::emulated(1)));
INSTANTIATE_TEST_SUITE_P(Gpu, RefusedCode, testing::Values(Device::cuda(0)));

TEST_P(RefusedCode, is_compiled_anew_and_replaced_in_the_cache) {
  for (const jit::CompiledCode& unfit : unfit_codes()) {
    const OwnedStream stream(device());
    Operands operands({}, stream);
    const Kernel kernel = new_kernel();
    const jit::CacheKey key = keep(kernel, unfit);
    kernel.run(operands.arguments(), {.stream = stream});
    operands.expect_right();
    EXPECT_TRUE(is_anything_kept(key));
    EXPECT_FALSE(is_kept(key, unfit));
  }
}

TEST_P(RefusedCode, is_compiled_once_for_all_threads) {
  const Kernel kernel = new_kernel();
  keep(kernel, unfit_codes().back());
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
  const jit::CompiledCode unfit = unfit_codes().back();
  const jit::CacheKey key = keep(kernel, unfit);
  setenv("GEMMERY_DISABLE_JIT", "1", 1);
  const Error error = error_of([&] { kernel.run(operands.arguments(), {.stream = stream}); });
  unsetenv("GEMMERY_DISABLE_JIT");
  EXPECT_EQ(error.kind(), ErrorKind::launch);
  // NVIDIA's driver checks a library when a kernel of it is requested.
  EXPECT_TRUE(error.operand().starts_with("cuLibrary")) << error.what();
  EXPECT_TRUE(is_kept(key, unfit));
  kernel.run(operands.arguments(), {.stream = stream});
  operands.expect_right();
}

}  // namespace
}  // namespace gemmery::tests
