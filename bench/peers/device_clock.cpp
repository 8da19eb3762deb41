// SPDX-License-Identifier: Apache-2.0
// Driver and NVML by dlopen; declared from their manuals.
#include "device_clock.hpp"

#include <dlfcn.h>

#include <array>
#include <stdexcept>

namespace gemmery::peers {

void* open_library(std::initializer_list<const char*> names) {
  std::string tried;
  for (const char* const name : names) {
    if (void* const library = dlopen(name, RTLD_NOW | RTLD_LOCAL)) return library;
    tried += std::string(tried.empty() ? "" : ", ") + name;
  }
  throw std::runtime_error("not found: " + tried);
}

void* find_symbol(void* library, const char* name) {
  if (void* const symbol = dlsym(library, name)) return symbol;
  throw std::runtime_error(std::string("no function ") + name);
}

namespace {

template <class Function>
void resolve(void* library, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(find_symbol(library, name));
}

void check(int result, const char* call) {
  if (result != 0)
    throw std::runtime_error(std::string(call) + " failed with " + std::to_string(result));
}

constexpr int capture_mode_thread_local = 1;

}  // namespace

struct DeviceClock::Api {
  int (*init)(unsigned);
  int (*retain)(void**, int);
  int (*set_current)(void*);
  int (*event_create)(void**, unsigned);
  int (*event_record)(void*, void*);
  int (*event_synchronize)(void*);
  int (*event_elapsed)(float*, void*, void*);
  int (*begin_capture)(void*, int);
  int (*end_capture)(void*, void**);
  int (*instantiate)(void**, void*, unsigned long long);
  int (*launch)(void*, void*);
  int (*destroy_exec)(void*);
  int (*destroy_graph)(void*);
  int (*pci_bus_id)(char*, int, int);

  Api() {
    void* const driver = open_library({"libcuda.so.1"});
    resolve(driver, "cuInit", init);
    resolve(driver, "cuDevicePrimaryCtxRetain", retain);
    resolve(driver, "cuCtxSetCurrent", set_current);
    resolve(driver, "cuEventCreate", event_create);
    resolve(driver, "cuEventRecord", event_record);
    resolve(driver, "cuEventSynchronize", event_synchronize);
    resolve(driver, "cuEventElapsedTime", event_elapsed);
    resolve(driver, "cuStreamBeginCapture_v2", begin_capture);
    resolve(driver, "cuStreamEndCapture", end_capture);
    resolve(driver, "cuGraphInstantiateWithFlags", instantiate);
    resolve(driver, "cuGraphLaunch", launch);
    resolve(driver, "cuGraphExecDestroy", destroy_exec);
    resolve(driver, "cuGraphDestroy", destroy_graph);
    resolve(driver, "cuDeviceGetPCIBusId", pci_bus_id);
    check(init(0), "cuInit");
  }

  static const Api& get() {
    static const Api api;
    return api;
  }
};

DeviceClock::DeviceClock(int index) : api_(&Api::get()) {
  void* context = nullptr;
  check(api_->retain(&context, index), "cuDevicePrimaryCtxRetain");
  check(api_->set_current(context), "cuCtxSetCurrent");
  check(api_->event_create(&start_, 0), "cuEventCreate");
  check(api_->event_create(&end_, 0), "cuEventCreate");
}

DeviceClock::Recording::Recording(const DeviceClock& clock, void* stream,
                                  const std::function<void()>& work)
    : clock_(clock), stream_(stream), work_(work) {
  void* graph = nullptr;
  check(clock_.api_->begin_capture(stream_, capture_mode_thread_local), "cuStreamBeginCapture");
  try {
    work_();
  } catch (...) {
    clock_.api_->end_capture(stream_, &graph);
    throw;
  }
  if (clock_.api_->end_capture(stream_, &graph) != 0) return;
  if (clock_.api_->instantiate(&exec_, graph, 0) != 0) exec_ = nullptr;
  clock_.api_->destroy_graph(graph);
}

DeviceClock::Recording::~Recording() {
  if (exec_ != nullptr) clock_.api_->destroy_exec(exec_);
}

double DeviceClock::Recording::elapsed_us(const std::function<void()>& meanwhile) const {
  const Api& api = *clock_.api_;
  check(api.event_record(clock_.start_, stream_), "cuEventRecord");
  if (exec_ != nullptr) {
    check(api.launch(exec_, stream_), "cuGraphLaunch");
  } else {
    work_();
  }
  check(api.event_record(clock_.end_, stream_), "cuEventRecord");
  if (meanwhile) meanwhile();
  check(api.event_synchronize(clock_.end_), "cuEventSynchronize");
  float milliseconds = 0;
  check(api.event_elapsed(&milliseconds, clock_.start_, clock_.end_), "cuEventElapsedTime");
  return 1000.0 * static_cast<double>(milliseconds);
}

namespace {

// NVML's handle of the board with this PCI address.
class Board {
 public:
  explicit Board(const char* pci_bus_id) {
    void* const nvml = open_library({"libnvidia-ml.so.1"});
    int (*init)() = nullptr;
    int (*find)(const char*, void**) = nullptr;
    resolve(nvml, "nvmlInit_v2", init);
    resolve(nvml, "nvmlDeviceGetHandleByPciBusId_v2", find);
    resolve(nvml, "nvmlDeviceGetClockInfo", clock_);
    resolve(nvml, "nvmlDeviceGetPowerUsage", power_);
    resolve(nvml, "nvmlDeviceGetTemperature", temperature_);
    check(init(), "nvmlInit");
    check(find(pci_bus_id, &handle_), "nvmlDeviceGetHandleByPciBusId");
  }

  BoardState read() const {
    constexpr int sm_clock = 1;
    constexpr int gpu_sensor = 0;
    BoardState state;
    unsigned milliwatts = 0;
    clock_(handle_, sm_clock, &state.sm_clock_mhz);
    if (power_(handle_, &milliwatts) == 0) state.power_w = milliwatts / 1000.0;
    temperature_(handle_, gpu_sensor, &state.temperature_c);
    return state;
  }

 private:
  int (*clock_)(void*, int, unsigned*) = nullptr;
  int (*power_)(void*, unsigned*) = nullptr;
  int (*temperature_)(void*, int, unsigned*) = nullptr;
  void* handle_ = nullptr;
};

}  // namespace

BoardState read_board(int cuda_index) {
  try {
    static const Board board = [cuda_index] {
      std::array<char, 32> id{};
      int (*pci_bus_id)(char*, int, int) = nullptr;
      resolve(open_library({"libcuda.so.1"}), "cuDeviceGetPCIBusId", pci_bus_id);
      check(pci_bus_id(id.data(), static_cast<int>(id.size()), cuda_index), "cuDeviceGetPCIBusId");
      return Board(id.data());
    }();
    return board.read();
  } catch (const std::runtime_error&) {
    return {};
  }
}

}  // namespace gemmery::peers
