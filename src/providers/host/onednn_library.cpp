// SPDX-License-Identifier: Apache-2.0
// Finds oneDNN, opens versions 2 and 3, and says why where it does not.
#include "providers/host/onednn_library.hpp"

#include <vector>

#include "platform/environment.hpp"
#include "platform/library.hpp"

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

// Fills a table; notes the first name that is missing.
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
    PrimitiveDescriptor descriptor = nullptr;
    require_success(
        own_.primitive_desc_create(&descriptor, &operation, attributes(), engine(), nullptr),
        "dnnl_primitive_desc_create");
    return descriptor;
  }

 private:
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
    return descriptor;
  }

 private:
  struct Destroy {
    Status (*destroy)(MemoryDescriptor);
    void operator()(MemoryDescriptor descriptor) const { destroy(descriptor); }
  };
  using Descriptor = std::unique_ptr<const void, Destroy>;

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
    symbols.find(api.matmul_desc_init, "dnnl_matmul_desc_init");
    symbols.find(api.primitive_desc_create, "dnnl_primitive_desc_create");
  });
}

FoundLibrary open_v3(const platform::SharedLibrary& file) {
  return open_version<ApiV3, LibraryV3>(file, [](Symbols& symbols, ApiV3& api) {
    symbols.find(api.memory_desc_create_with_strides, "dnnl_memory_desc_create_with_strides");
    symbols.find(api.memory_desc_destroy, "dnnl_memory_desc_destroy");
    symbols.find(api.matmul_primitive_desc_create, "dnnl_matmul_primitive_desc_create");
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
