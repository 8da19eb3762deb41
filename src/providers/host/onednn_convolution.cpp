// SPDX-License-Identifier: Apache-2.0
// Runs convolution primitives, with scratch memory of the calling thread.
#include "providers/host/onednn_convolution.hpp"

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
      primitive_(library, library.describe_convolution(shape)),
      stored_filters_(library.describe_filters(shape)) {}

const Reorder& ConvolutionPrimitive::reorder() const {
  std::call_once(is_described_, [&] {
    const MemoryDescriptor chosen = primitive_.query(words_of(shape_.kind).filter_md);
    if (writes_filters(shape_))
      reorder_.emplace(library_, chosen, stored_filters_.get());
    else
      reorder_.emplace(library_, stored_filters_.get(), chosen);
  });
  return *reorder_;
}

void ConvolutionPrimitive::execute(const ConvolutionMemory& memory) const {
  static thread_local Scratch scratch;
  static thread_local Scratch filter_scratch;
  const Words words = words_of(shape_.kind);
  const MemoryDescriptor filters_md = primitive_.query(words.filter_md);
  void* const filters = reserve(library_, filters_md, filter_scratch, "B", "reordered filters");
  const bool is_written = writes_filters(shape_);
  if (!is_written) reorder().execute(memory.filters, filters);
  primitive_.execute({{words.image, primitive_.query(words.image_md), memory.images},
                      {words.filter, filters_md, filters},
                      {words.output, primitive_.query(words.output_md), memory.outputs}},
                     scratch);
  if (is_written) reorder().execute(filters, const_cast<void*>(memory.filters));
}

}  // namespace gemmery::host::onednn
