// SPDX-License-Identifier: Apache-2.0
#include "drop_in/runtime/registry.hpp"

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace gemmery::drop_in::runtime {
namespace {

struct Binary {
  const void* code = nullptr;
  cuda::Library library = nullptr;
  struct ManagedVariable {
    void** pointer;  // where the program looks for its address
    std::string name;
  };
  std::vector<ManagedVariable> managed;
};

struct RegisteredKernel {
  Binary* binary = nullptr;
  std::string name;
  cuda::Kernel kernel = nullptr;
};

struct RegisteredVariable {
  Binary* binary = nullptr;
  std::string name;
  std::size_t bytes = 0;
};

struct Registry {
  std::mutex mutex;
  std::set<Binary*> binaries;
  std::map<const void*, RegisteredKernel> kernels;      // by function of the host
  std::map<const void*, RegisteredVariable> variables;  // by variable of the host
  std::set<const void*> given;                          // handles of kernels
};

// Never destroyed: programs unregister while they exit.
Registry& registry() {
  static auto* const made = new Registry;
  return *made;
}

// Lets this thread load code while a stream is captured, which the driver refuses otherwise.
class LoadingScope {
 public:
  LoadingScope() noexcept { driver::cuThreadExchangeStreamCaptureMode(&mode_); }
  LoadingScope(const LoadingScope&) = delete;
  LoadingScope& operator=(const LoadingScope&) = delete;
  ~LoadingScope() { driver::cuThreadExchangeStreamCaptureMode(&mode_); }

 private:
  cuda::CaptureMode mode_ = cuda::CaptureMode::relaxed;  // then that of the thread
};

cuda::Result function_of(cuda::Kernel kernel, cuda::Function& found) noexcept {
  const LoadingScope scope;
  return driver::cuKernelGetFunction(&found, kernel);
}

// The caller holds the registry's mutex.
cuda::Result load(Binary& binary) noexcept {
  if (binary.library != nullptr) return cuda::Result::success;
  const LoadingScope scope;
  const cuda::Result entered = enter();
  if (entered != cuda::Result::success) return entered;
  return driver::cuLibraryLoadData(&binary.library, binary.code, nullptr, nullptr, 0, nullptr,
                                   nullptr, 0);
}

cuda::Result resolve(RegisteredKernel& registered) noexcept {
  if (registered.kernel != nullptr) return cuda::Result::success;
  const cuda::Result loaded = load(*registered.binary);
  if (loaded != cuda::Result::success) return loaded;
  return driver::cuLibraryGetKernel(&registered.kernel, registered.binary->library,
                                    registered.name.c_str());
}

// Tells the program where its managed variables are.
void place_managed_variables(Binary& binary) {
  if (binary.managed.empty() || load(binary) != cuda::Result::success) return;
  for (const Binary::ManagedVariable& variable : binary.managed) {
    cuda::DevicePointer address = 0;
    if (driver::cuLibraryGetManaged(&address, nullptr, binary.library, variable.name.c_str()) ==
        cuda::Result::success)
      *variable.pointer = host_pointer(address);
  }
}

template <class Rows>
void forget(Rows& rows, const Binary* binary) {
  std::erase_if(rows, [binary](const auto& row) { return row.second.binary == binary; });
}

}  // namespace

cuda::Result find_kernel(const void* function, cuda::Kernel& kernel) noexcept {
  const std::lock_guard lock(registry().mutex);
  const auto found = registry().kernels.find(function);
  if (found == registry().kernels.end()) {
    kernel = static_cast<cuda::Kernel>(const_cast<void*>(function));
    const bool is_handle = registry().given.contains(function);
    return is_handle ? cuda::Result::success
                     : static_cast<cuda::Result>(Error::invalid_device_function);
  }
  const cuda::Result result = resolve(found->second);
  kernel = found->second.kernel;
  return result;
}

cuda::Result find_function(const void* function, cuda::Function& found) noexcept {
  cuda::Kernel kernel = nullptr;
  const cuda::Result result = find_kernel(function, kernel);
  return result != cuda::Result::success ? result : function_of(kernel, found);
}

void* stand_in_of(cuda::Function function) noexcept {
  const std::lock_guard lock(registry().mutex);
  for (const auto& [stand_in, registered] : registry().kernels) {
    cuda::Function candidate = nullptr;
    if (registered.kernel != nullptr &&
        function_of(registered.kernel, candidate) == cuda::Result::success &&
        candidate == function)
      return const_cast<void*>(stand_in);
  }
  return function;
}

void note_given(cuda::Kernel kernel) noexcept {
  const std::lock_guard lock(registry().mutex);
  registry().given.insert(kernel);
}

cuda::Result find_symbol(const void* symbol, cuda::DevicePointer& address,
                         std::size_t& bytes) noexcept {
  const std::lock_guard lock(registry().mutex);
  const auto found = registry().variables.find(symbol);
  if (found == registry().variables.end()) return static_cast<cuda::Result>(Error::invalid_symbol);
  const cuda::Result loaded = load(*found->second.binary);
  if (loaded != cuda::Result::success) return loaded;
  bytes = found->second.bytes;
  return driver::cuLibraryGetGlobal(&address, nullptr, found->second.binary->library,
                                    found->second.name.c_str());
}

extern "C" {

#define GEMMERY_CALLED_BY_NVCC __attribute__((visibility("default")))

GEMMERY_CALLED_BY_NVCC void** __cudaRegisterFatBinary(void* code);
void** __cudaRegisterFatBinary(void* code) {
  auto* const binary = new Binary{.code = code, .managed = {}};
  const std::lock_guard lock(registry().mutex);
  registry().binaries.insert(binary);
  return reinterpret_cast<void**>(binary);
}

GEMMERY_CALLED_BY_NVCC void __cudaRegisterFatBinaryEnd(void** handle);
void __cudaRegisterFatBinaryEnd(void**) {}

GEMMERY_CALLED_BY_NVCC void __cudaUnregisterFatBinary(void** handle);
void __cudaUnregisterFatBinary(void** handle) {
  auto* const binary = reinterpret_cast<Binary*>(handle);
  const std::lock_guard lock(registry().mutex);
  if (registry().binaries.erase(binary) == 0) return;
  forget(registry().kernels, binary);
  forget(registry().variables, binary);
  if (binary->library != nullptr) driver::cuLibraryUnload(binary->library);
  delete binary;
}

GEMMERY_CALLED_BY_NVCC void __cudaRegisterFunction(void** handle, const char* stand_in, char*,
                                                   const char* name, int, void*, void*, void*,
                                                   void*, int*);
void __cudaRegisterFunction(void** handle, const char* stand_in, char*, const char* name, int,
                            void*, void*, void*, void*, int*) {
  const std::lock_guard lock(registry().mutex);
  registry().kernels[stand_in] = {reinterpret_cast<Binary*>(handle), name};
}

GEMMERY_CALLED_BY_NVCC void __cudaRegisterVar(void** handle, char* stand_in, char*,
                                              const char* name, int, std::size_t bytes, int, int);
void __cudaRegisterVar(void** handle, char* stand_in, char*, const char* name, int,
                       std::size_t bytes, int, int) {
  const std::lock_guard lock(registry().mutex);
  registry().variables[stand_in] = {reinterpret_cast<Binary*>(handle), name, bytes};
}

GEMMERY_CALLED_BY_NVCC void __cudaRegisterManagedVar(void** handle, void** pointer, char*,
                                                     const char* name, int, std::size_t bytes, int,
                                                     int);
void __cudaRegisterManagedVar(void** handle, void** pointer, char*, const char* name, int,
                              std::size_t bytes, int, int) {
  auto* const binary = reinterpret_cast<Binary*>(handle);
  const std::lock_guard lock(registry().mutex);
  binary->managed.push_back({pointer, name});
  registry().variables[pointer] = {binary, name, bytes};
}

GEMMERY_CALLED_BY_NVCC char __cudaInitModule(void** handle);
char __cudaInitModule(void** handle) {
  const std::lock_guard lock(registry().mutex);
  place_managed_variables(*reinterpret_cast<Binary*>(handle));
  return 1;
}

GEMMERY_CALLED_BY_NVCC void __cudaRegisterHostVar(void** handle, const char* name, char* stand_in,
                                                  std::size_t bytes);
void __cudaRegisterHostVar(void**, const char*, char*, std::size_t) {}

GEMMERY_CALLED_BY_NVCC void __cudaRegisterUnifiedTable(void** handle, void* table);
void __cudaRegisterUnifiedTable(void**, void*) {}

}  // extern "C"
}  // namespace gemmery::drop_in::runtime
