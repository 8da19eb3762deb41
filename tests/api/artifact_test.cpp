// SPDX-License-Identifier: Apache-2.0
// Artifact files from compilation to execution, and parallel compilations, with NVRTC and the
// emulator.
#include <gemmery/artifact.hpp>

#include <gtest/gtest.h>
#include <unistd.h>
#include <gemmery/arguments.hpp>
#include <gemmery/buffer.hpp>
#include <gemmery/discovery.hpp>
#include <gemmery/family.hpp>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <thread>

#include "jit/compiler.hpp"
#include "jit/disassembler.hpp"
#include "jit/nvcc.hpp"
#include "jit/nvrtc.hpp"
#include "platform/private_folder.hpp"
#include "platform/whole_file.hpp"
#include "runtime/artifact_file.hpp"
#include "runtime/device_artifact.hpp"
#include "tests/support/error_of.hpp"
#include "tests/support/resident_memory.hpp"
#include "tests/support/sanitizers.hpp"

namespace gemmery {
namespace {

using tests::error_of;
using tests::resident_mib;

constexpr const char* small_line = "gemm 24x16x8 a=f32";

bool is_soak() { return std::getenv("GEMMERY_SOAK") != nullptr; }

Kernel best_kernel(std::string_view line, std::string_view device = "h200") {
  return get_kernels(parse_problem(line).problem, find_device_info(device).value()).at(0);
}

class ArtifactFiles : public testing::Test {
 protected:
  void SetUp() override {
    const jit::CompilerStatus compiler = jit::compiler_status();
    if (!compiler.found) GTEST_SKIP() << compiler.searched;
  }

  // A file with one kernel for one target, with its PTX.
  std::string save_small() const {
    const Kernel kernel = best_kernel(small_line);
    const StoredArtifact stored{kernel.compile(Target{90, 0}), {small_line}};
    save_artifacts(path(), std::span(&stored, 1), {.with_ptx = true});
    return path();
  }

  // The same with a change and a valid checksum.
  template <class Change>
  Error refusal_after(Change&& change) const {
    save_small();
    runtime::ArtifactFile file =
        runtime::decode(platform::read_whole_file(path(), SIZE_MAX), path());
    change(file);
    platform::write_whole_file(path(), runtime::encode(file));
    return error_of([&] { (void)load_artifacts(path()); });
  }

  std::string path() const { return folder_.path() + "/kernels.gemmery"; }

