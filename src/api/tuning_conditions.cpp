// SPDX-License-Identifier: Apache-2.0
#include "api/tuning_conditions.hpp"

#include <gemmery/version.hpp>

#include <map>
#include <mutex>
#include <string>
#include <tuple>

#include <fmt/format.h>

#include "driver/driver.hpp"
#include "jit/compiler_choice.hpp"
#include "jit/nvcc.hpp"
#include "jit/nvrtc.hpp"
#include "platform/parallel.hpp"
#include "providers/host/onednn.hpp"

namespace gemmery::api {
namespace {

std::string onednn_text() {
  const std::string text = host::onednn::version_text();  // "2.6.3 at /usr/lib/libdnnl.so.2"
  return text.empty() ? "no oneDNN" : "oneDNN " + text.substr(0, text.find(" at "));
}

// The one that compiled our loops.
std::string build_compiler_text() {
#if defined(__clang__)
  return fmt::format("clang {}.{}.{}", __clang_major__, __clang_minor__, __clang_patchlevel__);
#elif defined(__GNUC__)
  return fmt::format("GCC {}.{}.{}", __GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__);
#else
  return "an unknown compiler";
#endif
}

std::string driver_text() {
  const driver::DriverFinding found = driver::find_driver(DeviceType::cuda);
  if (found.driver == nullptr) return "no CUDA driver";
  const int version = found.driver->version();
  return fmt::format("CUDA {}.{}", version / 1000, version % 1000 / 10);
}

std::string kernel_compiler_text() {
  const bool is_nvcc = jit::chosen_compiler() == jit::CompilerKind::nvcc;
  const jit::CompilerStatus status = is_nvcc ? jit::nvcc_status() : jit::compiler_status();
  const std::string name = is_nvcc ? "nvcc" : "NVRTC";
  return status.found ? name + " " + status.version : "no " + name;
}

TuningConditions find_conditions(const DeviceInfo& device) {
  if (device.target.is_cpu())
    return {.device = fmt::format("{} (cpu, {} threads)", device.name, platform::thread_count()),
            .driver = onednn_text(),
            .compiler = build_compiler_text(),
            .gemmery = version()};
  return {.device = fmt::format("{} ({}, {} SMs)", device.name, to_string(device.target),
                                device.multiprocessors),
          .driver = driver_text(),
          .compiler = kernel_compiler_text(),
          .gemmery = version()};
}

}  // namespace

const TuningConditions& conditions_of(const DeviceInfo& device) {
  using Key = std::tuple<std::string, std::string, int>;
  static auto* const mutex = new std::mutex;
  static auto* const known = new std::map<Key, TuningConditions>;
  const Key key{device.name, to_string(device.target), device.multiprocessors};
  const std::scoped_lock lock(*mutex);
  const auto found = known->find(key);
  if (found != known->end()) return found->second;
  return known->emplace(key, find_conditions(device)).first->second;
}

}  // namespace gemmery::api
