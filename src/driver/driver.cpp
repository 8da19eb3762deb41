// SPDX-License-Identifier: Apache-2.0
// Drivers, their devices and contexts, and their state after a fork.
#include "driver/driver.hpp"

#include <pthread.h>

#include <cstdlib>
#include <utility>

#include "core/device_rates.hpp"
#include "core/invariant.hpp"
#include "driver/cuda_driver.hpp"
#include "driver/emulated_driver.hpp"
#include "driver/pool.hpp"

namespace gemmery::driver {
namespace {

// --- fork ---------------------------------------------------------------------------------------

std::atomic<bool> is_used{false};
std::atomic<bool> is_forked{false};

void note_fork_in_child() {
  is_forked.store(is_used.load(std::memory_order_relaxed), std::memory_order_relaxed);
}

// Called before a driver is initialised. Only NVIDIA's driver does not survive a fork.
void note_forks() {
  static const int registered = pthread_atfork(nullptr, nullptr, note_fork_in_child);
  require(registered == 0, "pthread_atfork failed");
  is_used.store(true, std::memory_order_relaxed);
}
void forget_use() { is_used.store(false, std::memory_order_relaxed); }

constexpr std::string_view fork_hint =
    "CUDA does not work in a child that is forked after its first use: start such processes with "
    "exec (Python: \"spawn\"), or fork "
    "before the first use of a GPU";

// --- the drivers of this process ----------------------------------------------------------------

// Created at the first use and never destroyed, so that no destructor runs while the process ends.
struct Registry {
  std::mutex opening;
  std::array<std::atomic<const Driver*>, 3> drivers{};
  std::string cuda_failure;  // why NVIDIA's driver could not be opened; not tried again
};

Registry& registry() {
  static Registry* const instance = new Registry;
  return *instance;
}

std::atomic<const Driver*>& slot(DeviceType type) {
  return registry().drivers[static_cast<std::size_t>(type)];
}

[[noreturn]] void throw_unavailable(DeviceType type, std::string got, std::string cause = {}) {
  throw Error({.kind = ErrorKind::unavailable,
               .operand = to_string(Device{type, 0}),
               .expected = "a driver for devices of this type",
               .got = std::move(got),
               .cause = std::move(cause)});
}

const Driver* open_cuda_once() {
  Registry& all = registry();
  const std::lock_guard lock(all.opening);
  if (const Driver* const driver = slot(DeviceType::cuda).load(std::memory_order_acquire))
    return driver;
  if (!all.cuda_failure.empty()) throw_unavailable(DeviceType::cuda, "none", all.cuda_failure);
  try {
    const Driver* const driver = open_cuda_driver().release();
    slot(DeviceType::cuda).store(driver, std::memory_order_release);
    return driver;
  } catch (const Error& error) {
    all.cuda_failure = error.what();
    throw;
  }
}

// Called only when an emulated device is named; it is never chosen by default.
const Driver* open_emulator_once() {
  const std::lock_guard lock(registry().opening);
  std::atomic<const Driver*>& place = slot(DeviceType::emulated);
  if (const Driver* const driver = place.load(std::memory_order_acquire)) return driver;
  const Driver* const driver = open_emulated_driver().release();
  place.store(driver, std::memory_order_release);
  return driver;
}

// --- facts of a device --------------------------------------------------------------------------

class DeviceReader {
 public:
  DeviceReader(const DriverApi& api, cuda::DeviceOrdinal ordinal) : api_(api), ordinal_(ordinal) {}

  int attribute(cuda::DeviceAttribute which) const {
    int value = 0;
    check(api_, api_.cuDeviceGetAttribute(&value, which, ordinal_), "cuDeviceGetAttribute");
    return value;
  }
  // 0 if the driver does not report the attribute; newer ones may not report clock rates.
  int attribute_or_zero(cuda::DeviceAttribute which) const noexcept {
    int value = 0;
    return api_.cuDeviceGetAttribute(&value, which, ordinal_) == cuda::Result::success ? value : 0;
  }
  std::string name() const {
    std::array<char, 256> text{};
    check(api_, api_.cuDeviceGetName(text.data(), static_cast<int>(text.size()) - 1, ordinal_),
          "cuDeviceGetName");
    return text.data();
  }
  std::int64_t memory_bytes() const {
    std::size_t bytes = 0;
    check(api_, api_.cuDeviceTotalMem(&bytes, ordinal_), "cuDeviceTotalMem");
    return static_cast<std::int64_t>(bytes);
  }
  Target target() const {
    const int major = attribute(cuda::DeviceAttribute::compute_capability_major);
    const int minor = attribute(cuda::DeviceAttribute::compute_capability_minor);
    return {static_cast<std::uint16_t>(10 * major + minor), 0};
  }
  // Two transfers per clock: all supported devices have double-data-rate memory.
  double bandwidth_bytes_per_second() const noexcept {
    const double clock_hz = 1e3 * attribute_or_zero(cuda::DeviceAttribute::memory_clock_rate_khz);
    return 2 * clock_hz * attribute_or_zero(cuda::DeviceAttribute::memory_bus_width_bits) / 8;
  }

