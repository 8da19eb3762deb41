// SPDX-License-Identifier: Apache-2.0
// Loads code and prepares entries.
#include "driver/code.hpp"

#include <pthread.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <tuple>

#include <xxhash.h>

#include "core/invariant.hpp"

namespace gemmery::driver {
namespace {

// --- the end of the process ---------------------------------------------------------------------

std::atomic<bool> is_ending{false};

// Detects the end of the process: static objects of the user that are destroyed late must not cause
// calls to a driver that has shut down.
void watch_for_the_end() {
  static const int registered =
      std::atexit([] { is_ending.store(true, std::memory_order_relaxed); });
  static_cast<void>(registered);
}

std::atomic<bool> is_child{false};

bool may_unload() noexcept {
  return !is_ending.load(std::memory_order_relaxed) && !is_child.load(std::memory_order_relaxed);
}

// --- what is loaded -----------------------------------------------------------------------------

using CodeKey = std::tuple<const Driver*, std::uint64_t, std::uint64_t, std::size_t, std::string>;

// Loaded code, including code that was launched and therefore stays. Never destroyed.
struct Shelf {
  std::mutex mutex;
  std::map<CodeKey, std::weak_ptr<const LoadedCode>> loaded;
  std::map<CodeKey, std::unique_ptr<const LoadedCode>> kept;
};

Shelf& shelf() {
  static Shelf* const instance = new Shelf;
  return *instance;
}

// Holds the shelf's lock during fork, so that it is consistent in the child.
void lock_shelf_during_fork() {
  static const int registered =
      pthread_atfork([] { shelf().mutex.lock(); }, [] { shelf().mutex.unlock(); },
                     [] {
                       shelf().mutex.unlock();
                       is_child.store(true, std::memory_order_relaxed);
                     });
  require(registered == 0, "pthread_atfork failed");
}

// --- what a driver says of it -------------------------------------------------------------------

bool blames_code(cuda::Result result) {
  switch (result) {
    case cuda::Result::invalid_value:
    case cuda::Result::invalid_image:
    case cuda::Result::no_binary_for_gpu:
    case cuda::Result::invalid_ptx:
    case cuda::Result::unsupported_ptx_version:
    case cuda::Result::invalid_source:
    case cuda::Result::not_found:
      return true;
    default:
      return false;
  }
}

void check_code(const DriverApi& api, cuda::Result result, const std::string& call) {
  if (blames_code(result)) {
    throw CodeRefused({.kind = ErrorKind::launch, .operand = call, .got = describe(api, result)});
  }
  check(api, result, call);
}

}  // namespace

std::shared_ptr<const LoadedCode> LoadedCode::load(const Driver& driver,
                                                   std::span<const std::byte> code,
                                                   const std::string& entry) {
  watch_for_the_end();
  lock_shelf_during_fork();
  const XXH128_hash_t hash = XXH3_128bits(code.data(), code.size());
  CodeKey key{&driver, hash.low64, hash.high64, code.size(), entry};
  Shelf& all = shelf();
  const std::lock_guard lock(all.mutex);
  if (const auto known = all.loaded.find(key); known != all.loaded.end()) {
    if (std::shared_ptr<const LoadedCode> alive = known->second.lock()) return alive;
  }
  std::unique_ptr<const LoadedCode> made;
  if (const auto kept = all.kept.find(key); kept != all.kept.end()) {
    made = std::move(kept->second);
    all.kept.erase(kept);
  } else {
    made = std::make_unique<const LoadedCode>(driver, code, entry);
  }
  // The last owner returns launched code to the shelf and unloads other code.
  std::shared_ptr<const LoadedCode> shared(made.release(), [key](const LoadedCode* last) {
    std::unique_ptr<const LoadedCode> own(last);
    Shelf& shelf_of_all = shelf();
    const std::lock_guard guard(shelf_of_all.mutex);
    const auto entry_of_key = shelf_of_all.loaded.find(key);
    const bool is_replaced =
        entry_of_key != shelf_of_all.loaded.end() && !entry_of_key->second.expired();
    if (!is_replaced && entry_of_key != shelf_of_all.loaded.end())
      shelf_of_all.loaded.erase(entry_of_key);
    if (own->is_launched_.load(std::memory_order_relaxed)) {
      shelf_of_all.kept.insert_or_assign(key, std::move(own));
    } else if (may_unload()) {
      own->unload();
    }
  });
  all.loaded[key] = shared;
  return shared;
}

LoadedCode::LoadedCode(const Driver& driver, std::span<const std::byte> code,
                       const std::string& entry)
    : driver_(driver), entry_(entry) {
  const DriverApi& api = driver_.api();
  const ScopedRelaxedCapture relaxed(api);
  check_code(
      api, api.cuLibraryLoadData(&library_, code.data(), nullptr, nullptr, 0, nullptr, nullptr, 0),
      "cuLibraryLoadData");
  try {
    check_code(api, api.cuLibraryGetKernel(&kernel_, library_, entry.c_str()),
               "cuLibraryGetKernel of " + entry);
  } catch (...) {
    api.cuLibraryUnload(library_);
    throw;
  }
}

void LoadedCode::unload() const noexcept {
  const ScopedRelaxedCapture relaxed(driver_.api());
  driver_.api().cuLibraryUnload(library_);
}

cuda::Function LoadedCode::prepare(const GpuDevice& device, int max_dynamic_shared_bytes) const {
  if (max_dynamic_shared_bytes > device.info().shared_bytes_per_block) {
    throw Error({.kind = ErrorKind::unsupported,
                 .operand = entry_,
                 .expected = "at most " + std::to_string(device.info().shared_bytes_per_block) +
                             " bytes of shared memory on " + to_string(device.device()),
                 .got = std::to_string(max_dynamic_shared_bytes)});
  }
  const DriverApi& api = device.api();
  const ScopedContext current(device);
  const ScopedRelaxedCapture relaxed(api);
  check(api,
        api.cuKernelSetAttribute(cuda::FunctionAttribute::max_dynamic_shared_bytes,
                                 max_dynamic_shared_bytes, kernel_, device.ordinal()),
        "cuKernelSetAttribute of " + entry_);
  cuda::Function function = nullptr;
  check(api, api.cuKernelGetFunction(&function, kernel_), "cuKernelGetFunction of " + entry_);
  return function;
}

cuda::Function LoadedCode::prepare_other(const GpuDevice& device, const std::string& entry) const {
  const DriverApi& api = device.api();
  const ScopedContext current(device);
  const ScopedRelaxedCapture relaxed(api);
  cuda::Kernel kernel = nullptr;
  check_code(api, api.cuLibraryGetKernel(&kernel, library_, entry.c_str()),
             "cuLibraryGetKernel of " + entry);
  cuda::Function function = nullptr;
  check(api, api.cuKernelGetFunction(&function, kernel), "cuKernelGetFunction of " + entry);
  return function;
}

}  // namespace gemmery::driver