  platform::PrivateFolder folder_{"gemmery-artifacts"};
  Device device_ = *parse_device("emulated:h200");
};

// Runs an artifact on small integers, and compares exactly.
void expect_runs(const Artifact& artifact, Device device) {
  constexpr int m = 24, n = 16, k = 8;
  std::vector<float> a(m * k), b(k * n), out(m * n);
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i % 7) - 3;
  for (std::size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>(i % 5) - 2;
  const OwnedStream stream(device);
  const Buffer on_a(4 * a.size(), stream), on_b(4 * b.size(), stream), on_out(4 * m * n, stream);
  copy(on_a.data(), device, a.data(), Device::cpu(), 4 * a.size(), stream);
  copy(on_b.data(), device, b.data(), Device::cpu(), 4 * b.size(), stream);
  const GemmArguments arguments({on_a.data(), DType::float32, {m, k}, device},
                                {on_b.data(), DType::float32, {k, n}, device},
                                {on_out.data(), DType::float32, {m, n}, device});
  artifact.kernel().run(arguments, {.artifact = &artifact, .stream = stream});
  copy(out.data(), Device::cpu(), on_out.data(), device, 4 * out.size(), stream);
  synchronize(stream);
  for (int row = 0; row < m; ++row) {
    for (int column = 0; column < n; ++column) {
      float sum = 0;
      for (int i = 0; i < k; ++i) sum += a[row * k + i] * b[i * n + column];
      ASSERT_EQ(out[row * n + column], sum) << row << " " << column;
    }
  }
}

TEST_F(ArtifactFiles, what_is_saved_is_loaded_and_runs) {
  const Kernel kernel = best_kernel(small_line);
  const Artifact made = kernel.compile(Target{90, 0});
  save_small();
  const std::vector<StoredArtifact> loaded = load_artifacts(path());
  ASSERT_EQ(loaded.size(), 1U);
  const Artifact& artifact = loaded[0].artifact;
  EXPECT_EQ(artifact.kernel(), kernel);
  EXPECT_EQ(artifact.source(), made.source());
  EXPECT_EQ(artifact.log(), made.log());
  EXPECT_EQ(artifact.resources()->registers, made.resources()->registers);
  EXPECT_EQ(loaded[0].problems, std::vector<std::string>{small_line});
  expect_runs(artifact, device_);
}

TEST_F(ArtifactFiles, targets_of_a_kernel_are_one_artifact_that_gives_each_device_its_own) {
  const Kernel kernel = best_kernel(small_line);
  const std::vector<StoredArtifact> stored{{kernel.compile(Target{80, 0}), {"one"}},
                                           {kernel.compile(Target{90, 0}), {"two"}},
                                           {kernel.compile(Target{90, 0}), {"three"}}};
  save_artifacts(path(), stored, {.with_ptx = true});
  const std::vector<StoredArtifact> loaded = load_artifacts(path());
  ASSERT_EQ(loaded.size(), 1U);
  EXPECT_EQ(loaded[0].artifact.targets(), (std::vector<Target>{{80, 0}, {90, 0}}));
  EXPECT_EQ(loaded[0].problems, (std::vector<std::string>{"one", "two", "three"}));
  expect_runs(loaded[0].artifact, device_);
  expect_runs(loaded[0].artifact, *parse_device("emulated:a100"));
  const Error error = error_of([&] { loaded[0].artifact.load(*parse_device("emulated:b200")); });
  EXPECT_EQ(error.kind(), ErrorKind::unsupported);
  EXPECT_NE(error.expected().find("sm_80 sm_90"), std::string::npos) << error.what();
  // Loaded artifacts are saved unchanged.
  save_artifacts(path() + "2", loaded);
  EXPECT_EQ(load_artifacts(path() + "2")[0].artifact.targets(), loaded[0].artifact.targets());
}

TEST_F(ArtifactFiles, without_ptx_emulated_devices_are_refused_with_what_to_do) {
  // A kernel for which no other test compiles PTX.
  const StoredArtifact stored{best_kernel("gemm 24x16x8 a=f64").compile(Target{90, 0}), {}};
  save_artifacts(path(), std::span(&stored, 1));
  const Artifact artifact = load_artifacts(path())[0].artifact;
  const Error error = error_of([&] { artifact.load(device_); });
  EXPECT_EQ(error.kind(), ErrorKind::unsupported);
  EXPECT_NE(error.hint().find("--ptx"), std::string::npos) << error.what();
}

TEST_F(ArtifactFiles, kernels_of_the_cpu_are_refused) {
  const Kernel host =
      get_kernels(parse_problem(small_line).problem, device_info(Device::cpu())).at(0);
  const StoredArtifact stored{host.compile(Target::cpu()), {}};
  const Error error = error_of([&] { save_artifacts(path(), std::span(&stored, 1)); });
  EXPECT_EQ(error.kind(), ErrorKind::unsupported);
  EXPECT_EQ(error.operand(), host.name());
}

TEST_F(ArtifactFiles, what_this_library_does_not_have_is_refused_by_its_name) {
  using runtime::ArtifactFile;
  const auto expect = [](const Error& error, const char* expected, const char* got) {
    EXPECT_EQ(error.kind(), ErrorKind::unsupported) << error.what();
    EXPECT_NE(error.expected().find(expected), std::string::npos) << error.what();
    EXPECT_NE(error.got().find(got), std::string::npos) << error.what();
    EXPECT_NE(error.operand().find("kernels.gemmery"), std::string::npos) << error.what();
  };
  expect(refusal_after([](ArtifactFile& file) { file.kernels[0].family = "sm140"; }),
         "templates/simt", "family templates/sm140");
  expect(refusal_after([](ArtifactFile& file) { file.kernels[0].family_version += 6; }), "version ",
         "version ");
  expect(refusal_after([](ArtifactFile& file) { file.kernels[0].kernel_name += "_x"; }),
         "the name of a kernel of templates/simt", "another");
  expect(refusal_after([](ArtifactFile& file) {
           file.kernels[0].target = {75, 0};
         }),
         "one of the targets", "sm_75");
  expect(refusal_after([](ArtifactFile& file) { file.kernels[0].design[0].value = "odd"; }),
         "the design", "another");
  expect(refusal_after([](ArtifactFile& file) { file.abi_digest = "0123456789abcdef"; }),
         "device/abi", "0123456789ab");
  expect(refusal_after([](ArtifactFile& file) { file.kernels[0].epilogue = "D = nonsense("; }),
         "epilogue", "nonsense");
  expect(refusal_after([](ArtifactFile& file) { file.kernels.push_back(file.kernels[0]); }),
         "every target once", "twice");
}

TEST_F(ArtifactFiles, what_cannot_be_loaded_can_be_looked_into) {
  (void)refusal_after([](runtime::ArtifactFile& file) { file.kernels[0].family_version += 6; });
  const ArtifactFileSummary summary = inspect_artifacts(path());
  ASSERT_EQ(summary.kernels.size(), 1U);
  EXPECT_EQ(summary.kernels[0].problems, std::vector<std::string>{small_line});
  EXPECT_GT(summary.kernels[0].cubin_bytes, 0U);
  EXPECT_GT(summary.kernels[0].ptx_bytes, 0U);
  EXPECT_NE(summary.kernels[0].refusal.find("version"), std::string::npos);
  EXPECT_TRUE(summary.kernels[0].no_instructions.empty() ||
              summary.kernels[0].instructions.empty());
}

TEST_F(ArtifactFiles, loading_and_letting_go_a_thousand_times_keeps_memory_flat) {
  save_small();
  const auto cycle = [&](bool is_run) {
    const Artifact artifact = load_artifacts(path())[0].artifact;
    artifact.load(device_);
    if (is_run) expect_runs(artifact, device_);
  };
  if (tests::is_sanitized) GTEST_SKIP() << "the sanitizer keeps what is freed";
  const int cycles = is_soak() ? 10'000 : 1'000;
  for (int round = 0; round < 100; ++round) cycle(round % 10 == 0);
  const double before = resident_mib();
  for (int round = 0; round < cycles; ++round) cycle(round % 100 == 0);
  EXPECT_LT(resident_mib() - before, 8) << "MiB more after " << cycles << " cycles";
}

TEST_F(ArtifactFiles, code_by_nvcc_runs_like_that_by_nvrtc) {
  const jit::CompilerStatus nvcc = jit::nvcc_status();
  if (!nvcc.found) GTEST_SKIP() << nvcc.searched;
  // A design that no other test compiles.
  const Kernel kernel = best_kernel("gemm 2048x2048x2048 a=f32");
  ::setenv("GEMMERY_COMPILER", "nvcc", 1);
  const StoredArtifact stored{kernel.compile(Target{90, 0}), {}};
  save_artifacts(path(), std::span(&stored, 1), {.with_ptx = true});
  ::unsetenv("GEMMERY_COMPILER");
  expect_runs(load_artifacts(path())[0].artifact, device_);
}

// --- looking into code ---

TEST_F(ArtifactFiles, code_of_an_artifact_and_of_its_file_are_the_same) {
  const Kernel kernel = best_kernel(small_line);
  const Artifact artifact = kernel.compile(Target{90, 0});
  const std::vector<KernelCode> codes = code_of(artifact, true);
  ASSERT_EQ(codes.size(), 1U);
  EXPECT_EQ(codes[0].kernel_name, kernel.name());
  EXPECT_EQ(codes[0].target, (Target{90, 0}));
  EXPECT_EQ(codes[0].source, artifact.source());
  EXPECT_NE(codes[0].ptx.find(".entry"), std::string::npos);
  ASSERT_GT(codes[0].cubin.size(), 4U);
  EXPECT_EQ(std::memcmp(codes[0].cubin.data(), "\177ELF", 4), 0);
  const StoredArtifact stored{artifact, {}};
  save_artifacts(path(), std::span(&stored, 1), {.with_ptx = true});
  const std::vector<KernelCode> in_file = code_in_file(path());
  ASSERT_EQ(in_file.size(), 1U);
  EXPECT_EQ(in_file[0].kernel_name, codes[0].kernel_name);
  EXPECT_EQ(in_file[0].source, codes[0].source);
  EXPECT_EQ(in_file[0].ptx, codes[0].ptx);
  EXPECT_EQ(in_file[0].cubin, codes[0].cubin);
  const ArtifactSummary summary = summarize(artifact).at(0);
  EXPECT_EQ(summary.cubin_bytes, codes[0].cubin.size());
  EXPECT_EQ(summary.resources->registers, artifact.resources()->registers);
}

TEST_F(ArtifactFiles, machine_code_is_text_where_a_disassembler_is) {
  const KernelCode code = code_of(best_kernel(small_line).compile(Target{90, 0})).at(0);
  if (!jit::find_disassembler()) {
    EXPECT_EQ(error_of([&] { (void)disassemble(code.cubin); }).kind(), ErrorKind::unavailable);
    GTEST_SKIP() << "no nvdisasm";
  }
  EXPECT_NE(disassemble(code.cubin).find("EXIT"), std::string::npos);
}

TEST(Code, of_kernels_of_the_cpu_is_refused) {
  const GemmProblem problem = parse_problem(small_line).problem;
  const Kernel kernel = get_kernels(problem, device_info(Device::cpu())).at(0);
  const Artifact artifact = kernel.compile(Target{});
  EXPECT_EQ(error_of([&] { (void)code_of(artifact); }).kind(), ErrorKind::unsupported);
  EXPECT_EQ(error_of([&] { (void)summarize(artifact); }).kind(), ErrorKind::unsupported);
}

TEST_F(ArtifactFiles, a_source_with_its_headers_compiles_to_the_same_code) {
  const DeviceInfo h200 = find_device_info("h200").value();
  for (const char* const line : {"gemm 512x512x512 a=bf16 b=bf16:c", "gemm 24x16x8 a=f32",
                                 "gemm 512x512x512 a=bf16 epilogue=\"D = relu(accum)\""}) {
    const Kernel kernel = best_kernel(line);
    const Artifact artifact = kernel.compile(kernel.family().target_for(kernel, h200));
    const auto& state = dynamic_cast<const runtime::DeviceArtifact&>(artifact.state());
    const std::string whole = with_headers(artifact.source());
    EXPECT_EQ(whole.find("#include <device"), std::string::npos) << line;
    EXPECT_EQ(whole.find("#pragma once"), std::string::npos) << line;
    const jit::CompiledCode again = jit::compile({.source = whole,
                                                  .entry = state.emitted().entry,
                                                  .target = state.target(),
                                                  .extra_options = state.emitted().options});
    EXPECT_EQ(again.cubin, code_of(artifact).at(0).cubin) << line;
  }
}

// --- many compilations --------------------------------------------------------------------------

class CompileAll : public ArtifactFiles {};

TEST_F(CompileAll, a_failure_is_named_and_the_others_are_kept) {
  const Kernel kernel = best_kernel(small_line);
  std::vector<CompileJob> jobs{{kernel, {80, 0}}, {kernel, {75, 0}}, {kernel, {90, 0}}};
  std::vector<std::size_t> seen;
  const auto results =
      compile_all(jobs, {.progress = [&](const CompileResult&, std::size_t done, std::size_t all) {
                    EXPECT_EQ(all, 3U);
                    seen.push_back(done);
                  }});
  ASSERT_EQ(results.size(), 3U);
  EXPECT_TRUE(results[0].artifact && results[2].artifact);
  ASSERT_TRUE(results[1].error);
  EXPECT_EQ(results[1].error->operand(), kernel.name());
  EXPECT_NE(std::string(results[1].error->what()).find("sm_75"), std::string::npos);
  EXPECT_EQ(seen, (std::vector<std::size_t>{1, 2, 3}));
}

TEST_F(CompileAll, what_is_asked_to_stop_ends_as_cancelled) {
  std::stop_source source;
  source.request_stop();
  const std::vector<Kernel> kernels{best_kernel("gemm 77x78x79 a=f64"),
                                    best_kernel("gemm 77x78x79 a=s8")};
  for (const CompileResult& result :
       compile_all(kernels, Target{90, 0}, {.stop = source.get_token()})) {
    ASSERT_TRUE(result.error);
    EXPECT_NE(std::string(result.error->what()).find("cancelled"), std::string::npos);
  }
}

TEST_F(CompileAll, twenty_four_threads_that_want_the_same_get_the_same) {
  const Kernel kernel = best_kernel("gemm 33x34x35 a=f16 out=f32");
  std::vector<const ArtifactState*> states(24);
  {
    std::vector<std::jthread> threads;
    for (const ArtifactState*& state : states)
      threads.emplace_back([&] { state = &kernel.compile(Target{90, 0}).state(); });
  }
  for (const ArtifactState* const state : states) EXPECT_EQ(state, states.front());
}

}  // namespace
}  // namespace gemmery
