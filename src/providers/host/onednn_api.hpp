// SPDX-License-Identifier: Apache-2.0
// The part of oneDNN's C API that is used here, written from its reference manual; opened at run
// time, in major versions 2 and 3.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gemmery::host::onednn {

using Status = int;
inline constexpr Status success = 0;

enum class DataType : int { undefined = 0, f16 = 1, bf16 = 2, f32 = 3, s32 = 4, s8 = 5, u8 = 6 };

inline constexpr int engine_cpu = 1;
inline constexpr unsigned stream_in_order = 1;
inline constexpr int scratchpad_of_user = 1;
inline constexpr int query_implementation = 8;  // impl_info_str
inline constexpr int query_source_md = 129;
inline constexpr int query_diff_source_md = 130;
inline constexpr int query_weights_md = 131;
inline constexpr int query_diff_weights_md = 132;
inline constexpr int query_destination_md = 133;
inline constexpr int query_diff_destination_md = 134;
inline constexpr int query_scratchpad_md = 136;
inline constexpr int argument_source = 1;
inline constexpr int argument_destination = 17;
inline constexpr int argument_weights = 33;
inline constexpr int argument_scratchpad = 80;
inline constexpr int argument_diff_source = 129;
inline constexpr int argument_diff_destination = 145;
inline constexpr int argument_diff_weights = 161;
inline constexpr int argument_reorder_from = argument_source;
inline constexpr int argument_reorder_to = argument_destination;

inline constexpr int format_any = 1;
inline constexpr int forward_training = 64;
inline constexpr int forward_inference = 96;
inline constexpr int convolution_direct = 1;

inline constexpr int most_dimensions = 12;
using Dimensions = std::int64_t[most_dimensions];

// Handles; never dereferenced by us.
using Engine = struct EngineObject*;
using Stream = struct StreamObject*;
using Memory = struct MemoryObject*;
using Primitive = struct PrimitiveObject*;
using PrimitiveDescriptor = struct PrimitiveDescriptorObject*;
using PrimitiveDescriptorIterator = struct PrimitiveDescriptorIteratorObject*;
using Attributes = struct AttributesObject*;

struct ExecutionArgument {
  int argument;
  Memory memory;
};

struct Version {
  int major;
  int minor;
  int patch;
  const char* hash;
  unsigned cpu_runtime;
  unsigned gpu_runtime;
};

// A memory descriptor is a handle in version 3 and a struct in version 2; both versions' functions
// take its address.
using MemoryDescriptor = const void*;

// --- version 2: descriptors are structs of the caller ---

struct BlockingV2 {
  Dimensions strides;
  int inner_block_count;
  Dimensions inner_blocks;
  Dimensions inner_indices;
};

struct ExtraV2 {
  std::uint64_t flags;
  int compensation_mask;
  float scale_adjust;
  int asymmetric_compensation_mask;
  char reserved[60];
};

struct MemoryDescriptorV2 {
  int dimension_count;
  Dimensions dimensions;
  DataType data_type;
  Dimensions padded_dimensions;
  Dimensions padded_offsets;
  std::int64_t offset;
  int format_kind;
  BlockingV2 blocking;  // the largest member of the manual's union
  ExtraV2 extra;
};

struct MatmulDescriptorV2 {
  int primitive_kind;
  MemoryDescriptorV2 source;
  MemoryDescriptorV2 weights;
  MemoryDescriptorV2 bias;
  MemoryDescriptorV2 destination;
  DataType accumulator;
};

struct ConvolutionDescriptorV2 {
  int primitive_kind;
  int propagation;
  int algorithm;
  MemoryDescriptorV2 source;
  MemoryDescriptorV2 diff_source;
  MemoryDescriptorV2 weights;
  MemoryDescriptorV2 diff_weights;
  MemoryDescriptorV2 bias;
  MemoryDescriptorV2 diff_bias;
  MemoryDescriptorV2 destination;
  MemoryDescriptorV2 diff_destination;
  Dimensions strides;
  Dimensions dilations;
  Dimensions padding[2];
  DataType accumulator;
};

// --- functions; each name is the manual's without dnnl_ ---

// The functions with the same signature in both versions.
struct ApiCommon {
  const Version* (*version)();
  Status (*engine_create)(Engine*, int kind, std::size_t index);
  Status (*stream_create)(Stream*, Engine, unsigned flags);
  Status (*stream_wait)(Stream);
  Status (*memory_create)(Memory*, MemoryDescriptor, Engine, void* data);
  Status (*memory_destroy)(Memory);
  std::size_t (*memory_desc_get_size)(MemoryDescriptor);
  Status (*primitive_attr_create)(Attributes*);
  Status (*primitive_attr_set_scratchpad_mode)(Attributes, int mode);
  Status (*primitive_attr_destroy)(Attributes);
  MemoryDescriptor (*primitive_desc_query_md)(PrimitiveDescriptor, int what, int index);
  Status (*primitive_desc_query)(PrimitiveDescriptor, int what, int index, void* result);
  Status (*primitive_desc_destroy)(PrimitiveDescriptor);
  Status (*primitive_create)(Primitive*, PrimitiveDescriptor);
  Status (*reorder_primitive_desc_create)(PrimitiveDescriptor*, MemoryDescriptor from, Engine,
                                          MemoryDescriptor to, Engine, Attributes);
  Status (*primitive_execute)(Primitive, Stream, int count, const ExecutionArgument*);
  Status (*primitive_destroy)(Primitive);
};

