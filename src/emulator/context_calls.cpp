// SPDX-License-Identifier: Apache-2.0
// Errors, devices and their facts, contexts.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/thread_value.hpp"
#include "emulator/handles.hpp"
#include "emulator/table.hpp"

namespace gemmery::emulator {
namespace {

struct ContextStack {
  std::vector<cuda::Context> contexts;  // the current one last
};

std::vector<cuda::Context>& context_stack() { return thread_value<ContextStack>().contexts; }

// The device table has only the bandwidth. With a bus this narrow, the clock rate for any bandwidth
// in the table is a whole number of kilohertz.
constexpr int bus_width_bits = 16;

int memory_clock_khz(const DeviceInfo& info) {
  constexpr double bytes_per_clock = 2.0 * bus_width_bits / 8;
  return static_cast<int>(std::lround(info.bandwidth_bytes_per_second / bytes_per_clock / 1e3));
}

int attribute_of(const DeviceInfo& info, cuda::DeviceAttribute attribute) {
  switch (attribute) {
    case cuda::DeviceAttribute::clock_rate_khz:
      return static_cast<int>(std::lround(info.clock_ghz * 1e6));
    case cuda::DeviceAttribute::multiprocessor_count:
      return info.multiprocessors;
    case cuda::DeviceAttribute::memory_clock_rate_khz:
      return memory_clock_khz(info);
    case cuda::DeviceAttribute::memory_bus_width_bits:
      return bus_width_bits;
    case cuda::DeviceAttribute::l2_cache_bytes:
      return static_cast<int>(info.l2_bytes);
    case cuda::DeviceAttribute::compute_capability_major:
      return info.target.major();
    case cuda::DeviceAttribute::compute_capability_minor:
      return info.target.minor();
    case cuda::DeviceAttribute::max_shared_bytes_per_multiprocessor:
      return static_cast<int>(info.shared_bytes_per_multiprocessor);
    case cuda::DeviceAttribute::max_shared_bytes_per_block_optin:
      return static_cast<int>(info.shared_bytes_per_block);
    case cuda::DeviceAttribute::memory_pools_supported:
      return 1;
  }
  throw Refusal{cuda::Result::invalid_value, "a device attribute that is not emulated"};
}

}  // namespace

HandleState& handles() {
  static HandleState* const state = [] {
    auto* const made = new HandleState;
    for (int ordinal = 0; ordinal < device_count(); ++ordinal) {
      made->contexts.push_back({&device_at(ordinal)});
      made->default_streams.push_back(
          {.device = &device_at(ordinal), .capture = nullptr, .captured = {}});
    }
    return made;
  }();
  return *state;
}

cuda::Context current_context() noexcept {
  return context_stack().empty() ? nullptr : context_stack().back();
}

EmulatedDevice& current_device() {
  if (const cuda::Context context = current_context()) return *context->device;
  throw Refusal{cuda::Result::invalid_context, {}};
}

EmulatedDevice& device_of(cuda::DeviceOrdinal ordinal) {
  if (ordinal >= 0 && ordinal < device_count()) return device_at(ordinal);
  throw Refusal{cuda::Result::invalid_device, {}};
}

namespace calls {

cuda::Result cuInit(unsigned) {
  return answer([] { handles(); });
}

cuda::Result cuDriverGetVersion(int* version) {
  *version = cuda::api_version;
  return cuda::Result::success;
}

cuda::Result cuGetErrorName(cuda::Result error, const char** text) {
  *text = name_of(error);
  return cuda::Result::success;
}

cuda::Result cuGetErrorString(cuda::Result error, const char** text) {
  *text = words_of(error);
  return cuda::Result::success;
}

cuda::Result cuDeviceGetCount(int* count) {
  *count = device_count();
  return cuda::Result::success;
}

cuda::Result cuDeviceGet(cuda::DeviceOrdinal* device, int index) {
  return answer([&] { *device = device_of(index).ordinal; });
}

cuda::Result cuDeviceGetName(char* name, int length, cuda::DeviceOrdinal device) {
  return answer([&] {
    const std::string& text = device_of(device).info.name;
    const std::size_t bytes =
        std::min(text.size(), static_cast<std::size_t>(std::max(length, 1)) - 1);
    std::memcpy(name, text.data(), bytes);
    name[bytes] = '\0';
  });
}

cuda::Result cuDeviceGetAttribute(int* value, cuda::DeviceAttribute attribute,
                                  cuda::DeviceOrdinal device) {
  return answer([&] { *value = attribute_of(device_of(device).info, attribute); });
}

cuda::Result cuDeviceTotalMem(std::size_t* bytes, cuda::DeviceOrdinal device) {
  return answer([&] { *bytes = static_cast<std::size_t>(device_of(device).info.memory_bytes); });
}

cuda::Result cuDevicePrimaryCtxRetain(cuda::Context* context, cuda::DeviceOrdinal device) {
  return answer(
      [&] { *context = &handles().contexts[static_cast<std::size_t>(device_of(device).ordinal)]; });
}

cuda::Result cuCtxGetCurrent(cuda::Context* context) {
  *context = current_context();
  return cuda::Result::success;
}

cuda::Result cuCtxSetCurrent(cuda::Context context) {
  return answer([&] {
    if (!context_stack().empty()) context_stack().pop_back();
    if (context != nullptr) context_stack().push_back(context);
  });
}

cuda::Result cuCtxPushCurrent(cuda::Context context) {
  return answer([&] {
    if (context == nullptr) throw Refusal{cuda::Result::invalid_context, {}};
    context_stack().push_back(context);
  });
}

cuda::Result cuCtxPopCurrent(cuda::Context* context) {
  return answer([&] {
    if (context_stack().empty()) throw Refusal{cuda::Result::invalid_context, {}};
    if (context != nullptr) *context = context_stack().back();
    context_stack().pop_back();
  });
}

}  // namespace calls
}  // namespace gemmery::emulator