 private:
  const DriverApi& api_;
  cuda::DeviceOrdinal ordinal_;
};

DeviceInfo read_info(const DriverApi& api, cuda::DeviceOrdinal ordinal) {
  const DeviceReader read(api, ordinal);
  const Target target = read.target();
  const CudaCoreRates rates = cuda_core_rates(target);
  return {.name = read.name(),
          .target = target,
          .multiprocessors = read.attribute(cuda::DeviceAttribute::multiprocessor_count),
          .shared_bytes_per_block =
              read.attribute(cuda::DeviceAttribute::max_shared_bytes_per_block_optin),
          .shared_bytes_per_multiprocessor =
              read.attribute(cuda::DeviceAttribute::max_shared_bytes_per_multiprocessor),
          .l2_bytes = read.attribute(cuda::DeviceAttribute::l2_cache_bytes),
          .memory_bytes = read.memory_bytes(),
          .clock_ghz = 1e-6 * read.attribute_or_zero(cuda::DeviceAttribute::clock_rate_khz),
          .bandwidth_bytes_per_second = read.bandwidth_bytes_per_second(),
          .fma_f32_per_clock = rates.fma_f32,
          .fma_f64_per_clock = rates.fma_f64,
          .fma_int_per_clock = rates.fma_int};
}

}  // namespace

// --- Driver -------------------------------------------------------------------------------------

Driver::Driver(DeviceType type, const DriverApi& api, std::string path, CodeForm code_form)
    : type_(type), api_(api), path_(std::move(path)), code_form_(code_form) {
  if (type_ == DeviceType::cuda) note_forks();
  const cuda::Result initialised = api_.cuInit(0);
  if (initialised != cuda::Result::success) forget_use();
  if (initialised != cuda::Result::success && initialised != cuda::Result::no_device) {
    const bool may_be_forked = initialised == cuda::Result::not_initialized;
    throw Error({.kind = ErrorKind::unavailable,
                 .operand = "CUDA driver",
                 .expected = "cuInit to succeed",
                 .got = describe(api_, initialised),
                 .hint = may_be_forked ? std::string(fork_hint) : "nvidia-smi may show more",
                 .cause = path_});
  }
  check(api_, api_.cuDriverGetVersion(&version_), "cuDriverGetVersion");
  if (version_ < cuda::api_version) {
    throw_unavailable(type_,
                      path_ + " of version " + std::to_string(version_) + ", 12000 is needed");
  }
  if (initialised == cuda::Result::success)
    check(api_, api_.cuDeviceGetCount(&device_count_), "cuDeviceGetCount");
  if (device_count_ > max_devices) device_count_ = max_devices;
}

GpuDevice& Driver::open(int index) const {
  if (index < 0 || index >= device_count_) {
    throw Error({.kind = ErrorKind::unavailable,
                 .operand = to_string(Device{type_, index}),
                 .expected = "an index below " + std::to_string(device_count_) +
                             ", the number of devices that " + path_ + " offers",
                 .got = std::to_string(index),
                 .hint = type_ == DeviceType::cuda ? "CUDA_VISIBLE_DEVICES hides devices" : ""});
  }
  std::atomic<GpuDevice*>& place = devices_[static_cast<std::size_t>(index)];
  if (GpuDevice* const device = place.load(std::memory_order_acquire)) return *device;
  const std::lock_guard lock(opening_);
  if (GpuDevice* const device = place.load(std::memory_order_acquire)) return *device;
  GpuDevice* const device = new GpuDevice(*this, index);
  place.store(device, std::memory_order_release);
  return *device;
}

const GpuDevice* Driver::find_opened(const DeviceInfo& info) const noexcept {
  for (int index = 0; index < device_count_; ++index) {
    const GpuDevice* const device =
        devices_[static_cast<std::size_t>(index)].load(std::memory_order_acquire);
    if (device != nullptr && device->info() == info) return device;
  }
  return nullptr;
}

const Driver& driver_for(DeviceType type) {
  if (type == DeviceType::cuda) refuse_after_fork();
  if (type != DeviceType::cpu) {
    if (const Driver* const driver = slot(type).load(std::memory_order_acquire)) return *driver;
  }
  if (type == DeviceType::cuda) return *open_cuda_once();
  if (type == DeviceType::emulated) return *open_emulator_once();
  throw_unavailable(type, "none registered");
}

DriverFinding find_driver(DeviceType type) noexcept {
  try {
    return {.driver = &driver_for(type), .reason = {}};
  } catch (const std::exception& error) {
    return {.driver = nullptr, .reason = error.what()};
  }
}

const Driver& register_driver(std::unique_ptr<Driver> driver) {
  const DeviceType type = driver->type();
  const std::lock_guard lock(registry().opening);
  if (type == DeviceType::cpu || slot(type).load(std::memory_order_acquire) != nullptr) {
    throw Error({.kind = ErrorKind::invalid_argument,
                 .operand = "driver",
                 .expected = "a type of device that has no driver yet",
                 .got = to_string(Device{type, 0})});
  }
  const Driver* const lasting = driver.release();
  slot(type).store(lasting, std::memory_order_release);
  return *lasting;
}

// --- GpuDevice ----------------------------------------------------------------------------------

GpuDevice::GpuDevice(const Driver& driver, int index)
    : driver_(driver), device_{driver.type(), index}, pool_(std::make_unique<MemoryPool>(*this)) {
  check(api(), api().cuDeviceGet(&ordinal_, index), "cuDeviceGet");
  info_ = read_info(api(), ordinal_);
  check(api(), api().cuDevicePrimaryCtxRetain(&context_, ordinal_), "cuDevicePrimaryCtxRetain");
}

GpuDevice::~GpuDevice() = default;

Stream GpuDevice::housekeeping_stream() const {
  std::call_once(stream_made_, [this] {
    const ScopedContext current(*this);
    const ScopedRelaxedCapture relaxed(api());
    check(api(), api().cuStreamCreate(&housekeeping_stream_, cuda::stream_non_blocking),
          "cuStreamCreate");
  });
  return Stream::of(housekeeping_stream_, device_);
}

GpuDevice& open_device(Device device) {
  if (device.is_cpu()) {
    throw Error({.kind = ErrorKind::invalid_argument,
                 .operand = "device",
                 .expected = "a GPU",
                 .got = to_string(device)});
  }
  return driver_for(device.type).open(device.index);
}

const GpuDevice* find_opened_device(DeviceType type, const DeviceInfo& info) noexcept {
  const Driver* const driver = slot(type).load(std::memory_order_acquire);
  return driver == nullptr ? nullptr : driver->find_opened(info);
}

void refuse_after_fork() {
  if (!is_forked_after_use()) [[likely]]
    return;
  throw Error({.kind = ErrorKind::unavailable,
               .operand = "CUDA driver",
               .expected = "a process that was not forked after CUDA was used",
               .got = "a fork of one",
               .hint = std::string(fork_hint)});
}

bool is_forked_after_use() noexcept { return is_forked.load(std::memory_order_relaxed); }

// --- contexts and errors ------------------------------------------------------------------------

ScopedContext::ScopedContext(const GpuDevice& device) : api_(device.api()) {
  cuda::Context current = nullptr;
  check(api_, api_.cuCtxGetCurrent(&current), "cuCtxGetCurrent");
  if (current == device.context()) return;
  check(api_, api_.cuCtxPushCurrent(device.context()), "cuCtxPushCurrent");
  is_pushed_ = true;
}

ScopedContext::~ScopedContext() {
  cuda::Context popped = nullptr;
  if (is_pushed_) api_.cuCtxPopCurrent(&popped);
}

std::string describe(const DriverApi& api, cuda::Result result) {
  const char* error_name = nullptr;
  const char* words = nullptr;
  api.cuGetErrorName(result, &error_name);
  api.cuGetErrorString(result, &words);
  if (error_name == nullptr) return "CUDA error " + std::to_string(static_cast<int>(result));
  return std::string(error_name) + " (" + (words == nullptr ? "" : words) + ")";
}

void throw_driver_error(const DriverApi& api, cuda::Result result, std::string_view call) {
  const bool is_memory = result == cuda::Result::out_of_memory;
  throw Error({.kind = is_memory ? ErrorKind::out_of_memory : ErrorKind::launch,
               .operand = std::string(call),
               .got = describe(api, result)});
}

void throw_stream_call_error(const DriverApi& api, cuda::Result result, std::string_view call,
                             Stream stream) {
  if (result != cuda::Result::invalid_handle) throw_driver_error(api, result, call);
  throw Error({.kind = ErrorKind::invalid_argument,
               .operand = "stream",
               .expected = "a stream of " + to_string(stream.device()) + " that is alive",
               .got = describe(api, result),
               .hint = "a handle is a CUstream or cudaStream_t, as a number",
               .cause = std::string(call)});
}

}  // namespace gemmery::driver
