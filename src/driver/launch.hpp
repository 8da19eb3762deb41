// SPDX-License-Identifier: Apache-2.0
// Launches one kernel on a stream.
#pragma once

#include <array>
#include <cstdint>

#include "driver/driver.hpp"

namespace gemmery::driver {

// The grid, block and cluster of a launch, and its shared memory.
struct LaunchShape {
  std::array<std::uint32_t, 3> grid{1, 1, 1};
  std::array<std::uint32_t, 3> block{1, 1, 1};
  std::array<std::uint32_t, 3> cluster{1, 1, 1};
  std::uint32_t shared_bytes = 0;
  bool is_programmatic =
      false;  // may start before the previous kernel has finished (the kernel itself waits for it)

  friend bool operator==(const LaunchShape&, const LaunchShape&) = default;
};

// The context of the function must be current. `parameters` points to the kernel's only parameter,
// a struct. Does not throw, so that the caller can name the launch.
cuda::Result launch(const DriverApi& api, cuda::Function function, const LaunchShape& shape,
                    Stream stream, void* parameters) noexcept;

// The same for a kernel with several parameters; `parameters` is an array of pointers to them.
cuda::Result launch_with_parameters(const DriverApi& api, cuda::Function function,
                                    const LaunchShape& shape, Stream stream,
                                    void** parameters) noexcept;

// "grid 12x1x1, block 256x1x1, cluster 2x1x1, 1024 shared bytes"
std::string to_string(const LaunchShape& shape);

}  // namespace gemmery::driver
