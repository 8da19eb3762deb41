// SPDX-License-Identifier: Apache-2.0
// Finds oneDNN, opens versions 2 and 3, and reports why it could not; skips implementations that
// give wrong results.
#include "providers/host/onednn_library.hpp"

#include <new>
#include <type_traits>
#include <vector>

#include "platform/environment.hpp"
#include "platform/library.hpp"
#include "providers/host/onednn_conv_extents.hpp"

namespace gemmery::host::onednn {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool is_sanitizer_build = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
    __has_feature(memory_sanitizer)
constexpr bool is_sanitizer_build = true;
#else
constexpr bool is_sanitizer_build = false;
#endif
#else
constexpr bool is_sanitizer_build = false;
#endif

// Fills a table; records the first missing name.
class Symbols {
 public:
  explicit Symbols(const platform::SharedLibrary& library) : library_(library) {}

  template <class Function>
  void find(Function*& function, const char* name) {
    function = library_.find_function<Function>(name);
    if (function == nullptr && missing_.empty()) missing_ = name;
  }
  const std::string& missing() const { return missing_; }

 private:
  const platform::SharedLibrary& library_;
  std::string missing_;
};

void find_common(Symbols& symbols, ApiCommon& api) {
  symbols.find(api.version, "dnnl_version");
  symbols.find(api.engine_create, "dnnl_engine_create");
  symbols.find(api.stream_create, "dnnl_stream_create");
  symbols.find(api.stream_wait, "dnnl_stream_wait");
  symbols.find(api.memory_create, "dnnl_memory_create");
  symbols.find(api.memory_destroy, "dnnl_memory_destroy");
  symbols.find(api.memory_desc_get_size, "dnnl_memory_desc_get_size");
  symbols.find(api.primitive_attr_create, "dnnl_primitive_attr_create");
  symbols.find(api.primitive_attr_set_scratchpad_mode, "dnnl_primitive_attr_set_scratchpad_mode");
  symbols.find(api.primitive_attr_destroy, "dnnl_primitive_attr_destroy");
  symbols.find(api.primitive_desc_query_md, "dnnl_primitive_desc_query_md");
  symbols.find(api.primitive_desc_query, "dnnl_primitive_desc_query");
  symbols.find(api.primitive_desc_destroy, "dnnl_primitive_desc_destroy");
  symbols.find(api.primitive_create, "dnnl_primitive_create");
  symbols.find(api.primitive_execute, "dnnl_primitive_execute");
  symbols.find(api.primitive_destroy, "dnnl_primitive_destroy");
  symbols.find(api.reorder_primitive_desc_create, "dnnl_reorder_primitive_desc_create");
}

class LibraryV2 final : public Library {
 public:
  LibraryV2(const ApiV2& api, const std::string& path) : own_(api) { open(own_, path); }

  PrimitiveDescriptor describe_matmul(const MatmulShape& shape) const override {
    const MemoryDescriptorV2 source = describe(shape.source);
    const MemoryDescriptorV2 weights = describe(shape.weights);
    const MemoryDescriptorV2 destination = describe(shape.destination);
    MatmulDescriptorV2 operation{};
    require_success(own_.matmul_desc_init(&operation, &source, &weights, nullptr, &destination),
                    "dnnl_matmul_desc_init");
    return first_of(&operation, nullptr, [&](PrimitiveDescriptor d) { return is_trusted(d); });
  }

  PrimitiveDescriptor describe_convolution(const ConvolutionShape& shape) const override {
    if (shape.kind == ConvolutionShape::Kind::forward) return first_fast(shape, nullptr);
    // A forward convolution is asked for as a hint.
    ConvolutionShape forward = shape;
    forward.kind = ConvolutionShape::Kind::forward;
    forward.images = forward.filters = forward.outputs = DataType::f32;
    const ConvolutionDescriptorV2 operation = describe_forward(forward, forward_training);
    const PrimitiveDescriptor hint =
        first_of(&operation, nullptr, [](PrimitiveDescriptor) { return true; });
    const HintOwner owner(hint, DestroyHint{api().primitive_desc_destroy});
    return first_fast(shape, hint);
  }

