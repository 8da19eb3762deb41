// SPDX-License-Identifier: Apache-2.0
// Kernels for other machines: compiles the best kernels of a few problems for two targets, side by
// side and with no GPU, and writes them to one file. Usage: 08_ahead_of_time [FILE]. Exits with 77
// without NVRTC.
#include <cstdio>
#include <string>
#include <vector>

#include <gemmery/gemmery.hpp>

namespace {

constexpr int skipped = 77;
const std::vector<std::string> problems{"gemm 64x96x80 a=f32",
                                        "gemm 128x256x128 a=bf16 b=bf16:c out=f32"};
const std::vector<std::string> devices{"h200", "a100"};  // by their data sheets

// The best kernel of each problem on each device.
std::vector<gemmery::CompileJob> choose() {
  std::vector<gemmery::CompileJob> jobs;
  for (const std::string& name : devices) {
    const gemmery::DeviceInfo device = gemmery::find_device_info(name).value();
    for (const std::string& line : problems) {
      const auto kernels = gemmery::get_kernels(gemmery::parse_problem(line).problem, device);
      const gemmery::Kernel& best = kernels.at(0);
      jobs.push_back({best, best.family().target_for(best, device)});
    }
  }
  return jobs;
}

int write_file(const std::string& path) {
  const auto jobs = choose();
  // With PTX, so that the emulator can run them, too.
  const auto results = gemmery::compile_all(jobs, {.with_ptx = true});
  std::vector<gemmery::StoredArtifact> compiled;
  for (std::size_t index = 0; index < results.size(); ++index) {
    if (!results[index].artifact) throw gemmery::Error(*results[index].error);
    compiled.push_back({*results[index].artifact, {problems[index % problems.size()]}});
  }
  gemmery::save_artifacts(path, compiled);

  // Any later program loads the file; it needs no compiler.
  for (const gemmery::StoredArtifact& loaded : gemmery::load_artifacts(path)) {
    std::printf("%s\n ", loaded.artifact.kernel().name().c_str());
    for (const gemmery::Target target : loaded.artifact.targets())
      std::printf(" %s", to_string(target).c_str());
    std::printf("  %s\n", loaded.problems.at(0).c_str());
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string path = argc > 1 ? argv[1] : "ahead_of_time.gemmery";
  try {
    const int code = write_file(path);
    if (argc <= 1) std::remove(path.c_str());
    return code;
  } catch (const gemmery::Error& error) {
    std::printf("%s\n", error.what());
    return error.kind() == gemmery::ErrorKind::unavailable ? skipped : 1;
  }
}
