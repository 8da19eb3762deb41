// SPDX-License-Identifier: Apache-2.0
// The devices known by name, so that kernels can be ranked and explained on machines without them.
#include <gemmery/device.hpp>
#include <gemmery/device_facts.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>

#include "core/device_rates.hpp"

namespace gemmery {
namespace {

constexpr std::int64_t kib = 1024;
constexpr std::int64_t mib = 1024 * kib;
constexpr std::int64_t gib = 1024 * mib;

struct DeviceRow {
  std::string_view table_name;
  std::string_view full_name;
  Target target;
  int multiprocessors;
  std::int64_t shared_bytes_per_block;
  std::int64_t shared_bytes_per_multiprocessor;
  std::int64_t l2_bytes;
  std::int64_t memory_bytes;
  double clock_ghz;
  double bandwidth;
  std::string_view unconfirmed{};  // facts for which no source was found, or sources that disagree
};

// Sources. Shared memory of every row: CUDA C++ Programming Guide, table of compute capabilities,
// and arch_traits of NVIDIA/cccl. The rest:
//
//   h100, h200  NVIDIA's data sheets (SXM); L2 of the H200 as its driver reports it
//   a100        data sheet (SXM, 80 GB); clock and L2 as deviceQuery prints them
//   l40s        data sheet; its 91.6 TFLOP/s give the clock. L2 is published as 48 and as 96 MB
//   rtx4090     data sheet; L2 as published tables print it
//   b200        data sheet; multiprocessors, L2 and memory as the driver reports them
//               (pytorch/ao, pull request 4002: by bus width and memory clock 7.67e12 bytes/s)
//   b300        bandwidth as announced; the others follow the B200 or are approximate
//   rtx5090     NVIDIA's specifications, as published reviews print them
//   a10, v100   published tables of specifications (V100: of the SXM3 board, bandwidth of SXM2)
//   t4          multiprocessors, clock and L2 as deviceQuery prints them; bandwidth as published
//   orin        NVIDIA's technical brief: 5.3 TFLOP/s of 2,048 cores give the clock
//   thor        multiprocessors and L2 as the driver reports them (NVIDIA's developer forum,
//               topic 356355); bandwidth as published of the T5000
//   gb10        multiprocessors and L2 by measurement (huggingface/kernels, pull request 283);
//               bandwidth as published of the DGX Spark
constexpr std::array device_rows{
    DeviceRow{"h100",
              "NVIDIA H100 SXM",
              {90, 0},
              132,
              227 * kib,
              228 * kib,
              50 * mib,
              80 * gib,
              1.98,
              3.35e12},
    DeviceRow{"h200",
              "NVIDIA H200",
              {90, 0},
              132,
              227 * kib,
              228 * kib,
              60 * mib,
              141 * gib,
              1.98,
              4.8e12},
    DeviceRow{"a100",
              "NVIDIA A100 SXM 80GB",
              {80, 0},
              108,
              163 * kib,
              164 * kib,
              40 * mib,
              80 * gib,
              1.41,
              2.039e12},
    DeviceRow{"l40s",
              "NVIDIA L40S",
              {89, 0},
              142,
              99 * kib,
              100 * kib,
              96 * mib,
              48 * gib,
              2.52,
              0.864e12,
              "L2"},
    DeviceRow{"rtx4090",
              "NVIDIA GeForce RTX 4090",
              {89, 0},
              128,
              99 * kib,
              100 * kib,
              72 * mib,
              24 * gib,
              2.52,
              1.008e12},
    DeviceRow{"b200",
              "NVIDIA B200",
              {100, 0},
              148,
              227 * kib,
              228 * kib,
              126 * mib,
              180 * gib,
              1.96,
              8.0e12,
              "clock"},
    DeviceRow{"b300",
              "NVIDIA B300",
              {103, 0},
              148,
              227 * kib,
              228 * kib,
              126 * mib,
              279 * gib,
              1.92,
              8.0e12,
              "multiprocessors, L2, memory, clock"},
    DeviceRow{"rtx5090",
              "NVIDIA GeForce RTX 5090",
              {120, 0},
              170,
              99 * kib,
              100 * kib,
              96 * mib,
              32 * gib,
              2.41,
              1.792e12},
    DeviceRow{
        "a10", "NVIDIA A10", {86, 0}, 72, 99 * kib, 100 * kib, 6 * mib, 24 * gib, 1.695, 0.6e12},
    DeviceRow{"orin",
              "NVIDIA Jetson AGX Orin 64GB",
              {87, 0},
              16,
              163 * kib,
              164 * kib,
              4 * mib,
              64 * gib,
              1.3,
              0.2048e12,
              "bandwidth"},
    DeviceRow{"thor",
              "NVIDIA Jetson AGX Thor",
              {110, 0},
              20,
              227 * kib,
              228 * kib,
              32 * mib,
              128 * gib,
              1.575,
              0.273e12,
              "clock"},
    DeviceRow{"gb10",
              "NVIDIA GB10",
              {121, 0},
              48,
              99 * kib,
              100 * kib,
              24 * mib,
              128 * gib,
              2.418,
              0.273e12,
              "clock"},
    DeviceRow{"v100",
              "NVIDIA V100 SXM2 32GB",
              {70, 0},
              80,
              96 * kib,
              96 * kib,
              6 * mib,
              32 * gib,
              1.53,
              0.9e12},
    DeviceRow{"t4", "NVIDIA T4", {75, 0}, 40, 64 * kib, 64 * kib, 4 * mib, 16 * gib, 1.59, 0.32e12},
};

constexpr auto table_names = [] {
  std::array<std::string_view, device_rows.size()> names{};
  for (std::size_t row = 0; row < names.size(); ++row) names[row] = device_rows[row].table_name;
  return names;
}();

DeviceInfo to_info(const DeviceRow& row) {
  const CudaCoreRates rates = cuda_core_rates(row.target);
  return {.name = std::string(row.full_name),
          .target = row.target,
          .multiprocessors = row.multiprocessors,
          .shared_bytes_per_block = row.shared_bytes_per_block,
          .shared_bytes_per_multiprocessor = row.shared_bytes_per_multiprocessor,
          .l2_bytes = row.l2_bytes,
          .memory_bytes = row.memory_bytes,
          .clock_ghz = row.clock_ghz,
          .bandwidth_bytes_per_second = row.bandwidth,
          .fma_f32_per_clock = rates.fma_f32,
          .fma_f64_per_clock = rates.fma_f64,
          .fma_int_per_clock = rates.fma_int};
}

// A driver reports the same name, but not the table's round figures: less memory is usable.
bool has_facts_of(const DeviceRow& row, const DeviceInfo& facts) {
  return facts.name.ends_with(row.full_name) && facts.multiprocessors == row.multiprocessors &&
         facts.l2_bytes == row.l2_bytes && facts.memory_bytes == row.memory_bytes;
}

std::string_view name(DeviceType type) {
  switch (type) {
    case DeviceType::cpu:
      return "cpu";
    case DeviceType::cuda:
      return "cuda";
    case DeviceType::emulated:
      return "emulated";
  }
  return "unknown";
}

bool is_in_table(int index) {
  return index >= 0 && static_cast<std::size_t>(index) < table_names.size();
}

std::optional<int> parse_index(std::string_view text) {
  int index = 0;
  const char* const end = text.data() + text.size();
  const auto [after, failure] = std::from_chars(text.data(), end, index);
  const bool is_number = failure == std::errc{} && after == end && text.front() != '-';
  return is_number ? std::optional(index) : std::nullopt;
}

std::optional<int> find_in_table(std::string_view text) {
  const auto found = std::ranges::find(table_names, text);
  if (found == table_names.end()) return std::nullopt;
  return static_cast<int>(found - table_names.begin());
}

}  // namespace

std::string to_string(Device device) {
  std::string text{name(device.type)};
  if (device.is_cpu()) return text;
  const bool is_named = device.type == DeviceType::emulated && is_in_table(device.index);
  return text + ":" +
         (is_named ? std::string(table_names[static_cast<std::size_t>(device.index)])
                   : std::to_string(device.index));
}

std::optional<Device> parse_device(std::string_view text) noexcept {
  if (text == name(DeviceType::cpu)) return Device::cpu();
  for (const DeviceType type : {DeviceType::cuda, DeviceType::emulated}) {
    if (!text.starts_with(name(type)) || !text.substr(name(type).size()).starts_with(':')) continue;
    const std::string_view place = text.substr(name(type).size() + 1);
    if (place.empty()) return std::nullopt;
    std::optional<int> index = parse_index(place);
    if (!index && type == DeviceType::emulated) index = find_in_table(place);
    return index ? std::optional(Device{type, *index}) : std::nullopt;
  }
  return std::nullopt;
}

std::optional<DeviceInfo> find_device_info(std::string_view table_name) {
  for (const DeviceRow& row : device_rows) {
    if (row.table_name == table_name) return to_info(row);
  }
  return std::nullopt;
}

DeviceInfo typical_device_info(Target target) {
  const auto distance = [&](const DeviceRow& row) {
    return std::abs(row.target.architecture - target.architecture);
  };
  constexpr const DeviceRow& h200 = device_rows[1];  // what predictions for sm_90 are fitted to
  const DeviceRow& closest =
      distance(h200) == 0 ? h200 : *std::ranges::min_element(device_rows, {}, distance);
  DeviceInfo info = to_info(closest);
  if (distance(closest) == 0) return info;
  const CudaCoreRates rates = cuda_core_rates(target);
  info.name = "an unknown device of " + to_string(target) + " with the facts of " + info.name;
  info.target = {target.architecture, 0};
  info.fma_f32_per_clock = rates.fma_f32;
  info.fma_f64_per_clock = rates.fma_f64;
  info.fma_int_per_clock = rates.fma_int;
  return info;
}

std::string_view unconfirmed_facts(const DeviceInfo& facts) {
  const auto has_these = [&](const DeviceRow& row) { return has_facts_of(row, facts); };
  const auto* const row = std::ranges::find_if(device_rows, has_these);
  return row == device_rows.end() ? std::string_view() : row->unconfirmed;
}

std::span<const std::string_view> known_device_names() noexcept { return table_names; }

}  // namespace gemmery