  OwnedDescriptor describe_filters(const ConvolutionShape& shape) const override {
    return std::make_shared<const MemoryDescriptorV2>(describe(filter_extents(shape)));
  }

 private:
  struct Destroy {
    Status (*destroy)(PrimitiveDescriptorIterator);
    void operator()(PrimitiveDescriptorIterator iterator) const { destroy(iterator); }
  };
  using Iterator = std::unique_ptr<std::remove_pointer_t<PrimitiveDescriptorIterator>, Destroy>;
  struct DestroyHint {
    Status (*destroy)(PrimitiveDescriptor);
    void operator()(PrimitiveDescriptor descriptor) const { destroy(descriptor); }
  };
  using HintOwner = std::unique_ptr<std::remove_pointer_t<PrimitiveDescriptor>, DestroyHint>;

  // The first implementation that passes.
  template <class Passes>
  PrimitiveDescriptor first_of(const void* operation, PrimitiveDescriptor hint,
                               const Passes& passes) const {
    PrimitiveDescriptorIterator created = nullptr;
    require_success(
        own_.primitive_desc_iterator_create(&created, operation, attributes(), engine(), hint),
        "dnnl_primitive_desc_iterator_create");
    const Iterator implementations(created, Destroy{own_.primitive_desc_iterator_destroy});
    for (;;) {
      const PrimitiveDescriptor descriptor =
          own_.primitive_desc_iterator_fetch(implementations.get());
      if (descriptor == nullptr) throw std::bad_alloc();
      if (passes(descriptor)) return descriptor;
      api().primitive_desc_destroy(descriptor);
      require_success(own_.primitive_desc_iterator_next(implementations.get()),
                      "dnnl_primitive_desc_iterator_next");
    }
  }
  PrimitiveDescriptor first_fast(const ConvolutionShape& shape, PrimitiveDescriptor hint) const {
    const ConvolutionDescriptorV2 operation = shape.kind == ConvolutionShape::Kind::forward
                                                  ? describe_forward(shape, forward_inference)
                                                  : describe_backward(shape);
    return first_of(&operation, hint, [&](PrimitiveDescriptor d) { return is_fast(d); });
  }

  ConvolutionDescriptorV2 describe_forward(const ConvolutionShape& shape, int propagation) const {
    const MemoryDescriptorV2 images = describe(image_extents(shape));
    const MemoryDescriptorV2 filters = describe_any(filter_extents(shape));
    const MemoryDescriptorV2 outputs = describe(output_extents(shape));
    const ConvolutionNumbers numbers(shape);
    ConvolutionDescriptorV2 operation{};
    require_success(own_.dilated_convolution_forward_desc_init(
                        &operation, propagation, convolution_direct, &images, &filters, nullptr,
                        &outputs, numbers.strides, numbers.dilations, numbers.lower, numbers.upper),
                    "dnnl_dilated_convolution_forward_desc_init");
    return operation;
  }
  ConvolutionDescriptorV2 describe_backward(const ConvolutionShape& shape) const {
    const MemoryDescriptorV2 images = describe(image_extents(shape));
    const MemoryDescriptorV2 filters = describe_any(filter_extents(shape));
    const MemoryDescriptorV2 outputs = describe(output_extents(shape));
    const ConvolutionNumbers numbers(shape);
    ConvolutionDescriptorV2 operation{};
    if (shape.kind == ConvolutionShape::Kind::backward_data)
      require_success(own_.dilated_convolution_backward_data_desc_init(
                          &operation, convolution_direct, &images, &filters, &outputs,
                          numbers.strides, numbers.dilations, numbers.lower, numbers.upper),
                      "dnnl_dilated_convolution_backward_data_desc_init");
    else
      require_success(own_.dilated_convolution_backward_weights_desc_init(
                          &operation, convolution_direct, &images, &filters, nullptr, &outputs,
                          numbers.strides, numbers.dilations, numbers.lower, numbers.upper),
                      "dnnl_dilated_convolution_backward_weights_desc_init");
    return operation;
  }

