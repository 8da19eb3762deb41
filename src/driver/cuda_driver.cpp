// SPDX-License-Identifier: Apache-2.0
// Resolves the function table from libcuda.so.1.
#include "driver/cuda_driver.hpp"

#include <array>
#include <utility>

#include "platform/library.hpp"

namespace gemmery::driver {
namespace {

using GetProcAddress = cuda::Result(const char* symbol, void** function, int version,
                                    std::uint64_t flags, int* status);

[[noreturn]] void throw_unavailable(std::string expected, std::string got, std::string hint = {}) {
  throw Error({.kind = ErrorKind::unavailable,
               .operand = "CUDA driver",
               .expected = std::move(expected),
               .got = std::move(got),
               .hint = std::move(hint)});
}

platform::SharedLibrary open_library() {
  const std::array<std::string, 1> candidates{"libcuda.so.1"};
  platform::LibrarySearch search = platform::LibrarySearch::open_first(candidates);
  if (!search.library) {
    throw_unavailable("a driver", "none: " + search.report(),
                      "install NVIDIA's driver, or use the CPU");
  }
  return *std::move(search.library);
}

// Resolves names without version suffix; the driver selects the variant by version and flags.
class Resolver {
 public:
  explicit Resolver(const platform::SharedLibrary& library)
      : library_(library), get_(library.find_function<GetProcAddress>("cuGetProcAddress_v2")) {
    if (get_ == nullptr)
      throw_unavailable("a driver for CUDA 12.0 or later",
                        library.path() + " without cuGetProcAddress_v2");
  }

  template <class Function>
  void resolve(Function*& function, const char* name) const {
    void* address = nullptr;
    int status = 0;
    const cuda::Result result =
        get_(name, &address, cuda::api_version, cuda::proc_address_legacy_stream, &status);
    if (result != cuda::Result::success || address == nullptr) {
      throw_unavailable("a driver for CUDA 12.0 or later", library_.path() + " without " + name);
    }
    function = reinterpret_cast<Function*>(address);
  }

 private:
  const platform::SharedLibrary& library_;
  GetProcAddress* get_;
};

DriverApi resolve_all(const platform::SharedLibrary& library) {
  const Resolver resolver(library);
  DriverApi api;
#define GEMMERY_RESOLVE(name, parameters) resolver.resolve(api.name, #name);
  GEMMERY_CUDA_FUNCTIONS(GEMMERY_RESOLVE)
#undef GEMMERY_RESOLVE
  return api;
}

}  // namespace

std::unique_ptr<Driver> open_cuda_driver() {
  const platform::SharedLibrary library = open_library();
  return std::make_unique<Driver>(DeviceType::cuda, resolve_all(library), library.path());
}

}  // namespace gemmery::driver
