// SPDX-License-Identifier: Apache-2.0
// NVRTC: small kernels, errors, warnings, many threads. No GPU is needed.
#include "jit/compiler.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <gemmery/error.hpp>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <thread>

#include "jit/build.hpp"
#include "jit/cache_key.hpp"
#include "jit/embedded.hpp"
#include "jit/nvrtc.hpp"
#include "tests/support/error_of.hpp"
#include "tests/support/no_disk_cache.hpp"
#include "tests/support/resident_memory.hpp"
#include "tests/support/sanitizers.hpp"

namespace gemmery::jit {
namespace {

using tests::error_of;
using tests::resident_mib;

bool is_soak() { return std::getenv("GEMMERY_SOAK") != nullptr; }

CompileRequest request_of(std::string source, Target target = {90, 'a'}) {
  return {.source = std::move(source), .entry = "entry", .target = target, .extra_options = {}};
}

std::string adding(int number) {
  return "extern \"C\" __global__ void entry(float* out) { out[threadIdx.x] += " +
         std::to_string(number) + ".0f; }\n";
}

class Compiler : public testing::Test {
 protected:
  void SetUp() override {
    const CompilerStatus status = compiler_status();
    if (!status.found) GTEST_SKIP() << status.searched;
  }
};

TEST_F(Compiler, makes_a_cubin_with_its_resources) {
  const CompiledCode code =
      compile(request_of("extern \"C\" __global__ void entry(float* out) { __shared__ float "
                         "tile[64]; tile[threadIdx.x] = out[threadIdx.x]; "
                         "__syncthreads(); out[threadIdx.x] = tile[63 - threadIdx.x]; }"));
  ASSERT_GT(code.cubin.size(), 4U);
  EXPECT_EQ(std::memcmp(code.cubin.data(),
                        "\x7f"
                        "ELF",
                        4),
            0);
  EXPECT_EQ(code.usage.static_shared_bytes, 256);
  EXPECT_GT(code.usage.registers, 0);
  EXPECT_EQ(code.usage.spill_store_bytes, 0);
  EXPECT_GT(code.compile_ms, 0);
}

TEST_F(Compiler, a_request_may_name_its_standard_and_have_headers_of_its_own) {
  CompileRequest request = request_of(adding(1));
  const auto has = [&](const std::string& option) {
    const std::vector<std::string> options = compile_options(request);
    return std::ranges::count(options, option);
  };
  EXPECT_EQ(has("--std=c++20"), 1);
  EXPECT_EQ(has("--no-source-include"), 1);
  EXPECT_EQ(has("--minimal"), 1);
  const CacheKey key = key_of(request);
  request.has_own_headers = true;
  EXPECT_EQ(has("--no-source-include"), 0);
  EXPECT_EQ(has("--minimal"), 0);
  EXPECT_NE(key_of(request), key);
  for (const char* const standard : {"-std=c++17", "--std=c++17"}) {
    request.extra_options = {standard};
    EXPECT_EQ(has("--std=c++20"), 0);
    EXPECT_EQ(has(standard), 1);
    EXPECT_EQ(compile(request).log.find("warning"), std::string::npos);
  }
}

TEST_F(Compiler, serves_every_target_that_it_claims_to_know) {
  for (const int architecture : find_nvrtc().architectures) {
    EXPECT_NO_THROW(compile(request_of(adding(1), {static_cast<std::uint16_t>(architecture), 0})))
        << architecture;
  }
}

TEST_F(Compiler, the_same_source_gives_the_same_bytes) {
  EXPECT_EQ(compile(request_of(adding(1))).cubin, compile(request_of(adding(1))).cubin);
}

TEST_F(Compiler, embedded_headers_are_found_by_their_names) {
  if (embedded_headers().empty()) GTEST_SKIP() << "no device headers are embedded yet";
  for (const EmbeddedHeader& header : embedded_headers()) {
    const std::string header_name = header.name;
    if (!header_name.ends_with(".cuh") && !header_name.ends_with(".hpp")) continue;
    EXPECT_NO_THROW(compile(request_of("#include <" + header_name + ">\n" + adding(1))))
        << header_name;
  }
}

TEST_F(Compiler, an_error_tells_entry_target_line_and_log) {
  const Error error = error_of(
      [] { compile(request_of("extern \"C\" __global__ void entry() { undefined_thing(); }")); });
  EXPECT_EQ(error.kind(), ErrorKind::compile);
  EXPECT_EQ(error.operand(), "entry for sm_90a");
  EXPECT_NE(error.got().find("undefined_thing"), std::string::npos) << error.got();
  EXPECT_NE(error.cause().find("1 error detected"), std::string::npos) << error.cause();
}

TEST_F(Compiler, a_warning_is_an_error) {
  const Error error = error_of(
      [] { compile(request_of("extern \"C\" __global__ void entry() { int never_used; }")); });
  EXPECT_EQ(error.kind(), ErrorKind::compile);
  EXPECT_NE(error.got().find("never_used"), std::string::npos) << error.got();
}

TEST_F(Compiler, a_missing_entry_is_an_error) {
  EXPECT_EQ(error_of([] { compile(request_of("extern \"C\" __global__ void other() {}")); }).kind(),
            ErrorKind::compile);
}

TEST_F(Compiler, an_unknown_option_is_an_error_that_names_it) {
  CompileRequest request = request_of(adding(1));
  request.extra_options = {"--no-such-option"};
  EXPECT_NE(error_of([&] { compile(request); }).got().find("no-such-option"), std::string::npos);
}

TEST_F(Compiler, an_unknown_target_is_refused_by_name) {
  const Error error = error_of([] { compile(request_of(adding(1), {999, 0})); });
  EXPECT_EQ(error.kind(), ErrorKind::unsupported);
  EXPECT_EQ(error.got(), "sm_999");
  EXPECT_EQ(error_of([] { compile(request_of(adding(1), Target::cpu())); }).kind(),
            ErrorKind::unsupported);
}

TEST_F(Compiler, a_log_of_any_size_arrives_whole) {
  std::string source = "extern \"C\" __global__ void entry() {\n";
  for (int line = 0; line < 90; ++line)
    source += "undefined_" + std::string(5000, 'x') + std::to_string(line) + "();\n";
  const Error error = error_of([&] { compile(request_of(source + "}\n")); });
  EXPECT_GT(error.cause().size(), 400'000U);
  EXPECT_NE(error.cause().find("89()"), std::string::npos) << "the last line is missing";
}

// RELIABILITY 7.3, fact 1: by default "…" includes find headers in the working directory; an option
// prevents this.
TEST_F(Compiler, headers_of_the_working_directory_are_not_seen) {
  char folder[] = "/tmp/gemmery_jit_XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  std::ofstream(std::string(folder) + "/hostile.h") << "#define VALUE 1\n";
  char before[4096];
  ASSERT_NE(getcwd(before, sizeof before), nullptr);
  ASSERT_EQ(chdir(folder), 0);
  EXPECT_THROW(compile(request_of("#include \"hostile.h\"\n" + adding(1))), Error);
  EXPECT_THROW(compile(request_of("#include <hostile.h>\n" + adding(1))), Error);
  ASSERT_EQ(chdir(before), 0);
  std::remove((std::string(folder) + "/hostile.h").c_str());
  rmdir(folder);
}

// Processor time of all threads, user and system.
double processor_seconds() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

TEST_F(Compiler, a_compilation_without_end_is_cancelled) {
  if (find_nvrtc().api.nvrtcSetFlowCallback == nullptr)
    GTEST_SKIP() << "this NVRTC cannot be interrupted";
  setenv("GEMMERY_COMPILE_TIMEOUT", "1", 1);
  std::string source =
      "template <int N> struct Work { static __device__ float run(float x) { return "
      "Work<N-1>::run(x * x + N) + "
      "Work<N-2>::run(x + N); } };\n"
      "template <> struct Work<1> { static __device__ float run(float x) { return x * 3; } };\n"
      "template <> struct Work<0> { static __device__ float run(float x) { return x + 7; } };\n"
      "extern \"C\" __global__ void entry(float* out) { out[threadIdx.x] = "
      "Work<27>::run(out[threadIdx.x]); }\n";
  const double memory_before = resident_mib();
  const double start = processor_seconds();
  const Error error = error_of([&] { compile(request_of(source)); });
  const double worked = processor_seconds() - start;
  const double memory = resident_mib() - memory_before;
  unsetenv("GEMMERY_COMPILE_TIMEOUT");
  EXPECT_EQ(error.kind(), ErrorKind::compile);
  EXPECT_NE(error.expected().find("GEMMERY_COMPILE_TIMEOUT"), std::string::npos) << error.what();
  std::printf("cancelled after %.2f s of work, %.0f MiB\n", worked, memory);
  // Processor time, which does not depend on other processes: at most the limit and a second.
  EXPECT_LT(worked, 2);
  EXPECT_LT(memory, 512);
}

TEST_F(Compiler, threads_compile_different_sources_side_by_side) {
  constexpr int thread_count = 24;
  std::atomic<int> compiled = 0;
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < thread_count; ++thread) {
      threads.emplace_back([&, thread] {
        if (!compile(request_of(adding(thread))).cubin.empty()) ++compiled;
      });
    }
  }
  EXPECT_EQ(compiled, thread_count);
}

TEST_F(Compiler, the_process_builds_equal_requests_once) {
  std::vector<std::shared_ptr<const CompiledCode>> built(24);
  {
    std::vector<std::jthread> threads;
    for (auto& code : built) threads.emplace_back([&] { code = build(request_of(adding(4711))); });
  }
  for (const auto& code : built) EXPECT_EQ(code, built.front());
}

// RELIABILITY F43: a program object that leaks in some case costs megabytes per compilation.
TEST_F(Compiler, memory_does_not_grow_with_the_number_of_compilations) {
  if (tests::is_sanitized) GTEST_SKIP() << "the sanitizer keeps what is freed";
  const int rounds = is_soak() ? 500 : 20;
  const auto compile_both_ways = [](int number) {
    compile(request_of(adding(number)));
    EXPECT_THROW(compile(request_of("not C++")), Error);
  };
  for (int warm = 0; warm < 10; ++warm) compile_both_ways(warm);
  const double before = resident_mib();
  for (int round = 0; round < rounds; ++round) compile_both_ways(round);
  const double grown = resident_mib() - before;
  std::printf("%d compilations: resident memory %+.1f MiB\n", 2 * rounds, grown);
  EXPECT_LT(grown, 20);
}

}  // namespace
}  // namespace gemmery::jit
