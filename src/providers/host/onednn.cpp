// SPDX-License-Identifier: Apache-2.0
// Finds oneDNN, hides which major version it is, and keeps its primitives.
#include "providers/host/onednn.hpp"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include <gemmery/error.hpp>

#include "platform/environment.hpp"
#include "platform/library.hpp"
#include "providers/host/scratch.hpp"

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

[[noreturn]] void fail(ErrorKind kind, const char* what, Status status) {
  throw Error({.kind = kind,
               .operand = "oneDNN",
               .expected = "success of " + std::string(what),
               .got = "status " + std::to_string(status),
               .hint = "another host kernel serves this problem",
               .cause = {}});
}

void require_success(Status status, const char* what) {
  if (status != success) fail(ErrorKind::unsupported, what, status);
}

// --- the library ---

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

// What the rest of this file needs of a version.
class Library {
 public:
  virtual ~Library() = default;
  // Throws Error where oneDNN refuses the shape.
  virtual PrimitiveDescriptor describe_matmul(const MatmulShape& shape) const = 0;

  const ApiCommon& api() const { return *api_; }
  Engine engine() const { return engine_; }
  Stream stream() const { return stream_; }
  const std::string& text() const { return text_; }

 protected:
  void open(const ApiCommon& api, const std::string& path) {
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
  Attributes attributes() const { return attributes_; }

 private:
  const ApiCommon* api_ = nullptr;
  Engine engine_ = nullptr;
  Stream stream_ = nullptr;
  Attributes attributes_ = nullptr;
  std::string text_;
};

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

struct Found {
  std::unique_ptr<const Library> library;
  std::string reason;  // why there is none
};

template <class Api, class Version, class FindOwn>
Found open_version(const platform::SharedLibrary& file, const FindOwn& find_own) {
  Symbols symbols(file);
  Api api{};
  find_common(symbols, api);
  find_own(symbols, api);
  if (!symbols.missing().empty())
    return {nullptr, "unavailable: " + file.path() + " has no function " + symbols.missing()};
  return {std::make_unique<Version>(api, file.path()), {}};
}

Found open_v2(const platform::SharedLibrary& file) {
  return open_version<ApiV2, LibraryV2>(file, [](Symbols& symbols, ApiV2& api) {
    symbols.find(api.memory_desc_init_by_strides, "dnnl_memory_desc_init_by_strides");
    symbols.find(api.matmul_desc_init, "dnnl_matmul_desc_init");
    symbols.find(api.primitive_desc_create, "dnnl_primitive_desc_create");
  });
}

Found open_v3(const platform::SharedLibrary& file) {
  return open_version<ApiV3, LibraryV3>(file, [](Symbols& symbols, ApiV3& api) {
    symbols.find(api.memory_desc_create_with_strides, "dnnl_memory_desc_create_with_strides");
    symbols.find(api.memory_desc_destroy, "dnnl_memory_desc_destroy");
    symbols.find(api.matmul_primitive_desc_create, "dnnl_matmul_primitive_desc_create");
  });
}

Found search() {
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

Found search_without_throwing() {
  try {
    return search();
  } catch (const std::exception& error) {
    return {nullptr, std::string("unavailable: ") + error.what()};
  }
}

const Found& found() {
  static const auto* const result = new Found(search_without_throwing());
  return *result;
}

// --- fork ---

std::atomic<bool> was_used{false};
std::atomic<bool> was_used_by_parent{false};
std::atomic<int> calls_in_flight{0};

// A call of another thread may hold locks, ours or oneDNN's, that nobody in the child will open.
void note_fork_in_child() {
  if (was_used || calls_in_flight > 0) was_used_by_parent = true;
}

// Around everything that enters oneDNN.
class CallInFlight {
 public:
  CallInFlight() {
    static const int registered = pthread_atfork(nullptr, nullptr, note_fork_in_child);
    static_cast<void>(registered);
    ++calls_in_flight;
  }
  ~CallInFlight() { --calls_in_flight; }
  CallInFlight(const CallInFlight&) = delete;
  CallInFlight& operator=(const CallInFlight&) = delete;
};

constexpr const char* forked_reason =
    "unavailable: forked child of a process that used oneDNN, whose threads do not survive fork";

const Library& library() {
  if (const gemmery::Status status = availability(); !status)
    throw Error({.kind = ErrorKind::unavailable,
                 .operand = "oneDNN",
                 .expected = {},
                 .got = status.error(),
                 .hint = {},
                 .cause = {}});
  return *found().library;
}

// --- primitives ---

// One primitive; usable from many threads at a time, since memory and scratchpad are the call's.
class Matmul {
 public:
  Matmul(const Library& library, const MatmulShape& shape)
      : library_(library), descriptor_(library.describe_matmul(shape)) {
    const Status status = api().primitive_create(&primitive_, descriptor_);
    if (status == success) return;
    api().primitive_desc_destroy(descriptor_);
    fail(ErrorKind::unsupported, "dnnl_primitive_create", status);
  }
  ~Matmul() {
    api().primitive_destroy(primitive_);
    api().primitive_desc_destroy(descriptor_);
  }
  Matmul(const Matmul&) = delete;
  Matmul& operator=(const Matmul&) = delete;

  void execute(const MemoryDescriptor (&descriptors)[3], const void* source, const void* weights,
               void* destination) const;
  void execute(const void* source, const void* weights, void* destination) const {
    const MemoryDescriptor descriptors[3] = {query(query_source_md), query(query_weights_md),
                                             query(query_destination_md)};
    execute(descriptors, source, weights, destination);
  }
  std::string name() const {
    const char* text = nullptr;
    require_success(
        api().primitive_desc_query(descriptor_, query_implementation, 0, static_cast<void*>(&text)),
        "dnnl_primitive_desc_query");
    return text == nullptr ? "" : text;
  }

 private:
  const ApiCommon& api() const { return library_.api(); }
  MemoryDescriptor query(int what) const {
    return api().primitive_desc_query_md(descriptor_, what, 0);
  }

  const Library& library_;
  PrimitiveDescriptor descriptor_;
  Primitive primitive_ = nullptr;
};

// The caller's memory as oneDNN sees it, for one call.
class MemoryView {
 public:
  MemoryView(const Library& library, MemoryDescriptor descriptor, const void* data)
      : api_(library.api()) {
    require_success(
        api_.memory_create(&memory_, descriptor, library.engine(), const_cast<void*>(data)),
        "dnnl_memory_create");
  }
  ~MemoryView() { api_.memory_destroy(memory_); }
  MemoryView(const MemoryView&) = delete;
  MemoryView& operator=(const MemoryView&) = delete;
  Memory get() const { return memory_; }

 private:
  const ApiCommon& api_;
  Memory memory_ = nullptr;
};

void Matmul::execute(const MemoryDescriptor (&descriptors)[3], const void* source,
                     const void* weights, void* destination) const {
  static thread_local Scratch scratch;
  const MemoryDescriptor scratchpad_md = query(query_scratchpad_md);
  void* scratchpad = scratch.reserve<std::byte>(api().memory_desc_get_size(scratchpad_md));
  const MemoryView views[4] = {{library_, descriptors[0], source},
                               {library_, descriptors[1], weights},
                               {library_, descriptors[2], destination},
                               {library_, scratchpad_md, scratchpad}};
  const ExecutionArgument arguments[4] = {{argument_source, views[0].get()},
                                          {argument_weights, views[1].get()},
                                          {argument_destination, views[2].get()},
                                          {argument_scratchpad, views[3].get()}};
  const Status status = api().primitive_execute(primitive_, library_.stream(), 4, arguments);
  if (status != success) fail(ErrorKind::launch, "dnnl_primitive_execute", status);
  require_success(api().stream_wait(library_.stream()), "dnnl_stream_wait");
}

// The primitives of the problems that were run last. Creating one compiles code: 0.1 to a few ms.
class MatmulCache {
 public:
  std::shared_ptr<const Matmul> get(const Library& library, const MatmulShape& shape) {
    {
      const std::scoped_lock lock(mutex_);
      if (auto known = find(shape)) return known;
    }
    auto made = std::make_shared<const Matmul>(library, shape);
    const std::scoped_lock lock(mutex_);
    if (auto known = find(shape)) return known;  // another thread was faster
    entries_.push_front({shape, made});
    if (entries_.size() > capacity) entries_.pop_back();
    return made;
  }

 private:
  static constexpr std::size_t capacity = 64;
  struct Entry {
    MatmulShape shape;
    std::shared_ptr<const Matmul> matmul;
  };

  std::shared_ptr<const Matmul> find(const MatmulShape& shape) {
    for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
      if (!(entry->shape == shape)) continue;
      entries_.splice(entries_.begin(), entries_, entry);
      return entries_.front().matmul;
    }
    return nullptr;
  }

  std::mutex mutex_;
  std::list<Entry> entries_;
};

MatmulCache& cache() {
  static auto* const all = new MatmulCache;
  return *all;
}

// --- what it can ---

OperandShape packed(DataType type, std::int64_t rows, std::int64_t columns) {
  return {.type = type, .extents = {1, rows, columns}, .strides = {rows * columns, columns, 1}};
}

bool is_integer(DataType type) { return type == DataType::s8 || type == DataType::u8; }

// Largest products of one sign: pairs of them do not fit 16 bits.
bool sums_are_exact(const MatmulShape& shape) {
  constexpr std::size_t side = 64;
  const auto extreme = [](DataType type) {
    return type == DataType::u8 ? std::uint8_t{255} : std::uint8_t{127};
  };
  const std::vector<std::uint8_t> source(side * side, extreme(shape.source.type));
  const std::vector<std::uint8_t> weights(side * side, extreme(shape.weights.type));
  std::vector<std::int32_t> sums(side * side);
  multiply(shape, source.data(), weights.data(), sums.data());
  const int expected =
      static_cast<int>(side) * extreme(shape.source.type) * extreme(shape.weights.type);
  for (const std::int32_t sum : sums)
    if (sum != expected) return false;
  return true;
}

// Rows whose end is not a multiple of anything, with NaN behind them: instructions that multiply
// groups along k must not read it.
bool ignores_what_lies_behind_rows() {
  constexpr std::int64_t side = 32, depth = 38, step = 64;
  constexpr std::uint16_t one = 0x3f80, nan = 0x7fc0;
  std::vector<std::uint16_t> source(side * step, nan);
  for (std::int64_t row = 0; row < side; ++row)
    std::fill_n(source.begin() + row * step, depth, one);
  const std::vector<std::uint16_t> weights(depth * side, one);
  std::vector<float> sums(side * side);
  MatmulShape shape{packed(DataType::bf16, side, depth), packed(DataType::bf16, depth, side),
                    packed(DataType::f32, side, side)};
  shape.source.strides = {side * step, step, 1};
  multiply(shape, source.data(), weights.data(), sums.data());
  return std::ranges::all_of(sums, [](float sum) { return sum == depth; });
}

bool try_types(DataType source, DataType weights, DataType destination) {
  const MatmulShape shape{packed(source, 64, 64), packed(weights, 64, 64),
                          packed(destination, 64, 64)};
  try {
    cache().get(library(), shape);
    if (is_integer(source)) return sums_are_exact(shape);
    return source != DataType::bf16 || ignores_what_lies_behind_rows();
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

gemmery::Status availability() {
  if (was_used_by_parent.load(std::memory_order_relaxed))
    return gemmery::Status::fail(forked_reason);
  return found().library ? gemmery::Status::success() : gemmery::Status::fail(found().reason);
}

std::string version_text() { return found().library ? found().library->text() : std::string(); }

bool multiplies(DataType source, DataType weights, DataType destination) {
  if (!availability()) return false;
  const CallInFlight call;
  static auto* const mutex = new std::mutex;
  static auto* const known = new std::map<std::array<DataType, 3>, bool>;
  const std::array<DataType, 3> types{source, weights, destination};
  const std::scoped_lock lock(*mutex);
  const auto entry = known->find(types);
  if (entry != known->end()) return entry->second;
  return known->emplace(types, try_types(source, weights, destination)).first->second;
}

void multiply(const MatmulShape& shape, const void* source, const void* weights,
              void* destination) {
  const Library& opened = library();
  const CallInFlight call;
  was_used = true;
  cache().get(opened, shape)->execute(source, weights, destination);
}

std::string implementation_name(const MatmulShape& shape) {
  const Library& opened = library();
  const CallInFlight call;
  return cache().get(opened, shape)->name();
}

}  // namespace gemmery::host::onednn
