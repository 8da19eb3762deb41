// SPDX-License-Identifier: Apache-2.0
// One call of cuLaunchKernelEx.
#include "driver/launch.hpp"

#include <fmt/format.h>

namespace gemmery::driver {
namespace {

// Only attributes that differ from the default, since each costs time in the driver.
unsigned list_attributes(const LaunchShape& shape,
                         std::array<cuda::LaunchAttribute, 2>& attributes) noexcept {
  unsigned count = 0;
  if (shape.cluster != std::array<std::uint32_t, 3>{1, 1, 1}) {
    cuda::LaunchAttribute& attribute = attributes[count++];
    attribute = {};
    attribute.id = cuda::LaunchAttributeId::cluster_dimension;
    attribute.value.cluster_dimension = {shape.cluster[0], shape.cluster[1], shape.cluster[2]};
  }
  if (shape.is_programmatic) {
    cuda::LaunchAttribute& attribute = attributes[count++];
    attribute = {};
    attribute.id = cuda::LaunchAttributeId::programmatic_stream_serialization;
    attribute.value.programmatic_stream_serialization_allowed = 1;
  }
  return count;
}

}  // namespace

cuda::Result launch(const DriverApi& api, cuda::Function function, const LaunchShape& shape,
                    Stream stream, void* parameters) noexcept {
  void* pointers[] = {parameters};
  return launch_with_parameters(api, function, shape, stream, pointers);
}

cuda::Result launch_with_parameters(const DriverApi& api, cuda::Function function,
                                    const LaunchShape& shape, Stream stream,
                                    void** parameters) noexcept {
  std::array<cuda::LaunchAttribute, 2> attributes;
  const unsigned attribute_count = list_attributes(shape, attributes);
  const cuda::LaunchConfig config{.grid_x = shape.grid[0],
                                  .grid_y = shape.grid[1],
                                  .grid_z = shape.grid[2],
                                  .block_x = shape.block[0],
                                  .block_y = shape.block[1],
                                  .block_z = shape.block[2],
                                  .shared_bytes = shape.shared_bytes,
                                  .stream = stream_handle(stream),
                                  .attributes = attribute_count == 0 ? nullptr : attributes.data(),
                                  .attribute_count = attribute_count};
  return api.cuLaunchKernelEx(&config, function, parameters, nullptr);
}

std::string to_string(const LaunchShape& shape) {
  return fmt::format("grid {}x{}x{}, block {}x{}x{}, cluster {}x{}x{}, {} shared bytes",
                     shape.grid[0], shape.grid[1], shape.grid[2], shape.block[0], shape.block[1],
                     shape.block[2], shape.cluster[0], shape.cluster[1], shape.cluster[2],
                     shape.shared_bytes);
}

}  // namespace gemmery::driver
