// SPDX-License-Identifier: Apache-2.0
// Compares the library's declarations of the driver API with the toolkit's header, if that is
// installed.
#include "driver/cuda_api.hpp"

#include <gtest/gtest.h>

#include <type_traits>

// Our function types, before cuda.h turns the names into macros.
namespace gemmery::driver {
namespace {
#define GEMMERY_NAME_TYPE(name, parameters) \
  [[maybe_unused]] typedef cuda::Result(*ours_##name) parameters;
GEMMERY_CUDA_FUNCTIONS(GEMMERY_NAME_TYPE)
#undef GEMMERY_NAME_TYPE
}  // namespace
}  // namespace gemmery::driver

#if __has_include(<cuda.h>)
#include <cuda.h>

namespace gemmery::driver {
namespace {

// Equal number of parameters, each passed the same way.
template <class Ours, class Theirs>
struct is_same_call : std::false_type {};
template <class R, class... P, class S, class... Q>
requires(sizeof...(P) == sizeof...(Q)) struct is_same_call<R (*)(P...), S (*)(Q...)>
    : std::bool_constant<((sizeof(P) == sizeof(Q) &&
                           std::is_pointer_v<P> == std::is_pointer_v<Q>)&&... &&
                          (sizeof(R) == sizeof(S)))> {
};

TEST(CudaApi, every_function_is_called_as_the_toolkit_declares_it) {
#define GEMMERY_COMPARE(name, parameters) \
  EXPECT_TRUE((is_same_call<ours_##name, decltype(&::name)>::value)) << #name;
  GEMMERY_CUDA_FUNCTIONS(GEMMERY_COMPARE)
#undef GEMMERY_COMPARE
}

#define GEMMERY_SAME_FIELD(ours, field, theirs, their_field)                 \
  EXPECT_EQ(offsetof(ours, field), offsetof(theirs, their_field)) << #field; \
  EXPECT_EQ(sizeof(ours::field), sizeof(theirs::their_field)) << #field

TEST(CudaApi, structures_have_the_layout_of_the_toolkit) {
  EXPECT_EQ(sizeof(cuda::LaunchConfig), sizeof(CUlaunchConfig));
  GEMMERY_SAME_FIELD(cuda::LaunchConfig, grid_x, CUlaunchConfig, gridDimX);
  GEMMERY_SAME_FIELD(cuda::LaunchConfig, block_x, CUlaunchConfig, blockDimX);
  GEMMERY_SAME_FIELD(cuda::LaunchConfig, shared_bytes, CUlaunchConfig, sharedMemBytes);
  GEMMERY_SAME_FIELD(cuda::LaunchConfig, stream, CUlaunchConfig, hStream);
  GEMMERY_SAME_FIELD(cuda::LaunchConfig, attributes, CUlaunchConfig, attrs);
  GEMMERY_SAME_FIELD(cuda::LaunchConfig, attribute_count, CUlaunchConfig, numAttrs);

  EXPECT_EQ(sizeof(cuda::LaunchAttribute), sizeof(CUlaunchAttribute));
  EXPECT_EQ(alignof(cuda::LaunchAttribute), alignof(CUlaunchAttribute));
  GEMMERY_SAME_FIELD(cuda::LaunchAttribute, id, CUlaunchAttribute, id);
  GEMMERY_SAME_FIELD(cuda::LaunchAttribute, value, CUlaunchAttribute, value);
  GEMMERY_SAME_FIELD(cuda::LaunchAttributeValue, cluster_dimension, CUlaunchAttributeValue,
                     clusterDim);
  GEMMERY_SAME_FIELD(cuda::LaunchAttributeValue, programmatic_stream_serialization_allowed,
                     CUlaunchAttributeValue, programmaticStreamSerializationAllowed);

  EXPECT_EQ(sizeof(cuda::MemPoolProps), sizeof(CUmemPoolProps));
  GEMMERY_SAME_FIELD(cuda::MemPoolProps, allocation_type, CUmemPoolProps, allocType);
  GEMMERY_SAME_FIELD(cuda::MemPoolProps, handle_types, CUmemPoolProps, handleTypes);
  GEMMERY_SAME_FIELD(cuda::MemPoolProps, location, CUmemPoolProps, location);
  GEMMERY_SAME_FIELD(cuda::MemPoolProps, win32_security_attributes, CUmemPoolProps,
                     win32SecurityAttributes);
  GEMMERY_SAME_FIELD(cuda::MemPoolProps, reserved, CUmemPoolProps, reserved);
  GEMMERY_SAME_FIELD(cuda::MemLocation, id, CUmemLocation, id);

  EXPECT_EQ(sizeof(cuda::TensorMap), sizeof(CUtensorMap));
  EXPECT_EQ(alignof(cuda::TensorMap), alignof(CUtensorMap));
  EXPECT_EQ(sizeof(cuda::DevicePointer), sizeof(CUdeviceptr));
  EXPECT_EQ(sizeof(cuda::DeviceOrdinal), sizeof(CUdevice));
}

#define GEMMERY_SAME_VALUE(ours, theirs) \
  EXPECT_EQ(static_cast<int>(ours), static_cast<int>(theirs)) << #ours

TEST(CudaApi, values_are_those_of_the_toolkit) {
  using cuda::Result;
  GEMMERY_SAME_VALUE(Result::success, CUDA_SUCCESS);
  GEMMERY_SAME_VALUE(Result::invalid_value, CUDA_ERROR_INVALID_VALUE);
  GEMMERY_SAME_VALUE(Result::out_of_memory, CUDA_ERROR_OUT_OF_MEMORY);
  GEMMERY_SAME_VALUE(Result::not_initialized, CUDA_ERROR_NOT_INITIALIZED);
  GEMMERY_SAME_VALUE(Result::deinitialized, CUDA_ERROR_DEINITIALIZED);
  GEMMERY_SAME_VALUE(Result::stub_library, CUDA_ERROR_STUB_LIBRARY);
  GEMMERY_SAME_VALUE(Result::no_device, CUDA_ERROR_NO_DEVICE);
  GEMMERY_SAME_VALUE(Result::invalid_device, CUDA_ERROR_INVALID_DEVICE);
  GEMMERY_SAME_VALUE(Result::invalid_image, CUDA_ERROR_INVALID_IMAGE);
  GEMMERY_SAME_VALUE(Result::invalid_context, CUDA_ERROR_INVALID_CONTEXT);
  GEMMERY_SAME_VALUE(Result::no_binary_for_gpu, CUDA_ERROR_NO_BINARY_FOR_GPU);
  GEMMERY_SAME_VALUE(Result::invalid_ptx, CUDA_ERROR_INVALID_PTX);
  GEMMERY_SAME_VALUE(Result::unsupported_ptx_version, CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
  GEMMERY_SAME_VALUE(Result::invalid_source, CUDA_ERROR_INVALID_SOURCE);
  GEMMERY_SAME_VALUE(Result::invalid_handle, CUDA_ERROR_INVALID_HANDLE);
  GEMMERY_SAME_VALUE(Result::illegal_state, CUDA_ERROR_ILLEGAL_STATE);
  GEMMERY_SAME_VALUE(Result::launch_failed, CUDA_ERROR_LAUNCH_FAILED);
  GEMMERY_SAME_VALUE(Result::stream_capture_wrong_thread, CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
  GEMMERY_SAME_VALUE(Result::invalid_cluster_size, CUDA_ERROR_INVALID_CLUSTER_SIZE);
  GEMMERY_SAME_VALUE(Result::not_found, CUDA_ERROR_NOT_FOUND);
  GEMMERY_SAME_VALUE(Result::not_ready, CUDA_ERROR_NOT_READY);
  GEMMERY_SAME_VALUE(Result::not_supported, CUDA_ERROR_NOT_SUPPORTED);
  GEMMERY_SAME_VALUE(Result::system_driver_mismatch, CUDA_ERROR_SYSTEM_DRIVER_MISMATCH);
  GEMMERY_SAME_VALUE(Result::stream_capture_unsupported, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  GEMMERY_SAME_VALUE(Result::stream_capture_invalidated, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  GEMMERY_SAME_VALUE(Result::stream_capture_implicit, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  GEMMERY_SAME_VALUE(Result::unknown, CUDA_ERROR_UNKNOWN);
  GEMMERY_SAME_VALUE(Result::peer_access_unsupported, CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
  GEMMERY_SAME_VALUE(Result::graph_exec_update_failure, CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
  GEMMERY_SAME_VALUE(Result::file_not_found, CUDA_ERROR_FILE_NOT_FOUND);
  GEMMERY_SAME_VALUE(Result::peer_access_already_enabled, CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
  GEMMERY_SAME_VALUE(Result::peer_access_not_enabled, CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
  GEMMERY_SAME_VALUE(Result::assert_failed, CUDA_ERROR_ASSERT);
  GEMMERY_SAME_VALUE(Result::host_memory_already_registered,
                     CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
  GEMMERY_SAME_VALUE(Result::host_memory_not_registered, CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
  GEMMERY_SAME_VALUE(Result::cooperative_launch_too_large, CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);

  using Attribute = cuda::DeviceAttribute;
  GEMMERY_SAME_VALUE(Attribute::clock_rate_khz, CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
  GEMMERY_SAME_VALUE(Attribute::multiprocessor_count, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  GEMMERY_SAME_VALUE(Attribute::memory_clock_rate_khz, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
  GEMMERY_SAME_VALUE(Attribute::memory_bus_width_bits, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
  GEMMERY_SAME_VALUE(Attribute::l2_cache_bytes, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
  GEMMERY_SAME_VALUE(Attribute::compute_capability_major,
                     CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  GEMMERY_SAME_VALUE(Attribute::compute_capability_minor,
                     CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  GEMMERY_SAME_VALUE(Attribute::max_shared_bytes_per_multiprocessor,
                     CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
  GEMMERY_SAME_VALUE(Attribute::max_shared_bytes_per_block_optin,
                     CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  GEMMERY_SAME_VALUE(Attribute::memory_pools_supported, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED);

  using cuda::FunctionAttribute;
  GEMMERY_SAME_VALUE(FunctionAttribute::shared_bytes, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
  GEMMERY_SAME_VALUE(FunctionAttribute::local_bytes, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
  GEMMERY_SAME_VALUE(FunctionAttribute::registers, CU_FUNC_ATTRIBUTE_NUM_REGS);
  GEMMERY_SAME_VALUE(FunctionAttribute::max_dynamic_shared_bytes,
                     CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
  GEMMERY_SAME_VALUE(FunctionAttribute::non_portable_cluster_size_allowed,
                     CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED);

  GEMMERY_SAME_VALUE(cuda::CaptureStatus::active, CU_STREAM_CAPTURE_STATUS_ACTIVE);
  GEMMERY_SAME_VALUE(cuda::CaptureStatus::invalidated, CU_STREAM_CAPTURE_STATUS_INVALIDATED);
  GEMMERY_SAME_VALUE(cuda::CaptureMode::global, CU_STREAM_CAPTURE_MODE_GLOBAL);
  GEMMERY_SAME_VALUE(cuda::CaptureMode::thread_local_, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  GEMMERY_SAME_VALUE(cuda::CaptureMode::relaxed, CU_STREAM_CAPTURE_MODE_RELAXED);
  GEMMERY_SAME_VALUE(cuda::stream_non_blocking, CU_STREAM_NON_BLOCKING);
  GEMMERY_SAME_VALUE(cuda::event_disable_timing, CU_EVENT_DISABLE_TIMING);

  GEMMERY_SAME_VALUE(cuda::MemPoolAttribute::release_threshold, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD);
  GEMMERY_SAME_VALUE(cuda::MemPoolAttribute::reserved_bytes, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
  GEMMERY_SAME_VALUE(cuda::MemPoolAttribute::reserved_peak_bytes,
                     CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH);
  GEMMERY_SAME_VALUE(cuda::MemPoolAttribute::used_bytes, CU_MEMPOOL_ATTR_USED_MEM_CURRENT);
  GEMMERY_SAME_VALUE(cuda::MemPoolAttribute::used_peak_bytes, CU_MEMPOOL_ATTR_USED_MEM_HIGH);
  GEMMERY_SAME_VALUE(cuda::MemPoolProps{}.allocation_type, CU_MEM_ALLOCATION_TYPE_PINNED);
  GEMMERY_SAME_VALUE(cuda::MemLocation{}.type, CU_MEM_LOCATION_TYPE_DEVICE);

  GEMMERY_SAME_VALUE(cuda::LaunchAttributeId::cooperative, CU_LAUNCH_ATTRIBUTE_COOPERATIVE);
  GEMMERY_SAME_VALUE(cuda::LaunchAttributeId::cluster_dimension,
                     CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
  GEMMERY_SAME_VALUE(cuda::LaunchAttributeId::programmatic_stream_serialization,
                     CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION);
  GEMMERY_SAME_VALUE(cuda::TensorMapDataType::uint8, CU_TENSOR_MAP_DATA_TYPE_UINT8);
  GEMMERY_SAME_VALUE(cuda::TensorMapDataType::bfloat16, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16);
  GEMMERY_SAME_VALUE(cuda::TensorMapDataType::tfloat32, CU_TENSOR_MAP_DATA_TYPE_TFLOAT32);
  GEMMERY_SAME_VALUE(cuda::TensorMapSwizzle::bytes128, CU_TENSOR_MAP_SWIZZLE_128B);
  GEMMERY_SAME_VALUE(cuda::TensorMapL2Promotion::bytes256, CU_TENSOR_MAP_L2_PROMOTION_L2_256B);
  GEMMERY_SAME_VALUE(cuda::TensorMapInterleave::bytes32, CU_TENSOR_MAP_INTERLEAVE_32B);
  GEMMERY_SAME_VALUE(cuda::TensorMapOutOfBounds::zero, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  GEMMERY_SAME_VALUE(cuda::proc_address_legacy_stream, CU_GET_PROC_ADDRESS_LEGACY_STREAM);
}

}  // namespace
}  // namespace gemmery::driver
#else
TEST(CudaApi, is_compared_where_the_toolkit_is_installed) { GTEST_SKIP() << "no cuda.h here"; }
#endif
