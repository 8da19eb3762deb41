// SPDX-License-Identifier: Apache-2.0
// Forward convolutions of the CPU against oneDNN called directly, in one process, in interleaved
// pairs: channels last with the filters as they are, against oneDNN in the formats that it chooses
// for images, filters and outputs, made beforehand.
//
//   conv_peers [--pairs N] [--images N] [--dtype f32|bf16] [--layer C04]
//
// Layers of ResNet-50. Prints what host_peers prints.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <gemmery/conv_arguments.hpp>
#include <gemmery/discovery.hpp>

#include "onednn_functions.hpp"
#include "pairs.hpp"

#if HAS_ONEDNN_HEADER

namespace {

using gemmery::ConvArguments;
using gemmery::DType;
using gemmery::Tensor;
using gemmery::bench::Run;
using gemmery::bench::succeeded;

// Square images and filters.
struct Layer {
  const char* name;
  std::int64_t extent, channels, filters, taps, padding, stride;

  std::int64_t output() const { return (extent + 2 * padding - taps) / stride + 1; }
  double gflop(std::int64_t images) const {
    return 2e-9 * static_cast<double>(images * output() * output()) *
           static_cast<double>(channels * filters * taps * taps);
  }
};

constexpr Layer layers[] = {
    {"C01 stem 7x7/2", 224, 3, 64, 7, 3, 2}, {"C03 3x3", 56, 64, 64, 3, 1, 1},
    {"C04 1x1", 56, 64, 256, 1, 0, 1},       {"C07 3x3/2", 56, 128, 128, 3, 1, 2},
    {"C08 3x3", 28, 128, 128, 3, 1, 1},      {"C11 3x3", 14, 256, 256, 3, 1, 1},
    {"C14 3x3", 7, 512, 512, 3, 1, 1},       {"C16 1x1/2", 56, 256, 512, 1, 0, 2},
};

std::vector<std::byte> drawn(std::int64_t count, DType dtype) {
  static std::mt19937 random(1);
  std::normal_distribution<float> normal;
  const std::size_t width = gemmery::byte_width(dtype);
  std::vector<std::byte> memory(static_cast<std::size_t>(count) * width);
  for (std::size_t i = 0; i < memory.size(); i += width) {
    const float value = normal(random);
    // The upper half of a float32 is a bfloat16.
    std::memcpy(memory.data() + i, reinterpret_cast<const std::byte*>(&value) + (4 - width), width);
  }
  return memory;
}

// --- ours ---

struct Ours {
  std::vector<std::byte> x, w, y;
  ConvArguments arguments;
  gemmery::Kernel kernel;

  Ours(const Layer& layer, std::int64_t images, DType dtype)
      : x(drawn(images * layer.extent * layer.extent * layer.channels, dtype)),
        w(drawn(layer.filters * layer.taps * layer.taps * layer.channels, dtype)),
        y(drawn(images * layer.output() * layer.output() * layer.filters, dtype)),
        arguments(gemmery::ConvKind::fprop,
                  Tensor(x.data(), dtype, {images, layer.extent, layer.extent, layer.channels}),
                  Tensor(w.data(), dtype, {layer.filters, layer.taps, layer.taps, layer.channels}),
                  Tensor(y.data(), dtype, {images, layer.output(), layer.output(), layer.filters}),
                  {.stride = layer.stride, .padding = layer.padding}),
        kernel(gemmery::get_kernels(arguments).at(0)) {}

  Run run() {
    return [this] { kernel.run(arguments, {.stream = gemmery::Stream::cpu()}); };
  }
};

// --- theirs ---

struct Engine {
  dnnl_engine_t engine = nullptr;
  dnnl_stream_t stream = nullptr;
  Engine() {
    if (!succeeded(ONEDNN(dnnl_engine_create)(&engine, dnnl_cpu, 0)) ||
        !succeeded(ONEDNN(dnnl_stream_create)(&stream, engine, dnnl_stream_default_flags)))
      std::abort();
  }
};

#if DNNL_VERSION_MAJOR >= 3
using Description = dnnl_memory_desc_t;
Description any_format(const dnnl_dims_t& dims, dnnl_data_type_t dtype) {
  Description description = nullptr;
  ONEDNN(dnnl_memory_desc_create_with_tag)(&description, 4, dims, dtype, dnnl_format_tag_any);
  return description;
}
#else
using Description = dnnl_memory_desc_t;
Description any_format(const dnnl_dims_t& dims, dnnl_data_type_t dtype) {
  Description description{};
  ONEDNN(dnnl_memory_desc_init_by_tag)(&description, 4, dims, dtype, dnnl_format_tag_any);
  return description;
}
#endif

// Kept until the process ends.
class Theirs {
 public:
  Theirs(const Engine& engine, const Layer& layer, std::int64_t images, DType dtype)
      : engine_(engine) {
    const auto type = dtype == DType::bfloat16 ? dnnl_bf16 : dnnl_f32;
    const dnnl_dims_t x{images, layer.channels, layer.extent, layer.extent};
    const dnnl_dims_t w{layer.filters, layer.channels, layer.taps, layer.taps};
    const dnnl_dims_t y{images, layer.filters, layer.output(), layer.output()};
    const dnnl_dims_t stride{layer.stride, layer.stride};
    const dnnl_dims_t dilation{0, 0};
    const dnnl_dims_t padding{layer.padding, layer.padding};
    describe(any_format(x, type), any_format(w, type), any_format(y, type), stride, dilation,
             padding);
    if (!succeeded(ONEDNN(dnnl_primitive_create)(&primitive_, descriptor_))) std::abort();
    arguments_ = {{DNNL_ARG_SRC, memory(dnnl_query_src_md, dtype)},
                  {DNNL_ARG_WEIGHTS, memory(dnnl_query_weights_md, dtype)},
                  {DNNL_ARG_DST, memory(dnnl_query_dst_md, dtype)}};
  }

