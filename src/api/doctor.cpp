// SPDX-License-Identifier: Apache-2.0
// The report on this machine: what was found, or where it was searched for. Reporting never fails.
#include <gemmery/cache.hpp>
#include <gemmery/device_facts.hpp>
#include <gemmery/discovery.hpp>
#include <gemmery/doctor.hpp>
#include <gemmery/error.hpp>
#include <gemmery/family.hpp>
#include <gemmery/version.hpp>

#include <exception>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "driver/driver.hpp"
#include "jit/nvcc.hpp"
#include "jit/nvrtc.hpp"
#include "kernel/registry.hpp"
#include "platform/host_info.hpp"
#include "providers/cublaslt/library.hpp"
#include "providers/host/onednn.hpp"
#include "runtime/portable_targets.hpp"

namespace gemmery {
namespace {

// A refusal without its kind and the library's name, which the report states anyway.
std::string without_prefixes(std::string reason, std::string_view library) {
  for (const std::string& prefix : {std::string("unavailable: "), std::string(library) + ": "}) {
    if (reason.starts_with(prefix)) reason.erase(0, prefix.size());
  }
  return reason;
}

// "13.0" from 13000
std::string driver_version_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

LibraryFinding driver_finding() {
  LibraryFinding finding{.name = "CUDA driver", .enables = "running kernels on GPUs"};
  const driver::DriverFinding found = driver::find_driver(DeviceType::cuda);
  finding.found = found.driver != nullptr;
  if (!finding.found) {
    finding.searched = without_prefixes(found.reason, finding.name);
    return finding;
  }
  finding.path = found.driver->path();
  finding.version = driver_version_text(found.driver->version());
  return finding;
}

LibraryFinding compiler_finding() {
  const jit::CompilerStatus status = jit::compiler_status();
  return {.name = "NVRTC",
          .found = status.found,
          .path = status.path,
          .version = status.version,
          .enables = "compiling GPU kernels from source, with or without a GPU",
          .searched = without_prefixes(status.searched, "NVRTC")};
}

LibraryFinding second_compiler_finding() {
  const jit::CompilerStatus status = jit::nvcc_status();
  return {.name = "nvcc",
          .found = status.found,
          .path = status.path,
          .version = status.version,
          .enables = "compiling with the toolkit's own program, where GEMMERY_COMPILER=nvcc",
          .searched = without_prefixes(status.searched, "nvcc")};
}

// Splits "2.6.3 at /usr/lib/libdnnl.so.2".
LibraryFinding onednn_finding() {
  LibraryFinding finding{.name = "oneDNN", .enables = "the fast path on the CPU"};
  const Status status = host::onednn::availability();
  finding.found = status.is_success();
  if (!finding.found) {
    finding.searched = without_prefixes(status.error(), finding.name);
    return finding;
  }
  const std::string text = host::onednn::version_text();
  const std::size_t separator = text.find(" at ");
  finding.version = text.substr(0, separator);
  if (separator != std::string::npos) finding.path = text.substr(separator + 4);
  return finding;
}

LibraryFinding cublaslt_finding() {
  LibraryFinding finding{.name = "cuBLASLt", .enables = "NVIDIA's kernels beside our own"};
  const cublaslt::FoundLibrary& found = cublaslt::process_library();
  finding.found = found.library != nullptr;
  if (!finding.found) {
    finding.searched = without_prefixes(found.reason, finding.name);
    return finding;
  }
  finding.path = found.library->path;
  finding.version = to_string(found.library->version);
  return finding;
}

// A GPU's line, or why it cannot be used: a failing one must not hide the others.
std::string gpu_line(Device device) {
  try {
    const DeviceInfo& info = device_info(device);
    return fmt::format("{}: {}, {}, {} SMs, {:.1f} GiB, {:.2f} TB/s", to_string(device), info.name,
                       to_string(info.target), info.multiprocessors,
                       static_cast<double>(info.memory_bytes) / (1024.0 * 1024 * 1024),
                       info.bandwidth_bytes_per_second / 1e12);
  } catch (const std::exception& error) {
    return fmt::format("{}: {}", to_string(device), error.what());
  }
}

std::vector<std::string> gpu_lines() {
  std::vector<std::string> lines;
  for (const Device device : devices()) {
    if (!device.is_cpu()) lines.push_back(gpu_line(device));
  }
  return lines;
}

// Without devices for which none of our kernels has code.
std::vector<std::string> emulated_names() {
  constexpr int first_architecture = runtime::portable_targets.front().architecture;
  std::vector<std::string> names;
  for (const std::string_view name : known_device_names()) {
    if (find_device_info(name)->target.architecture >= first_architecture)
      names.push_back(fmt::format("emulated:{}", name));
  }
  return names;
}

std::map<std::string, std::string> unconfirmed_by_name() {
  std::map<std::string, std::string> facts;
  for (const std::string_view name : known_device_names()) {
    const std::string_view unconfirmed = unconfirmed_facts(*find_device_info(name));
    if (!unconfirmed.empty()) facts.emplace(name, unconfirmed);
  }
  return facts;
}

// A variable that cannot be parsed is a reason like any other.
CacheReport cache_finding() {
  try {
    return cache_report();
  } catch (const Error& error) {
    CacheReport report;
    report.refusal = error.what();
    return report;
  }
}

std::string cache_line(const CacheReport& cache) {
  if (!cache.is_usable) return fmt::format("cache    not used: {}\n", cache.refusal);
  const CacheCounters& counters = cache.counters;
  const std::uint64_t misses = counters.absent + counters.damaged + counters.foreign +
                               counters.other_version + counters.unreadable;
  return fmt::format("cache    {}, {} entries, {:.1f} of {:.0f} MiB, {} hits, {} misses{}\n",
                     cache.folder, cache.entries, static_cast<double>(cache.bytes) / 1048576.0,
                     static_cast<double>(cache.most_bytes) / 1048576.0, counters.hits, misses,
                     cache.is_read_only ? ", read only" : "");
}

std::string facts_line(const std::map<std::string, std::string>& unconfirmed) {
  std::vector<std::string> devices;
  for (const auto& [device, facts] : unconfirmed)
    devices.push_back(fmt::format("{} ({})", device, facts));
  return fmt::format("facts    not confirmed by a source: {}\n", fmt::join(devices, ", "));
}

std::string cpu_line() {
  const DeviceInfo& info = platform::host_device_info();
  return fmt::format("{}, {} cores, {}", info.name, info.multiprocessors,
                     platform::host_vector_sets());
}

std::string library_line(const LibraryFinding& library) {
  if (!library.found) {
    return fmt::format("  {:<12} not found: {}\n  {:<12} needed for {}\n", library.name,
                       library.searched, "", library.enables);
  }
  return fmt::format("  {:<12} {} at {}\n  {:<12} for {}\n", library.name, library.version,
                     library.path, "", library.enables);
}

}  // namespace

DoctorReport doctor() {
  return {.gemmery_version = version(),
          .cpu = cpu_line(),
          .libraries = {driver_finding(), compiler_finding(), second_compiler_finding(),
                        onednn_finding(), cublaslt_finding()},
          .gpus = gpu_lines(),
          .emulated = emulated_names(),
          .unconfirmed_facts = unconfirmed_by_name(),
          .cache = cache_finding()};
}

std::string to_string(const DoctorReport& report) {
  std::string text = fmt::format("gemmery {}\ncpu      {}\n", report.gemmery_version, report.cpu);
  if (report.gpus.empty()) text += "gpu      none\n";
  for (const std::string& gpu : report.gpus) text += "gpu      " + gpu + "\n";
  text += fmt::format("emulated {}\n", fmt::join(report.emulated, " "));
  if (!report.unconfirmed_facts.empty()) text += facts_line(report.unconfirmed_facts);
  text += cache_line(report.cache);
  text += "libraries\n";
  for (const LibraryFinding& library : report.libraries) text += library_line(library);
  text.pop_back();
  return text;
}

}  // namespace gemmery
