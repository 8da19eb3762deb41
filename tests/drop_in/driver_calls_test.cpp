// SPDX-License-Identifier: Apache-2.0
// Compares the functions of our libcuda.so.1 with the toolkit's header, if that is installed.
#define GEMMERY_TYPES_ONLY
#include "drop_in/driver/driver_calls.hpp"

#include <gtest/gtest.h>

#include "tests/drop_in/same_call.hpp"

// Our function types, before cuda.h turns the names into macros.
namespace gemmery::driver {
namespace {
#define GEMMERY_NAME_TYPE(name, parameters) \
  [[maybe_unused]] typedef cuda::Result(*ours_##name) parameters;
GEMMERY_DROP_IN_DRIVER_CALLS(GEMMERY_NAME_TYPE)
#undef GEMMERY_NAME_TYPE
}  // namespace
}  // namespace gemmery::driver

#if __has_include(<cuda.h>)
#define __CUDA_API_VERSION_INTERNAL  // declares every version of a function, under its own name
#include <cuda.h>
#include <cudaProfiler.h>
#endif

namespace gemmery::driver {
namespace {

#ifdef CUDA_VERSION

TEST(DropInDriver, every_function_is_called_as_the_toolkit_declares_it) {
#define GEMMERY_COMPARE(name, parameters) \
  EXPECT_TRUE((is_same_call<ours_##name, decltype(&::name)>::value)) << #name;
  GEMMERY_DROP_IN_DRIVER_CALLS(GEMMERY_COMPARE)
#undef GEMMERY_COMPARE
}

#define GEMMERY_SAME_FIELD(ours, field, theirs, their_field)                 \
  EXPECT_EQ(offsetof(ours, field), offsetof(theirs, their_field)) << #field; \
  EXPECT_EQ(sizeof(ours::field), sizeof(theirs::their_field)) << #field

TEST(DropInDriver, structures_have_the_layout_of_the_toolkit) {
  EXPECT_EQ(sizeof(cuda::Copy2D), sizeof(CUDA_MEMCPY2D));
  GEMMERY_SAME_FIELD(cuda::Copy2D, from_pitch, CUDA_MEMCPY2D, srcPitch);
  GEMMERY_SAME_FIELD(cuda::Copy2D, to_device, CUDA_MEMCPY2D, dstDevice);
  GEMMERY_SAME_FIELD(cuda::Copy2D, height, CUDA_MEMCPY2D, Height);
  EXPECT_EQ(sizeof(cuda::Copy3D), sizeof(CUDA_MEMCPY3D));
  GEMMERY_SAME_FIELD(cuda::Copy3D, from_device, CUDA_MEMCPY3D, srcDevice);
  GEMMERY_SAME_FIELD(cuda::Copy3D, from_height, CUDA_MEMCPY3D, srcHeight);
  GEMMERY_SAME_FIELD(cuda::Copy3D, to_device, CUDA_MEMCPY3D, dstDevice);
  GEMMERY_SAME_FIELD(cuda::Copy3D, depth, CUDA_MEMCPY3D, Depth);
  EXPECT_EQ(sizeof(cuda::Fill2D), sizeof(CUDA_MEMSET_NODE_PARAMS));
  GEMMERY_SAME_FIELD(cuda::Fill2D, element_bytes, CUDA_MEMSET_NODE_PARAMS, elementSize);
  GEMMERY_SAME_FIELD(cuda::Fill2D, height, CUDA_MEMSET_NODE_PARAMS, height);
  EXPECT_EQ(sizeof(cuda::KernelNodeParams), sizeof(CUDA_KERNEL_NODE_PARAMS_v2));
  GEMMERY_SAME_FIELD(cuda::KernelNodeParams, shared_bytes, CUDA_KERNEL_NODE_PARAMS_v2,
                     sharedMemBytes);
  GEMMERY_SAME_FIELD(cuda::KernelNodeParams, kernel, CUDA_KERNEL_NODE_PARAMS_v2, kern);
  EXPECT_EQ(sizeof(cuda::HostNodeParams), sizeof(CUDA_HOST_NODE_PARAMS));
  EXPECT_EQ(sizeof(cuda::AllocationNodeParams), sizeof(CUDA_MEM_ALLOC_NODE_PARAMS_v1));
  GEMMERY_SAME_FIELD(cuda::AllocationNodeParams, pointer, CUDA_MEM_ALLOC_NODE_PARAMS_v1, dptr);
  EXPECT_EQ(sizeof(cuda::MemAccess), sizeof(CUmemAccessDesc));
  EXPECT_EQ(sizeof(cuda::MemPhysicalProps), sizeof(CUmemAllocationProp));
  EXPECT_EQ(sizeof(cuda::Uuid), sizeof(CUuuid));
}

#endif

}  // namespace
}  // namespace gemmery::driver
