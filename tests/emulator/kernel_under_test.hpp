// SPDX-License-Identifier: Apache-2.0
// A CUDA source compiled to PTX and launched on the machine, without the driver's table, so that a
// test can examine the thrown Fault.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "emulator/instruction/image/build_image.hpp"
#include "emulator/machine/launch.hpp"
#include "emulator/memory/tensor_map.hpp"

namespace gemmery::emulator {

// NVRTC's PTX with source lines. Each option as on a command line.
std::string compile_file_to_ptx(const std::string& path, const std::string& entry,
                                const std::vector<std::string>& options = {});

class KernelUnderTest {
 public:
  KernelUnderTest(const std::string& ptx, const std::string& entry);

  GlobalMemory& memory() { return memory_; }

  // Memory of the device, with values or unwritten.
  template <class T>
  std::uint64_t put(const std::vector<T>& values) {
    const std::uint64_t address = reserve(values.size() * sizeof(T));
    if (!memory_.copy_in(address, values.data(), values.size() * sizeof(T))) std::abort();
    return address;
  }
  std::uint64_t reserve(std::uint64_t bytes) { return memory_.allocate(bytes); }
  template <class T>
  std::vector<T> get(std::uint64_t address, std::size_t count) const {
    std::vector<T> values(count);
    if (!memory_.copy_out(values.data(), address, count * sizeof(T))) std::abort();
    return values;
  }

  LaunchRequest request;  // all but image and parameters

  // Launches with the parameters in order, each a trivially copyable value. Returns the fault, if
  // there is one.
  template <class... Values>
  std::optional<Fault> launch(const Values&... values) {
    std::vector<std::byte> block(image_->parameter_bytes);
    std::size_t index = 0;
    (place(block, index++, &values, sizeof values), ...);
    return launch_block(block);
  }
  const LaunchStatistics& statistics() const { return statistics_; }
  const KernelImage& image() const { return *image_; }

 private:
  void place(std::vector<std::byte>& block, std::size_t index, const void* value,
             std::size_t bytes) const;
  std::optional<Fault> launch_block(const std::vector<std::byte>& block);

  GlobalMemory memory_{std::uint64_t{8} << 30};
  std::shared_ptr<const KernelImage> image_;
  LaunchStatistics statistics_;
};

// A two-dimensional row-major tensor: `columns` contiguous, rows `stride_bytes` apart.
TensorMapBytes map_2d(std::uint64_t address, MapElement element, std::uint64_t rows,
                      std::uint64_t columns, std::uint64_t stride_bytes, std::uint32_t box_rows,
                      std::uint32_t box_columns, std::uint32_t swizzle_bytes);

// Lines of a text file, 1-based, that contain a word not followed by a digit.
std::vector<std::uint32_t> lines_marked(const std::string& path, const std::string& mark);

}  // namespace gemmery::emulator
