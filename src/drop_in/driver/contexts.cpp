// SPDX-License-Identifier: Apache-2.0
// Devices, their attributes, contexts, peers.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>

#include <fmt/format.h>

#include "drop_in/driver/exports.hpp"
#include "drop_in/driver/limits.hpp"
#include "drop_in/driver/state.hpp"
#include "emulator/table.hpp"

namespace gemmery::drop_in {
namespace {

constexpr int heap_limit = 2;  // CU_LIMIT_MALLOC_HEAP_SIZE

// What cuCtxGetLimit answers until a program sets the limit: number in the manual, bytes or count.
std::size_t default_limit(int limit) {
  switch (limit) {
    case 0:
      return 1024;  // stack of a thread
    case 1:
      return std::size_t{1} << 20;  // buffer of printf
    case heap_limit:
      return std::size_t{8} << 20;
    default:
      return 0;
  }
}

std::string bus_id(int ordinal) { return fmt::format("0000:{:02x}:00.0", ordinal + 1); }

void create_context(cuda::Context* context, cuda::DeviceOrdinal device) {
  require(context) = new cuda::ContextHandle{&emulator::device_of(device)};
  emulator::calls::cuCtxPushCurrent(*context);
}

bool is_primary(const cuda::ContextHandle& context) {
  return &emulator::handles().contexts[static_cast<std::size_t>(context.device->ordinal)] ==
         &context;
}

void change_peer(cuda::Context peer, bool enables) {
  EmulatedDevice& device = emulator::current_device();
  EmulatedDevice& other = *require(peer).device;
  if (&device == &other) throw Refusal{cuda::Result::invalid_device, {}};
  const std::lock_guard lock(state().mutex);
  const std::pair pair{device.ordinal, other.ordinal};
  if (enables && !state().peers.insert(pair).second)
    throw Refusal{cuda::Result::peer_access_already_enabled, {}};
  if (!enables && state().peers.erase(pair) == 0)
    throw Refusal{cuda::Result::peer_access_not_enabled, {}};
  if (enables)
    device.memory.add_peer(other.memory);
  else
    device.memory.remove_peer(other.memory);
}

}  // namespace
}  // namespace gemmery::drop_in