  Run run() {
    auto* const execute = ONEDNN(dnnl_primitive_execute);
    auto* const wait = ONEDNN(dnnl_stream_wait);
    return [this, execute, wait] {
      if (!succeeded(execute(primitive_, engine_.stream, 3, arguments_.data()))) std::abort();
      wait(engine_.stream);
    };
  }

 private:
  void describe(Description x, Description w, Description y, const dnnl_dims_t& stride,
                const dnnl_dims_t& dilation, const dnnl_dims_t& padding) {
#if DNNL_VERSION_MAJOR >= 3
    const auto status = ONEDNN(dnnl_convolution_forward_primitive_desc_create)(
        &descriptor_, engine_.engine, dnnl_forward_inference, dnnl_convolution_direct, x, w,
        nullptr, y, stride, dilation, padding, padding, nullptr);
#else
    dnnl_convolution_desc_t operation{};
    ONEDNN(dnnl_dilated_convolution_forward_desc_init)
    (&operation, dnnl_forward_inference, dnnl_convolution_direct, &x, &w, nullptr, &y, stride,
     dilation, padding, padding);
    const auto status = ONEDNN(dnnl_primitive_desc_create)(&descriptor_, &operation, nullptr,
                                                           engine_.engine, nullptr);
#endif
    if (!succeeded(status)) std::abort();
  }

  dnnl_memory_t memory(dnnl_query_t which, DType dtype) {
#if DNNL_VERSION_MAJOR >= 3
    const const_dnnl_memory_desc_t description =
        ONEDNN(dnnl_primitive_desc_query_md)(descriptor_, which, 0);
#else
    const dnnl_memory_desc_t* const description =
        ONEDNN(dnnl_primitive_desc_query_md)(descriptor_, which, 0);
#endif
    const std::size_t bytes = ONEDNN(dnnl_memory_desc_get_size)(description);
    const auto elements = static_cast<std::int64_t>(bytes / gemmery::byte_width(dtype));
    buffers_.push_back(drawn(elements, dtype));
    dnnl_memory_t memory = nullptr;
    if (!succeeded(ONEDNN(dnnl_memory_create)(&memory, description, engine_.engine,
                                              buffers_.back().data())))
      std::abort();
    return memory;
  }

  const Engine& engine_;
  dnnl_primitive_desc_t descriptor_ = nullptr;
  dnnl_primitive_t primitive_ = nullptr;
  std::vector<std::vector<std::byte>> buffers_;
  std::vector<dnnl_exec_arg_t> arguments_;
};

struct Options {
  int pairs = 15;
  std::int64_t images = 32;
  DType dtype = DType::float32;
  std::string_view layer = "C";  // how the names of layers begin
};

Options read_options(int count, char** words) {
  Options options;
  for (int i = 1; i + 1 < count; i += 2) {
    const std::string_view word = words[i];
    if (word == "--pairs") options.pairs = std::max(1, std::atoi(words[i + 1]));
    if (word == "--images") options.images = std::max(1, std::atoi(words[i + 1]));
    if (word == "--layer") options.layer = words[i + 1];
    if (word == "--dtype" && std::string_view(words[i + 1]) == "bf16")
      options.dtype = DType::bfloat16;
  }
  return options;
}

}  // namespace

int main(int count, char** words) {
  const Options options = read_options(count, words);
  const Engine engine;
  for (const Layer& layer : layers) {
    if (!std::string_view(layer.name).starts_with(options.layer)) continue;
    Ours ours(layer, options.images, options.dtype);
    Theirs theirs(engine, layer, options.images, options.dtype);
    std::printf("%-15s %-34s ", layer.name, ours.kernel.name().c_str());
    gemmery::bench::print_pairs(ours.run(), theirs.run(), options.pairs,
                                layer.gflop(options.images));
  }
}

#else

int main() {
  std::puts("conv_peers: built without the header of oneDNN (libdnnl-dev)");
}

#endif
