// SPDX-License-Identifier: Apache-2.0
// Compilation for a named target. It needs NVRTC but no GPU. Exits with 77 without NVRTC.
#include <cstdio>
#include <string>

#include <gemmery/gemmery.hpp>

namespace {

constexpr int skipped = 77;

int compile_best(const gemmery::GemmProblem& problem, const gemmery::DeviceInfo& device) {
  const auto kernels = gemmery::get_kernels(problem, device);
  if (kernels.empty()) {
    std::printf("no kernel fits:\n%s\n", to_string(explain(problem, device)).c_str());
    return 1;
  }
  const gemmery::Kernel& kernel = kernels.front();
  const gemmery::Artifact artifact = kernel.compile(kernel.family().target_for(kernel, device));
  std::printf("%s\ncompiled for %s in %.0f ms from this source:\n\n%s\n", kernel.name().c_str(),
              to_string(artifact.targets().front()).c_str(), artifact.compile_ms(),
              std::string(artifact.source()).c_str());
  if (const auto resources = artifact.resources()) {
    std::printf("registers %d, static shared memory %d bytes, spilled %d bytes\n",
                resources->registers, resources->static_shared_bytes, resources->spill_store_bytes);
  }
  return 0;
}

}  // namespace

int main() {
  const auto problem = gemmery::parse_problem("gemm 1000x1000x1000 a=f32").problem;
  try {
    return compile_best(problem, gemmery::find_device_info("h200").value());
  } catch (const gemmery::Error& error) {
    std::printf("%s\n", error.what());
    return error.kind() == gemmery::ErrorKind::unavailable ? skipped : 1;
  }
}