  MemoryDescriptorV2 describe(const TensorExtents& tensor) const {
    MemoryDescriptorV2 descriptor{};
    require_success(
        own_.memory_desc_init_by_strides(&descriptor, tensor.count, tensor.dimensions.data(),
                                         tensor.type, tensor.strides.data()),
        "dnnl_memory_desc_init_by_strides");
    return descriptor;
  }
  MemoryDescriptorV2 describe_any(const TensorExtents& tensor) const {
    MemoryDescriptorV2 descriptor{};
    require_success(own_.memory_desc_init_by_tag(&descriptor, tensor.count,
                                                 tensor.dimensions.data(), tensor.type, format_any),
                    "dnnl_memory_desc_init_by_tag");
    return descriptor;
  }
  MemoryDescriptorV2 describe(const OperandShape& operand) const {
    MemoryDescriptorV2 descriptor{};
    require_success(own_.memory_desc_init_by_strides(&descriptor, 3, operand.extents.data(),
                                                     operand.type, operand.strides.data()),
                    "dnnl_memory_desc_init_by_strides");
    return descriptor;
  }

  ApiV2 own_;
};

class LibraryV3 final : public Library {
 public:
  LibraryV3(const ApiV3& api, const std::string& path) : own_(api) { open(own_, path); }

  PrimitiveDescriptor describe_matmul(const MatmulShape& shape) const override {
    const Descriptor source = describe(shape.source);
    const Descriptor weights = describe(shape.weights);
    const Descriptor destination = describe(shape.destination);
    PrimitiveDescriptor descriptor = nullptr;
    require_success(
        own_.matmul_primitive_desc_create(&descriptor, engine(), source.get(), weights.get(),
                                          nullptr, destination.get(), attributes()),
        "dnnl_matmul_primitive_desc_create");
    return first_of(descriptor, [&](PrimitiveDescriptor d) { return is_trusted(d); });
  }

  PrimitiveDescriptor describe_convolution(const ConvolutionShape& shape) const override {
    const auto passes = [&](PrimitiveDescriptor d) { return is_fast(d); };
    if (shape.kind == ConvolutionShape::Kind::forward)
      return first_of(create_forward(shape, forward_inference), passes);
    // A forward convolution is asked for as a hint.
    ConvolutionShape forward = shape;
    forward.images = forward.filters = forward.outputs = DataType::f32;
    const PrimitiveDescriptor hint = create_forward(forward, forward_training);
    const HintOwner owner(hint, DestroyHint{api().primitive_desc_destroy});
    return first_of(create_backward(shape, hint), passes);
  }

  OwnedDescriptor describe_filters(const ConvolutionShape& shape) const override {
    return describe(filter_extents(shape));
  }

 private:
  struct Destroy {
    Status (*destroy)(MemoryDescriptor);
    void operator()(MemoryDescriptor descriptor) const { destroy(descriptor); }
  };
  using Descriptor = std::unique_ptr<const void, Destroy>;
  struct DestroyHint {
    Status (*destroy)(PrimitiveDescriptor);
    void operator()(PrimitiveDescriptor descriptor) const { destroy(descriptor); }
  };
  using HintOwner = std::unique_ptr<std::remove_pointer_t<PrimitiveDescriptor>, DestroyHint>;

