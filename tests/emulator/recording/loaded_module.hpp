// SPDX-License-Identifier: Apache-2.0
// PTX on a device, hardware or emulated, through the driver's function table.
#pragma once

#include <gemmery/buffer.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "driver/code.hpp"
#include "driver/driver.hpp"

namespace gemmery::recording {

// Loads a module once; a kernel is found in it by name. The device's context must be current.
class LoadedModule {
 public:
  LoadedModule(const driver::GpuDevice& device, const std::string& text) : api_(device.api()) {
    driver::check(
        api_,
        api_.cuLibraryLoadData(&library_, text.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0),
        "cuLibraryLoadData");
  }
  ~LoadedModule() { api_.cuLibraryUnload(library_); }
  LoadedModule(const LoadedModule&) = delete;
  LoadedModule& operator=(const LoadedModule&) = delete;

  // Runs kernel(in, out) on `blocks` blocks of `threads` threads and returns `out`, which is
  // poisoned before.
  template <class Word>
  std::vector<Word> run(const std::string& kernel, std::span<const Word> inputs,
                        std::size_t out_words, unsigned blocks, unsigned threads,
                        Stream stream) const {
    const Buffer in(inputs.size_bytes(), stream);
    const Buffer out(out_words * sizeof(Word), stream);
    copy(in.data(), stream.device(), inputs.data(), Device::cpu(), in.bytes(), stream);
    fill(out.data(), 0xa5, out.bytes(), stream);
    void* in_at = in.data();
    void* out_at = out.data();
    void* parameters[] = {&in_at, &out_at};
    const driver::cuda::LaunchConfig config{.grid_x = blocks,
                                            .grid_y = 1,
                                            .grid_z = 1,
                                            .block_x = threads,
                                            .block_y = 1,
                                            .block_z = 1,
                                            .shared_bytes = 0,
                                            .stream = driver::stream_handle(stream),
                                            .attributes = nullptr,
                                            .attribute_count = 0};
    driver::check(api_, api_.cuLaunchKernelEx(&config, function(kernel), parameters, nullptr),
                  kernel);
    std::vector<Word> words(out_words);
    copy(words.data(), Device::cpu(), out.data(), stream.device(), out.bytes(), stream);
    synchronize(stream);
    return words;
  }

 private:
  driver::cuda::Function function(const std::string& name) const {
    driver::cuda::Kernel kernel = nullptr;
    driver::check(api_, api_.cuLibraryGetKernel(&kernel, library_, name.c_str()), name);
    driver::cuda::Function function = nullptr;
    driver::check(api_, api_.cuKernelGetFunction(&function, kernel), name);
    return function;
  }

  const driver::DriverApi& api_;
  driver::cuda::Library library_ = nullptr;
};

}  // namespace gemmery::recording
