// SPDX-License-Identifier: Apache-2.0
// Runs convolution primitives, with scratch memory of the calling thread.
#include "providers/host/onednn_convolution.hpp"

#include <atomic>
#include <cstdint>

#include "providers/host/kept_weights.hpp"
#include "providers/host/onednn_conv_extents.hpp"

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

// With more pixels a reorder is at most 1 % of a call (3x3x256 filters, two cores of a Zen 5), and
// the copies would only take memory.
constexpr std::int64_t most_pixels = 8192;

bool keeps_filters(const ConvolutionShape& shape) {
  return !writes_filters(shape) && shape.image_count * pixels_of(shape.output) <= most_pixels;
}

KeptWeights& kept_weights() {
  static auto* const all = new KeptWeights;
  return *all;
}

std::uint64_t next_format() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

}  // namespace

ConvolutionPrimitive::ConvolutionPrimitive(const Library& library, const ConvolutionShape& shape)
    : library_(library),
      shape_(shape),
      primitive_(library, library.describe_convolution(shape)),
      format_(next_format()),
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

void ConvolutionPrimitive::execute(const ConvolutionMemory& memory, void* filters) const {
  static thread_local Scratch scratch;
  const Words words = words_of(shape_.kind);
  primitive_.execute({{words.image, primitive_.query(words.image_md), memory.images},
                      {words.filter, primitive_.query(words.filter_md), filters},
                      {words.output, primitive_.query(words.output_md), memory.outputs}},
                     scratch);
}

void ConvolutionPrimitive::execute_with_kept_filters(const ConvolutionMemory& memory) const {
  const auto size_of = [&](MemoryDescriptor descriptor) {
    return library_.api().memory_desc_get_size(descriptor);
  };
  const KeptWeights::Memory filters =
      kept_weights().get({format_, memory.filters, size_of(stored_filters_.get())},
                         size_of(primitive_.query(words_of(shape_.kind).filter_md)),
                         [&](void* reordered) { reorder().execute(memory.filters, reordered); });
  execute(memory, filters.get());
}

void ConvolutionPrimitive::execute(const ConvolutionMemory& memory) const {
  if (keeps_filters(shape_)) return execute_with_kept_filters(memory);
  static thread_local Scratch scratch;
  void* const filters = reserve(library_, primitive_.query(words_of(shape_.kind).filter_md),
                                scratch, "B", "reordered filters");
  const bool is_written = writes_filters(shape_);
  if (!is_written) reorder().execute(memory.filters, filters);
  execute(memory, filters);
  if (is_written) reorder().execute(filters, const_cast<void*>(memory.filters));
}

}  // namespace gemmery::host::onednn