  // The first implementation that passes, from this one on.
  template <class Passes>
  PrimitiveDescriptor first_of(PrimitiveDescriptor descriptor, const Passes& passes) const {
    while (!passes(descriptor)) {
      const Status status = own_.primitive_desc_next_impl(descriptor);
      if (status == success) continue;
      api().primitive_desc_destroy(descriptor);
      fail(ErrorKind::unsupported, "dnnl_primitive_desc_next_impl", status);
    }
    return descriptor;
  }

  PrimitiveDescriptor create_forward(const ConvolutionShape& shape, int propagation) const {
    const Descriptor images = describe(image_extents(shape));
    const Descriptor filters = describe_any(filter_extents(shape));
    const Descriptor outputs = describe(output_extents(shape));
    const ConvolutionNumbers numbers(shape);
    PrimitiveDescriptor descriptor = nullptr;
    require_success(own_.convolution_forward_primitive_desc_create(
                        &descriptor, engine(), propagation, convolution_direct, images.get(),
                        filters.get(), nullptr, outputs.get(), numbers.strides, numbers.dilations,
                        numbers.lower, numbers.upper, attributes()),
                    "dnnl_convolution_forward_primitive_desc_create");
    return descriptor;
  }
  PrimitiveDescriptor create_backward(const ConvolutionShape& shape,
                                      PrimitiveDescriptor hint) const {
    const Descriptor images = describe(image_extents(shape));
    const Descriptor filters = describe_any(filter_extents(shape));
    const Descriptor outputs = describe(output_extents(shape));
    const ConvolutionNumbers numbers(shape);
    PrimitiveDescriptor descriptor = nullptr;
    if (shape.kind == ConvolutionShape::Kind::backward_data)
      require_success(
          own_.convolution_backward_data_primitive_desc_create(
              &descriptor, engine(), convolution_direct, images.get(), filters.get(), outputs.get(),
              numbers.strides, numbers.dilations, numbers.lower, numbers.upper, hint, attributes()),
          "dnnl_convolution_backward_data_primitive_desc_create");
    else
      require_success(own_.convolution_backward_weights_primitive_desc_create(
                          &descriptor, engine(), convolution_direct, images.get(), filters.get(),
                          nullptr, outputs.get(), numbers.strides, numbers.dilations, numbers.lower,
                          numbers.upper, hint, attributes()),
                      "dnnl_convolution_backward_weights_primitive_desc_create");
    return descriptor;
  }

  Descriptor describe(const TensorExtents& tensor) const {
    MemoryDescriptor descriptor = nullptr;
    require_success(
        own_.memory_desc_create_with_strides(&descriptor, tensor.count, tensor.dimensions.data(),
                                             tensor.type, tensor.strides.data()),
        "dnnl_memory_desc_create_with_strides");
    return {descriptor, Destroy{own_.memory_desc_destroy}};
  }
  Descriptor describe_any(const TensorExtents& tensor) const {
    MemoryDescriptor descriptor = nullptr;
    require_success(
        own_.memory_desc_create_with_tag(&descriptor, tensor.count, tensor.dimensions.data(),
                                         tensor.type, format_any),
        "dnnl_memory_desc_create_with_tag");
    return {descriptor, Destroy{own_.memory_desc_destroy}};
  }
  Descriptor describe(const OperandShape& operand) const {
    MemoryDescriptor descriptor = nullptr;
    require_success(own_.memory_desc_create_with_strides(&descriptor, 3, operand.extents.data(),
                                                         operand.type, operand.strides.data()),
                    "dnnl_memory_desc_create_with_strides");
    return {descriptor, Destroy{own_.memory_desc_destroy}};
  }

