// SPDX-License-Identifier: Apache-2.0
// Compares the functions of our libcudart with the toolkit's header, if that is installed.
#if __has_include(<cuda_runtime_api.h>)
#include <cuda_profiler_api.h>
#include <cuda_runtime_api.h>
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // they are exported all the same
#define GEMMERY_CUDART_VERSION (CUDART_VERSION / 1000)
#else
#define GEMMERY_CUDART_VERSION 13
#endif

#define GEMMERY_TYPES_ONLY
#include "drop_in/runtime/runtime_calls.hpp"

#include <gtest/gtest.h>

#include "tests/drop_in/same_call.hpp"

namespace gemmery::drop_in::runtime {
namespace {

#ifdef CUDART_VERSION

TEST(DropInRuntime, every_function_is_called_as_the_toolkit_declares_it){
#define GEMMERY_COMPARE(name, parameters)                                 \
  {                                                                       \
    typedef Error(*Ours) parameters;                                      \
    EXPECT_TRUE((is_same_call<Ours, decltype(&::name)>::value)) << #name; \
  }
    GEMMERY_RUNTIME_CALLS(GEMMERY_COMPARE)
#undef GEMMERY_COMPARE
}

#define GEMMERY_SAME_FIELD(ours, field, theirs, their_field)                 \
  EXPECT_EQ(offsetof(ours, field), offsetof(theirs, their_field)) << #field; \
  EXPECT_EQ(sizeof(ours::field), sizeof(theirs::their_field)) << #field

TEST(DropInRuntime, structures_have_the_layout_of_the_toolkit) {
  EXPECT_EQ(sizeof(DeviceProperties), sizeof(cudaDeviceProp));
#define GEMMERY_SAME_PROPERTY(field) \
  GEMMERY_SAME_FIELD(DeviceProperties, field, cudaDeviceProp, field)
  GEMMERY_SAME_PROPERTY(uuid);
  GEMMERY_SAME_PROPERTY(totalGlobalMem);
  GEMMERY_SAME_PROPERTY(maxGridSize);
  GEMMERY_SAME_PROPERTY(major);
  GEMMERY_SAME_PROPERTY(multiProcessorCount);
  GEMMERY_SAME_PROPERTY(maxTexture2D);
  GEMMERY_SAME_PROPERTY(maxSurfaceCubemapLayered);
  GEMMERY_SAME_PROPERTY(concurrentKernels);
  GEMMERY_SAME_PROPERTY(memoryBusWidth);
  GEMMERY_SAME_PROPERTY(maxThreadsPerMultiProcessor);
  GEMMERY_SAME_PROPERTY(managedMemory);
  GEMMERY_SAME_PROPERTY(cooperativeLaunch);
  GEMMERY_SAME_PROPERTY(sharedMemPerBlockOptin);
  GEMMERY_SAME_PROPERTY(maxBlocksPerMultiProcessor);
  GEMMERY_SAME_PROPERTY(memoryPoolsSupported);
  GEMMERY_SAME_PROPERTY(clusterLaunch);
  GEMMERY_SAME_PROPERTY(unifiedFunctionPointers);
  EXPECT_EQ(sizeof(PointerAttributes), sizeof(cudaPointerAttributes));
  GEMMERY_SAME_FIELD(PointerAttributes, on_host, cudaPointerAttributes, hostPointer);
  EXPECT_EQ(sizeof(FunctionAttributes), sizeof(cudaFuncAttributes));
  GEMMERY_SAME_FIELD(FunctionAttributes, max_dynamic_shared_bytes, cudaFuncAttributes,
                     maxDynamicSharedSizeBytes);
  GEMMERY_SAME_FIELD(FunctionAttributes, allows_any_cluster, cudaFuncAttributes,
                     nonPortableClusterSizeAllowed);
  EXPECT_EQ(sizeof(CopyParameters), sizeof(cudaMemcpy3DParms));
  GEMMERY_SAME_FIELD(CopyParameters, to, cudaMemcpy3DParms, dstPtr);
  GEMMERY_SAME_FIELD(CopyParameters, extent, cudaMemcpy3DParms, extent);
  EXPECT_EQ(sizeof(PeerCopyParameters), sizeof(cudaMemcpy3DPeerParms));
  GEMMERY_SAME_FIELD(PeerCopyParameters, extent, cudaMemcpy3DPeerParms, extent);
  EXPECT_EQ(sizeof(KernelParameters), sizeof(cudaKernelNodeParams));
  GEMMERY_SAME_FIELD(KernelParameters, parameters, cudaKernelNodeParams, kernelParams);
  EXPECT_EQ(sizeof(LaunchConfig), sizeof(cudaLaunchConfig_t));
  GEMMERY_SAME_FIELD(LaunchConfig, attributes, cudaLaunchConfig_t, attrs);
  EXPECT_EQ(sizeof(cuda::LaunchAttribute), sizeof(cudaLaunchAttribute));
  EXPECT_EQ(sizeof(cuda::Fill2D), sizeof(cudaMemsetParams));
  EXPECT_EQ(sizeof(cuda::HostNodeParams), sizeof(cudaHostNodeParams));
  EXPECT_EQ(sizeof(cuda::AllocationNodeParams), sizeof(cudaMemAllocNodeParams));
  EXPECT_EQ(sizeof(cuda::MemPoolProps), sizeof(cudaMemPoolProps));
  EXPECT_EQ(sizeof(PitchedPointer), sizeof(cudaPitchedPtr));
  EXPECT_EQ(sizeof(Extent), sizeof(cudaExtent));
  EXPECT_EQ(sizeof(Extents), sizeof(dim3));
  EXPECT_EQ(sizeof(ChannelFormat), sizeof(cudaChannelFormatDesc));
}

#endif

}  // namespace
}  // namespace gemmery::drop_in::runtime