struct ApiV2 : ApiCommon {
  Status (*memory_desc_init_by_strides)(MemoryDescriptorV2*, int count,
                                        const std::int64_t* dimensions, DataType,
                                        const std::int64_t* strides);
  Status (*matmul_desc_init)(MatmulDescriptorV2*, const MemoryDescriptorV2* source,
                             const MemoryDescriptorV2* weights, const MemoryDescriptorV2* bias,
                             const MemoryDescriptorV2* destination);
  Status (*memory_desc_init_by_tag)(MemoryDescriptorV2*, int count, const std::int64_t* dimensions,
                                    DataType, int tag);
  Status (*dilated_convolution_forward_desc_init)(
      ConvolutionDescriptorV2*, int propagation, int algorithm, const MemoryDescriptorV2* source,
      const MemoryDescriptorV2* weights, const MemoryDescriptorV2* bias,
      const MemoryDescriptorV2* destination, const std::int64_t* strides,
      const std::int64_t* dilations, const std::int64_t* lower, const std::int64_t* upper);
  Status (*dilated_convolution_backward_data_desc_init)(
      ConvolutionDescriptorV2*, int algorithm, const MemoryDescriptorV2* diff_source,
      const MemoryDescriptorV2* weights, const MemoryDescriptorV2* diff_destination,
      const std::int64_t* strides, const std::int64_t* dilations, const std::int64_t* lower,
      const std::int64_t* upper);
  Status (*dilated_convolution_backward_weights_desc_init)(
      ConvolutionDescriptorV2*, int algorithm, const MemoryDescriptorV2* source,
      const MemoryDescriptorV2* diff_weights, const MemoryDescriptorV2* diff_bias,
      const MemoryDescriptorV2* diff_destination, const std::int64_t* strides,
      const std::int64_t* dilations, const std::int64_t* lower, const std::int64_t* upper);
  Status (*primitive_desc_iterator_create)(PrimitiveDescriptorIterator*, const void* operation,
                                           Attributes, Engine, PrimitiveDescriptor hint);
  PrimitiveDescriptor (*primitive_desc_iterator_fetch)(PrimitiveDescriptorIterator);
  Status (*primitive_desc_iterator_next)(PrimitiveDescriptorIterator);
  Status (*primitive_desc_iterator_destroy)(PrimitiveDescriptorIterator);
};

struct ApiV3 : ApiCommon {
  Status (*memory_desc_create_with_strides)(MemoryDescriptor*, int count,
                                            const std::int64_t* dimensions, DataType,
                                            const std::int64_t* strides);
  Status (*memory_desc_create_with_tag)(MemoryDescriptor*, int count,
                                        const std::int64_t* dimensions, DataType, int tag);
  Status (*memory_desc_destroy)(MemoryDescriptor);
  Status (*convolution_forward_primitive_desc_create)(
      PrimitiveDescriptor*, Engine, int propagation, int algorithm, MemoryDescriptor source,
      MemoryDescriptor weights, MemoryDescriptor bias, MemoryDescriptor destination,
      const std::int64_t* strides, const std::int64_t* dilations, const std::int64_t* lower,
      const std::int64_t* upper, Attributes);
  Status (*convolution_backward_data_primitive_desc_create)(
      PrimitiveDescriptor*, Engine, int algorithm, MemoryDescriptor diff_source,
      MemoryDescriptor weights, MemoryDescriptor diff_destination, const std::int64_t* strides,
      const std::int64_t* dilations, const std::int64_t* lower, const std::int64_t* upper,
      PrimitiveDescriptor hint, Attributes);
  Status (*convolution_backward_weights_primitive_desc_create)(
      PrimitiveDescriptor*, Engine, int algorithm, MemoryDescriptor source,
      MemoryDescriptor diff_weights, MemoryDescriptor diff_bias, MemoryDescriptor diff_destination,
      const std::int64_t* strides, const std::int64_t* dilations, const std::int64_t* lower,
      const std::int64_t* upper, PrimitiveDescriptor hint, Attributes);
  Status (*matmul_primitive_desc_create)(PrimitiveDescriptor*, Engine, MemoryDescriptor source,
                                         MemoryDescriptor weights, MemoryDescriptor bias,
                                         MemoryDescriptor destination, Attributes);
  // Replaces a descriptor by that of the next implementation.
  Status (*primitive_desc_next_impl)(PrimitiveDescriptor);
};

}  // namespace gemmery::host::onednn