  ApiV3 own_;
};

template <class Api, class Version, class FindOwn>
FoundLibrary open_version(const platform::SharedLibrary& file, const FindOwn& find_own) {
  Symbols symbols(file);
  Api api{};
  find_common(symbols, api);
  find_own(symbols, api);
  if (!symbols.missing().empty())
    return {nullptr, "unavailable: " + file.path() + " has no function " + symbols.missing()};
  return {std::make_unique<Version>(api, file.path()), {}};
}

FoundLibrary open_v2(const platform::SharedLibrary& file) {
  return open_version<ApiV2, LibraryV2>(file, [](Symbols& symbols, ApiV2& api) {
    symbols.find(api.memory_desc_init_by_strides, "dnnl_memory_desc_init_by_strides");
    symbols.find(api.memory_desc_init_by_tag, "dnnl_memory_desc_init_by_tag");
    symbols.find(api.matmul_desc_init, "dnnl_matmul_desc_init");
    symbols.find(api.dilated_convolution_forward_desc_init,
                 "dnnl_dilated_convolution_forward_desc_init");
    symbols.find(api.dilated_convolution_backward_data_desc_init,
                 "dnnl_dilated_convolution_backward_data_desc_init");
    symbols.find(api.dilated_convolution_backward_weights_desc_init,
                 "dnnl_dilated_convolution_backward_weights_desc_init");
    symbols.find(api.primitive_desc_iterator_create, "dnnl_primitive_desc_iterator_create");
    symbols.find(api.primitive_desc_iterator_fetch, "dnnl_primitive_desc_iterator_fetch");
    symbols.find(api.primitive_desc_iterator_next, "dnnl_primitive_desc_iterator_next");
    symbols.find(api.primitive_desc_iterator_destroy, "dnnl_primitive_desc_iterator_destroy");
  });
}

FoundLibrary open_v3(const platform::SharedLibrary& file) {
  return open_version<ApiV3, LibraryV3>(file, [](Symbols& symbols, ApiV3& api) {
    symbols.find(api.memory_desc_create_with_strides, "dnnl_memory_desc_create_with_strides");
    symbols.find(api.memory_desc_create_with_tag, "dnnl_memory_desc_create_with_tag");
    symbols.find(api.memory_desc_destroy, "dnnl_memory_desc_destroy");
    symbols.find(api.convolution_forward_primitive_desc_create,
                 "dnnl_convolution_forward_primitive_desc_create");
    symbols.find(api.convolution_backward_data_primitive_desc_create,
                 "dnnl_convolution_backward_data_primitive_desc_create");
    symbols.find(api.convolution_backward_weights_primitive_desc_create,
                 "dnnl_convolution_backward_weights_primitive_desc_create");
    symbols.find(api.matmul_primitive_desc_create, "dnnl_matmul_primitive_desc_create");
    symbols.find(api.primitive_desc_next_impl, "dnnl_primitive_desc_next_impl");
  });
}

FoundLibrary search() {
  if (is_sanitizer_build) return {nullptr, "unavailable: oneDNN is not used in sanitizer builds"};
  const auto named = platform::read_environment_path("GEMMERY_ONEDNN_LIBRARY");
  const std::vector<std::string> candidates =
      named ? std::vector{*named} : std::vector<std::string>{"libdnnl.so.3", "libdnnl.so.2"};
  const auto result = platform::LibrarySearch::open_first(candidates);
  if (!result.library)
    return {nullptr, "unavailable: " + (named ? *named : "libdnnl.so.3/.2") +
                         " not found, looked in " + result.report()};
  const auto version = result.library->find_function<const Version*()>("dnnl_version");
  const int major = version != nullptr ? version()->major : 0;
  if (major == 3) return open_v3(*result.library);
  if (major == 2) return open_v2(*result.library);
  return {nullptr, "unavailable: " + result.library->path() + " is version " +
                       std::to_string(major) + " of oneDNN, known are 2 and 3"};
}

FoundLibrary search_without_throwing() {
  try {
    return search();
  } catch (const std::exception& error) {
    return {nullptr, std::string("unavailable: ") + error.what()};
  }
}

}  // namespace

void fail(ErrorKind kind, const char* function, Status status) {
  throw Error({.kind = kind,
               .operand = "oneDNN",
               .expected = "success of " + std::string(function),
               .got = "status " + std::to_string(status),
               .hint = "another host kernel serves this problem",
               .cause = {}});
}