namespace gemmery::driver {

using drop_in::answer;
using drop_in::answer_on_device;
using drop_in::require;
using drop_in::state;
using emulator::device_of;
using emulator::Refusal;

extern "C" {

// The latest version whose runtime is served.
cuda::Result cuDriverGetVersion(int* version) {
  return answer("cuDriverGetVersion", [&] { require(version) = 13000; });
}

// --- devices ------------------------------------------------------------------------------------

cuda::Result cuDeviceGetAttribute(int* value, cuda::DeviceAttribute attribute,
                                  cuda::DeviceOrdinal device) {
  return answer("cuDeviceGetAttribute", [&] {
    require(value) =
        drop_in::attribute_of(device_of(device).info, device, static_cast<int>(attribute));
  });
}

cuda::Result cuDeviceGetUuid_v2(cuda::Uuid* id, cuda::DeviceOrdinal device) {
  return answer("cuDeviceGetUuid", [&] {
    device_of(device);
    require(id) = {};
    std::memcpy(id->bytes, "emulated device", 15);
    id->bytes[15] = static_cast<char>(device);
  });
}

cuda::Result cuDeviceComputeCapability(int* major, int* minor, cuda::DeviceOrdinal device) {
  return answer("cuDeviceComputeCapability", [&] {
    const Target target = device_of(device).info.target;
    require(major) = target.major();
    require(minor) = target.minor();
  });
}

cuda::Result cuDeviceGetPCIBusId(char* text, int length, cuda::DeviceOrdinal device) {
  return answer("cuDeviceGetPCIBusId", [&] {
    const std::string id = drop_in::bus_id(device_of(device).ordinal);
    if (length < 1) throw Refusal{cuda::Result::invalid_value, {}};
    std::snprintf(&require(text), static_cast<std::size_t>(length), "%s", id.c_str());
  });
}

cuda::Result cuDeviceGetByPCIBusId(cuda::DeviceOrdinal* device, const char* text) {
  return answer("cuDeviceGetByPCIBusId", [&] {
    const std::string_view wanted = &require(text);
    for (int ordinal = 0; ordinal < emulator::device_count(); ++ordinal) {
      if (!drop_in::bus_id(ordinal).ends_with(wanted)) continue;
      require(device) = ordinal;
      return;
    }
    throw Refusal{cuda::Result::invalid_value, {}};
  });
}

cuda::Result cuDeviceCanAccessPeer(int* can, cuda::DeviceOrdinal device, cuda::DeviceOrdinal peer) {
  return answer("cuDeviceCanAccessPeer", [&] {
    require(can) = device_of(device).ordinal != device_of(peer).ordinal ? 1 : 0;
  });
}

cuda::Result cuDeviceGetP2PAttribute(int* value, int attribute, cuda::DeviceOrdinal device,
                                     cuda::DeviceOrdinal peer) {
  return answer("cuDeviceGetP2PAttribute", [&] {
    constexpr int access_supported = 2, native_atomics = 3;
    const bool is_pair = device_of(device).ordinal != device_of(peer).ordinal;
    require(value) =
        is_pair && (attribute == access_supported || attribute == native_atomics) ? 1 : 0;
  });
}

// --- primary contexts ---------------------------------------------------------------------------

cuda::Result cuDevicePrimaryCtxRelease_v2(cuda::DeviceOrdinal device) {
  return answer("cuDevicePrimaryCtxRelease", [&] { device_of(device); });
}

cuda::Result cuDevicePrimaryCtxReset_v2(cuda::DeviceOrdinal device) {
  return answer("cuDevicePrimaryCtxReset", [&] { drop_in::forget_failure(device_of(device)); });
}

cuda::Result cuDevicePrimaryCtxSetFlags_v2(cuda::DeviceOrdinal device, unsigned flags) {
  return answer("cuDevicePrimaryCtxSetFlags", [&] {
    const int ordinal = device_of(device).ordinal;
    const std::lock_guard lock(state().mutex);
    state().context_flags[ordinal] = flags;
  });
}

cuda::Result cuDevicePrimaryCtxGetState(cuda::DeviceOrdinal device, unsigned* flags,
                                        int* is_active) {
  return answer("cuDevicePrimaryCtxGetState", [&] {
    const int ordinal = device_of(device).ordinal;
    const std::lock_guard lock(state().mutex);
    require(flags) = state().context_flags[ordinal];
    require(is_active) = 1;
  });
}

// --- contexts -----------------------------------------------------------------------------------

cuda::Result cuCtxCreate_v2(cuda::Context* context, unsigned, cuda::DeviceOrdinal device) {
  return answer("cuCtxCreate", [&] { drop_in::create_context(context, device); });
}

cuda::Result cuCtxCreate_v4(cuda::Context* context, void*, unsigned, cuda::DeviceOrdinal device) {
  return answer("cuCtxCreate", [&] { drop_in::create_context(context, device); });
}

cuda::Result cuCtxDestroy_v2(cuda::Context context) {
  return answer("cuCtxDestroy", [&] {
    if (drop_in::is_primary(require(context))) throw Refusal{cuda::Result::invalid_context, {}};
    if (emulator::current_context() == context) emulator::calls::cuCtxPopCurrent(&context);
    drop_in::forget_failure(*context->device);
    delete context;
  });
}

cuda::Result cuCtxGetDevice(cuda::DeviceOrdinal* device) {
  return answer("cuCtxGetDevice", [&] { require(device) = emulator::current_device().ordinal; });
}

cuda::Result cuCtxGetFlags(unsigned* flags) {
  return answer("cuCtxGetFlags", [&] {
    const int ordinal = emulator::current_device().ordinal;
    const std::lock_guard lock(state().mutex);
    require(flags) = state().context_flags[ordinal];
  });
}

cuda::Result cuCtxGetId(cuda::Context context, unsigned long long* id) {
  return answer("cuCtxGetId", [&] {
    if (context == nullptr) context = emulator::current_context();
    require(id) = reinterpret_cast<std::uintptr_t>(&require(context));
  });
}

cuda::Result cuCtxGetApiVersion(cuda::Context, unsigned* version) {
  return answer("cuCtxGetApiVersion", [&] { require(version) = cuda::api_version; });
}

cuda::Result cuCtxSynchronize() {
  return answer_on_device("cuCtxSynchronize", [] {
    emulator::refuse_in_capture("cuCtxSynchronize");
    const std::lock_guard work_of_other_threads(emulator::current_device().executing);
  });
}

cuda::Result cuCtxGetLimit(std::size_t* value, int limit) {
  return answer("cuCtxGetLimit", [&] {
    const std::lock_guard lock(state().mutex);
    const auto found = state().limits.find(limit);
    require(value) = found == state().limits.end() ? drop_in::default_limit(limit) : found->second;
  });
}

cuda::Result cuCtxSetLimit(int limit, std::size_t value) {
  return answer_on_device("cuCtxSetLimit", [&] {
    if (limit == drop_in::heap_limit) emulator::current_device().memory.set_heap_bytes(value);
    const std::lock_guard lock(state().mutex);
    state().limits[limit] = value;
  });
}

cuda::Result cuCtxGetCacheConfig(int* config) {
  return answer("cuCtxGetCacheConfig", [&] { require(config) = 0; });
}

cuda::Result cuCtxSetCacheConfig(int) { return cuda::Result::success; }

cuda::Result cuCtxResetPersistingL2Cache() { return cuda::Result::success; }

cuda::Result cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  if (least != nullptr) *least = 0;
  if (greatest != nullptr) *greatest = -5;
  return cuda::Result::success;
}

cuda::Result cuCtxEnablePeerAccess(cuda::Context peer, unsigned) {
  return answer("cuCtxEnablePeerAccess", [&] { drop_in::change_peer(peer, true); });
}

cuda::Result cuCtxDisablePeerAccess(cuda::Context peer) {
  return answer("cuCtxDisablePeerAccess", [&] { drop_in::change_peer(peer, false); });
}

}  // extern "C"
}  // namespace gemmery::driver
