// SPDX-License-Identifier: Apache-2.0
// Compares the declarations of oneDNN's C API with oneDNN's header, if that is installed.
#include "providers/host/onednn_api.hpp"

#include <cstddef>

#include <gtest/gtest.h>

#if __has_include(<oneapi/dnnl/dnnl.h>)
#include <oneapi/dnnl/dnnl.h>
#define GEMMERY_HAS_ONEDNN_HEADER 1
#else
#define GEMMERY_HAS_ONEDNN_HEADER 0
#endif

namespace gemmery::host::onednn {
namespace {

TEST(OnednnApi, constants_and_layouts_are_the_vendors) {
#if GEMMERY_HAS_ONEDNN_HEADER
  static_assert(success == dnnl_success);
  static_assert(static_cast<int>(DataType::undefined) == dnnl_data_type_undef);
  static_assert(static_cast<int>(DataType::f16) == dnnl_f16);
  static_assert(static_cast<int>(DataType::bf16) == dnnl_bf16);
  static_assert(static_cast<int>(DataType::f32) == dnnl_f32);
  static_assert(static_cast<int>(DataType::s32) == dnnl_s32);
  static_assert(static_cast<int>(DataType::s8) == dnnl_s8);
  static_assert(static_cast<int>(DataType::u8) == dnnl_u8);
  static_assert(sizeof(DataType) == sizeof(dnnl_data_type_t));
  static_assert(engine_cpu == dnnl_cpu);
  static_assert(stream_in_order == static_cast<unsigned>(dnnl_stream_in_order));
  static_assert(scratchpad_of_user == dnnl_scratchpad_mode_user);
  static_assert(query_implementation == dnnl_query_impl_info_str);
  static_assert(query_source_md == dnnl_query_src_md);
  static_assert(query_weights_md == dnnl_query_weights_md);
  static_assert(query_destination_md == dnnl_query_dst_md);
  static_assert(query_scratchpad_md == dnnl_query_scratchpad_md);
  static_assert(argument_source == DNNL_ARG_SRC);
  static_assert(argument_weights == DNNL_ARG_WEIGHTS);
  static_assert(argument_destination == DNNL_ARG_DST);
  static_assert(query_diff_source_md == dnnl_query_diff_src_md);
  static_assert(query_diff_weights_md == dnnl_query_diff_weights_md);
  static_assert(query_diff_destination_md == dnnl_query_diff_dst_md);
  static_assert(argument_diff_source == DNNL_ARG_DIFF_SRC);
  static_assert(argument_diff_destination == DNNL_ARG_DIFF_DST);
  static_assert(argument_diff_weights == DNNL_ARG_DIFF_WEIGHTS);
  static_assert(argument_reorder_from == DNNL_ARG_FROM);
  static_assert(argument_reorder_to == DNNL_ARG_TO);
  static_assert(format_any == dnnl_format_tag_any);
  static_assert(forward_training == dnnl_forward_training);
  static_assert(forward_inference == dnnl_forward_inference);
  static_assert(convolution_direct == dnnl_convolution_direct);
  static_assert(argument_scratchpad == DNNL_ARG_SCRATCHPAD);
  static_assert(most_dimensions == DNNL_MAX_NDIMS);
  static_assert(sizeof(ExecutionArgument) == sizeof(dnnl_exec_arg_t));
  static_assert(offsetof(ExecutionArgument, memory) == offsetof(dnnl_exec_arg_t, memory));
  static_assert(sizeof(Version) == sizeof(dnnl_version_t));
  static_assert(offsetof(Version, hash) == offsetof(dnnl_version_t, hash));
#if DNNL_VERSION_MAJOR == 2
  static_assert(sizeof(MemoryDescriptorV2) == sizeof(dnnl_memory_desc_t));
  static_assert(offsetof(MemoryDescriptorV2, dimensions) == offsetof(dnnl_memory_desc_t, dims));
  static_assert(offsetof(MemoryDescriptorV2, data_type) == offsetof(dnnl_memory_desc_t, data_type));
  static_assert(offsetof(MemoryDescriptorV2, padded_dimensions) ==
                offsetof(dnnl_memory_desc_t, padded_dims));
  static_assert(offsetof(MemoryDescriptorV2, padded_offsets) ==
                offsetof(dnnl_memory_desc_t, padded_offsets));
  static_assert(offsetof(MemoryDescriptorV2, offset) == offsetof(dnnl_memory_desc_t, offset0));
  static_assert(offsetof(MemoryDescriptorV2, format_kind) ==
                offsetof(dnnl_memory_desc_t, format_kind));
  static_assert(offsetof(MemoryDescriptorV2, blocking) ==
                offsetof(dnnl_memory_desc_t, format_desc));
  static_assert(sizeof(BlockingV2) == sizeof(dnnl_blocking_desc_t));
  static_assert(sizeof(BlockingV2) >= sizeof(dnnl_rnn_packed_desc_t) &&
                sizeof(BlockingV2) >= sizeof(dnnl_wino_desc_t));
  static_assert(offsetof(MemoryDescriptorV2, extra) == offsetof(dnnl_memory_desc_t, extra));
  static_assert(sizeof(ExtraV2) == sizeof(dnnl_memory_extra_desc_t));
  static_assert(sizeof(MatmulDescriptorV2) == sizeof(dnnl_matmul_desc_t));
  static_assert(offsetof(MatmulDescriptorV2, source) == offsetof(dnnl_matmul_desc_t, src_desc));
  static_assert(offsetof(MatmulDescriptorV2, weights) ==
                offsetof(dnnl_matmul_desc_t, weights_desc));
  static_assert(offsetof(MatmulDescriptorV2, destination) ==
                offsetof(dnnl_matmul_desc_t, dst_desc));
  static_assert(offsetof(MatmulDescriptorV2, accumulator) ==
                offsetof(dnnl_matmul_desc_t, accum_data_type));
  static_assert(sizeof(ConvolutionDescriptorV2) == sizeof(dnnl_convolution_desc_t));
  static_assert(offsetof(ConvolutionDescriptorV2, diff_weights) ==
                offsetof(dnnl_convolution_desc_t, diff_weights_desc));
  static_assert(offsetof(ConvolutionDescriptorV2, strides) ==
                offsetof(dnnl_convolution_desc_t, strides));
  static_assert(offsetof(ConvolutionDescriptorV2, padding) ==
                offsetof(dnnl_convolution_desc_t, padding));
#endif
  SUCCEED();
#else
  GTEST_SKIP() << "oneapi/dnnl/dnnl.h is not installed";
#endif
}

}  // namespace
}  // namespace gemmery::host::onednn