void require_success(Status status, const char* function) {
  if (status != success) fail(ErrorKind::unsupported, function, status);
}

// oneDNN's kernels for AMX ("brg:avx512_core_amx_bf16" and the like) are wrong in most versions.
// What is known, from random shapes of plain matrices on a CPU with amx_bf16 and amx_int8 and from
// oneDNN's history:
//
// - before 2.7.4 and in 3.0, tiles keep the shape of full blocks where M or N has a tail and the
//   tail of K, rounded up, is a full block (k % 32 = 31 of bfloat16, k % 64 = 61 … 63 of int8):
//   wrong sums, an illegal instruction or, in 3.0, other memory overwritten (found in 2.5.0, 2.6.0,
//   2.6.3 and 3.0.0; mended by oneDNN's commits 28ddb5bc and f401ed24);
// - in 2.6, several threads share 49 to 63 columns of bfloat16 in blocks of another width than that
//   of the packed weights: wrong sums (mended by 2655b3aa);
// - 3.7.3, 3.8.1 and 3.9.2 tell of corrections of matmul with AMX;
// - in 3.13.0, sums of int8 by row-major weights are wrong, and an infinity or NaN makes NaN of
//   what it does not belong to (oneDNN's issue 5717).
//
// 3.1.0 and 3.2.0 were right in all that was tried. So were, in all of these versions, the kernels
// for AVX-512 that follow in oneDNN's list, and "gemm:jit", which uses AMX in a way of its own.
bool is_trusted(const Version& version, std::string_view implementation) {
  const bool has_right_amx = version.major == 3 && (version.minor == 1 || version.minor == 2);
  return has_right_amx || implementation.find("amx") == std::string_view::npos;
}

std::string_view Library::implementation_name(PrimitiveDescriptor descriptor) const {
  const char* text = nullptr;
  require_success(
      api().primitive_desc_query(descriptor, query_implementation, 0, static_cast<void*>(&text)),
      "dnnl_primitive_desc_query");
  return text == nullptr ? "" : text;
}

bool Library::is_trusted(PrimitiveDescriptor descriptor) const {
  return onednn::is_trusted(*api().version(), implementation_name(descriptor));
}

// "ref:any" and the like: one element at a time.
bool Library::is_fast(PrimitiveDescriptor descriptor) const {
  return is_trusted(descriptor) && !implementation_name(descriptor).starts_with("ref");
}

PrimitiveDescriptor Library::describe_reorder(MemoryDescriptor from, MemoryDescriptor to) const {
  PrimitiveDescriptor descriptor = nullptr;
  require_success(
      api().reorder_primitive_desc_create(&descriptor, from, engine(), to, engine(), attributes()),
      "dnnl_reorder_primitive_desc_create");
  return descriptor;
}

void Library::open(const ApiCommon& api, const std::string& path) {
  api_ = &api;
  require_success(api.engine_create(&engine_, engine_cpu, 0), "dnnl_engine_create");
  require_success(api.stream_create(&stream_, engine_, stream_in_order), "dnnl_stream_create");
  Attributes attributes = nullptr;
  require_success(api.primitive_attr_create(&attributes), "dnnl_primitive_attr_create");
  // A scratchpad of oneDNN's own would bind a primitive to the thread that created it.
  require_success(api.primitive_attr_set_scratchpad_mode(attributes, scratchpad_of_user),
                  "dnnl_primitive_attr_set_scratchpad_mode");
  attributes_ = attributes;
  const Version* version = api.version();
  text_ = std::to_string(version->major) + "." + std::to_string(version->minor) + "." +
          std::to_string(version->patch) + " at " + path;
}

const FoundLibrary& found_library() {
  static const auto* const result = new FoundLibrary(search_without_throwing());
  return *result;
}

}  // namespace gemmery::host::onednn
