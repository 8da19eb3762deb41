// SPDX-License-Identifier: Apache-2.0
// Creates and runs convolution primitives, with scratch memory of the calling thread.
#include "providers/host/onednn_convolution.hpp"

#include <array>
#include <cstddef>

#include "providers/host/onednn_memory.hpp"
#include "providers/host/scratch.hpp"

namespace gemmery::host::onednn {
namespace {

// oneDNN's argument numbers for x, w and y, or their gradients.
struct Words {
  int image_md, filter_md, output_md;
  int image, filter, output;
};
Words words_of(ConvolutionShape::Kind kind) {
  switch (kind) {
    case ConvolutionShape::Kind::forward:
      return {query_source_md, query_weights_md, query_destination_md,
              argument_source, argument_weights, argument_destination};
    case ConvolutionShape::Kind::backward_data:
      return {query_diff_source_md, query_weights_md, query_diff_destination_md,
              argument_diff_source, argument_weights, argument_diff_destination};
    case ConvolutionShape::Kind::backward_weights:
      break;
  }
  return {query_source_md, query_diff_weights_md, query_diff_destination_md,
          argument_source, argument_diff_weights, argument_diff_destination};
}

bool writes_filters(const ConvolutionShape& shape) {
  return shape.kind == ConvolutionShape::Kind::backward_weights;
}

}  // namespace

ConvolutionPrimitive::ConvolutionPrimitive(const Library& library, const ConvolutionShape& shape)
    : library_(library),
      shape_(shape),
      descriptor_(library.describe_convolution(shape)),
      stored_filters_(library.describe_filters(shape)) {}

ConvolutionPrimitive::~ConvolutionPrimitive() {
  if (primitive_ != nullptr) api().primitive_destroy(primitive_);
  if (reorder_ != nullptr) api().primitive_destroy(reorder_);
  if (reorder_descriptor_ != nullptr) api().primitive_desc_destroy(reorder_descriptor_);
  api().primitive_desc_destroy(descriptor_);
}

void ConvolutionPrimitive::create_primitives() const {
  std::call_once(is_created_, [&] {
    const MemoryDescriptor chosen = query(words_of(shape_.kind).filter_md);
    const bool is_written = writes_filters(shape_);
    reorder_descriptor_ = is_written ? library_.describe_reorder(chosen, stored_filters_.get())
                                     : library_.describe_reorder(stored_filters_.get(), chosen);
    const auto create = [&](Primitive* primitive, PrimitiveDescriptor descriptor) {
      const Status status = api().primitive_create(primitive, descriptor);
      if (status != success) fail(ErrorKind::unsupported, "dnnl_primitive_create", status);
    };
    create(&reorder_, reorder_descriptor_);
    create(&primitive_, descriptor_);
  });
}

void ConvolutionPrimitive::reorder(MemoryDescriptor from, const void* source, MemoryDescriptor to,
                                   void* destination) const {
  static thread_local Scratch scratch;
  const MemoryDescriptor scratchpad_md =
      api().primitive_desc_query_md(reorder_descriptor_, query_scratchpad_md, 0);
  void* const scratchpad = scratch.reserve<std::byte>(
      static_cast<std::int64_t>(api().memory_desc_get_size(scratchpad_md)), "out",
      "oneDNN's scratchpad");
  const MemoryView read(library_, from, source);
  const MemoryView written(library_, to, destination);
  const MemoryView pad(library_, scratchpad_md, scratchpad);
  const std::array<ExecutionArgument, 3> arguments{{{argument_reorder_from, read.get()},
                                                    {argument_reorder_to, written.get()},
                                                    {argument_scratchpad, pad.get()}}};
  const Status status = api().primitive_execute(reorder_, library_.stream(), 3, arguments.data());
  if (status != success) fail(ErrorKind::launch, "dnnl_primitive_execute", status);
  require_success(api().stream_wait(library_.stream()), "dnnl_stream_wait");
}

void ConvolutionPrimitive::execute(const ConvolutionMemory& memory) const {
  static thread_local Scratch scratch;
  static thread_local Scratch filter_scratch;
  create_primitives();
  const Words words = words_of(shape_.kind);
  const MemoryDescriptor filters_md = query(words.filter_md);
  const MemoryDescriptor scratchpad_md = query(query_scratchpad_md);
  void* const filters = filter_scratch.reserve<std::byte>(
      static_cast<std::int64_t>(api().memory_desc_get_size(filters_md)), "B", "reordered filters");
  void* const scratchpad = scratch.reserve<std::byte>(
      static_cast<std::int64_t>(api().memory_desc_get_size(scratchpad_md)), "out",
      "oneDNN's scratchpad");
  const bool is_written = writes_filters(shape_);
  if (!is_written) reorder(stored_filters_.get(), memory.filters, filters_md, filters);
  const MemoryView views[4] = {{library_, query(words.image_md), memory.images},
                               {library_, filters_md, filters},
                               {library_, query(words.output_md), memory.outputs},
                               {library_, scratchpad_md, scratchpad}};
  const std::array<ExecutionArgument, 4> arguments{{{words.image, views[0].get()},
                                                    {words.filter, views[1].get()},
                                                    {words.output, views[2].get()},
                                                    {argument_scratchpad, views[3].get()}}};
  const Status status = api().primitive_execute(primitive_, library_.stream(), 4, arguments.data());
  if (status != success) fail(ErrorKind::launch, "dnnl_primitive_execute", status);
  require_success(api().stream_wait(library_.stream()), "dnnl_stream_wait");
  if (is_written)
    reorder(filters_md, filters, stored_filters_.get(), const_cast<void*>(memory.filters));
}

std::string ConvolutionPrimitive::implementation_name() const {
  return std::string(library_.implementation_name(descriptor_));
}

}  // namespace gemmery::host::onednn
