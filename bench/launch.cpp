// SPDX-License-Identifier: Apache-2.0
// Host time of a launch beyond the driver's own: prepared launches and `run` against raw
// cuLaunchKernelEx of the same kernel with the same parameters and attributes on the same stream,
// in interleaved calls. For a kernel without tensor maps, and for sm90 kernels, which encode three
// of them in every `run`. Usage: launch [CALLS] [DEVICE]
#include <gemmery/gemmery.hpp>

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using gemmery::Buffer;
using gemmery::Device;
using gemmery::Stream;
using Clock = std::chrono::steady_clock;

// --- the driver, as far as a raw launch needs it (CUDA driver API 12.0) -------------------------

struct LaunchConfig {
  unsigned grid[3];
  unsigned block[3];
  unsigned shared_bytes;
  void* stream;
  void* attributes;
  unsigned attribute_count;
};

// The part of CUlaunchAttribute that the library's kernels use.
struct LaunchAttribute {
  int id;
  int padding;
  union {
    char bytes[64];
    unsigned cluster[3];
    int is_programmatic;
  } value;
};
constexpr int cluster_attribute = 4;
constexpr int programmatic_attribute = 6;

struct KernelNode {
  void* function;
  unsigned grid[3];
  unsigned block[3];
  unsigned shared_bytes;
  void** parameters;
  void** extra;
  void* kernel;
  void* context;
};

class RawDriver {
 public:
  RawDriver() : library_(dlopen("libcuda.so.1", RTLD_NOW)) {
    if (library_ == nullptr) throw std::runtime_error(dlerror());
    find(init, "cuInit");
    find(get_device, "cuDeviceGet");
    find(retain, "cuDevicePrimaryCtxRetain");
    find(set_current, "cuCtxSetCurrent");
    find(begin_capture, "cuStreamBeginCapture_v2");
    find(end_capture, "cuStreamEndCapture");
    find(get_nodes, "cuGraphGetNodes");
    find(get_node, "cuGraphKernelNodeGetParams_v2");
    find(get_attribute, "cuGraphKernelNodeGetAttribute");
    find(launch, "cuLaunchKernelEx");
  }

  int (*init)(unsigned) = nullptr;
  int (*get_device)(int*, int) = nullptr;
  int (*retain)(void**, int) = nullptr;
  int (*set_current)(void*) = nullptr;
  int (*begin_capture)(void*, int) = nullptr;
  int (*end_capture)(void*, void**) = nullptr;
  int (*get_nodes)(void*, void**, std::size_t*) = nullptr;
  int (*get_node)(void*, KernelNode*) = nullptr;
  int (*get_attribute)(void*, int, void*) = nullptr;
  int (*launch)(const LaunchConfig*, void*, void**, void**) = nullptr;

 private:
  template <class Function>
  void find(Function& function, const char* name) {
    function = reinterpret_cast<Function>(dlsym(library_, name));
    if (function == nullptr) throw std::runtime_error(std::string("libcuda.so.1 has no ") + name);
  }

  void* library_;
};

void require(int result, const char* call) {
  if (result != 0) throw std::runtime_error(fmt::format("{} failed with {}", call, result));
}

// The launch recorded by capturing a prepared launch: the same function, shape, attributes and
// parameter bytes, without the library's code.
class RawLaunch {
 public:
  RawLaunch(const RawDriver& driver, gemmery::PreparedLaunch& prepared, Stream stream)
      : driver_(driver) {
    require(driver.begin_capture(stream.handle(), 2), "cuStreamBeginCapture");
    prepared.launch(stream);
    void* graph = nullptr;  // kept: it owns the parameters
    require(driver.end_capture(stream.handle(), &graph), "cuStreamEndCapture");
    std::size_t count = 1;
    void* node = nullptr;
    require(driver.get_nodes(graph, &node, &count), "cuGraphGetNodes");
    require(driver.get_node(node, &node_), "cuGraphKernelNodeGetParams");
    config_ = {.grid = {node_.grid[0], node_.grid[1], node_.grid[2]},
               .block = {node_.block[0], node_.block[1], node_.block[2]},
               .shared_bytes = node_.shared_bytes,
               .stream = stream.handle(),
               .attributes = attributes_.data(),
               .attribute_count = take_attributes(node)};
  }
  RawLaunch(const RawLaunch&) = delete;
  RawLaunch& operator=(const RawLaunch&) = delete;

  void operator()() const {
    require(driver_.launch(&config_, node_.function, node_.parameters, nullptr),
            "cuLaunchKernelEx");
  }

  // "cluster 2x1x1, programmatic"
  std::string attribute_text() const {
    std::string text;
    for (unsigned index = 0; index < config_.attribute_count; ++index) {
      const auto& [id, padding, value] = attributes_[index];
      text += index > 0 ? ", " : "";
      text += id == programmatic_attribute ? "programmatic"
                                           : fmt::format("cluster {}x{}x{}", value.cluster[0],
                                                         value.cluster[1], value.cluster[2]);
    }
    return text.empty() ? "no attributes" : text;
  }

 private:
  // Takes the node's attributes that differ from the defaults, as a caller would pass them; returns
  // their number.
  unsigned take_attributes(void* node) {
    unsigned count = 0;
    for (const int id : {cluster_attribute, programmatic_attribute}) {
      LaunchAttribute attribute{};
      attribute.id = id;
      if (driver_.get_attribute(node, id, &attribute.value) != 0) continue;
      const auto* const cluster = attribute.value.cluster;
      const bool is_default = id == programmatic_attribute
                                  ? attribute.value.is_programmatic == 0
                                  : cluster[0] * cluster[1] * cluster[2] <= 1;
      if (!is_default) attributes_[count++] = attribute;
    }
    return count;
  }

  const RawDriver& driver_;
  KernelNode node_{};
  std::array<LaunchAttribute, 2> attributes_{};
  LaunchConfig config_{};
};

// --- measuring ----------------------------------------------------------------------------------

template <class Call>
double time_us(const Call& call) {
  const Clock::time_point start = Clock::now();
  call();
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

struct Spread {
  double lower_quartile, median, upper_quartile;
};

Spread spread_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const auto at = [&](double share) {
    return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
  };
  return {at(0.25), at(0.5), at(0.75)};
}

// Interleaves raw launches and the library's. The queue is emptied before it is full (1024), since
// the driver then blocks the caller.
template <class Raw, class Ours>
void compare(const std::string& name, double limit_us, int calls, Stream stream, const Raw& raw,
             const Ours& ours) {
  std::vector<double> raw_us, ours_us;
  for (int call = -200; call < calls; ++call) {
    if (call % 100 == 0) gemmery::synchronize(stream);
    // The order alternates: the first launch after the queue ran empty is slower.
    double of_raw = 0;
    double of_ours = 0;
    if (call % 2 == 0) {
      of_raw = time_us(raw);
      of_ours = time_us(ours);
    } else {
      of_ours = time_us(ours);
      of_raw = time_us(raw);
    }
    if (call < 0) continue;
    raw_us.push_back(of_raw);
    ours_us.push_back(of_ours);
  }
  gemmery::synchronize(stream);
  const Spread r = spread_of(raw_us);
  const Spread o = spread_of(ours_us);
  fmt::print(
      "{:<26} raw {:.3f} us ({:.3f} to {:.3f}), ours {:.3f} us ({:.3f} to {:.3f}), above raw "
      "{:+.3f} us, allowed {:+.1f}: {}\n",
      name, r.median, r.lower_quartile, r.upper_quartile, o.median, o.lower_quartile,
      o.upper_quartile, o.median - r.median, limit_us,
      o.median - r.median <= limit_us ? "held" : "missed");
  fmt::print(
      "{{\"bench\": \"launch\", \"path\": \"{}\", \"calls\": {}, \"raw_us\": {:.4f}, \"ours_us\": "
      "{:.4f}, \"above_raw_us\": {:.4f}}}\n",
      name, calls, r.median, o.median, o.median - r.median);
}

// --- what is launched ---------------------------------------------------------------------------

// A square problem, so small that the device is never the bottleneck, and the kernel that is
// launched for it.
struct Subject {
  const char* kernel_class;
  const char* cluster;  // of the design; empty: any
  gemmery::DType dtype;
  std::int64_t size;
};

constexpr Subject subjects[] = {
    {.kernel_class = "simt", .cluster = "", .dtype = gemmery::DType::float32, .size = 32},
    {.kernel_class = "sm90", .cluster = "1x1", .dtype = gemmery::DType::bfloat16, .size = 64},
    {.kernel_class = "sm90", .cluster = "2x1", .dtype = gemmery::DType::bfloat16, .size = 64},
};

std::optional<gemmery::Kernel> find_kernel_of(const Subject& subject,
                                              const gemmery::GemmArguments& arguments) {
  for (const auto& kernel : gemmery::get_kernels(arguments)) {
    const gemmery::Metadata metadata = kernel.metadata();
    const bool fits =
        metadata.kernel_class == subject.kernel_class &&
        (*subject.cluster == 0 || metadata.design_value("cluster") == subject.cluster);
    if (fits && kernel.get_workspace_size(arguments) == 0) return kernel;
  }
  return std::nullopt;
}

// As in a program that uses the CUDA run time, the device's primary context is current.
void* make_context_current(const RawDriver& driver, Device device) {
  require(driver.init(0), "cuInit");
  int ordinal = 0;
  void* context = nullptr;
  require(driver.get_device(&ordinal, device.index), "cuDeviceGet");
  require(driver.retain(&context, ordinal), "cuDevicePrimaryCtxRetain");
  require(driver.set_current(context), "cuCtxSetCurrent");
  return context;
}

// One kernel with operands, prepared for every kind of launch.
struct Scene {
  Buffer a, b, out;
  gemmery::GemmArguments arguments;
  gemmery::Kernel kernel;
  gemmery::Artifact artifact;
};

// nullopt if the device has no such kernel.
std::optional<Scene> make_scene(const Subject& subject, Stream stream) {
  const auto bytes =
      static_cast<std::size_t>(subject.size * subject.size) * gemmery::byte_width(subject.dtype);
  Buffer a(bytes, stream), b(bytes, stream), out(bytes, stream);
  for (const Buffer* const buffer : {&a, &b, &out})
    gemmery::fill(buffer->data(), 0, buffer->bytes(), stream);
  const auto matrix = [&](const Buffer& buffer) {
    return gemmery::Tensor(buffer.data(), subject.dtype, {subject.size, subject.size},
                           stream.device());
  };
  const gemmery::GemmArguments arguments(matrix(a), matrix(b), matrix(out));
  const auto kernel = find_kernel_of(subject, arguments);
  if (!kernel) return std::nullopt;
  gemmery::Artifact artifact = kernel->compile(arguments);
  return Scene{std::move(a), std::move(b), std::move(out), arguments, *kernel, std::move(artifact)};
}

void compare_runs(const Scene& scene, const RawLaunch& raw, int calls, Stream stream) {
  const gemmery::RunOptions with_artifact{.artifact = &scene.artifact, .stream = stream};
  gemmery::RunOptions unchecked = with_artifact;
  unchecked.assume_supported = true;
  compare("run with artifact", 1.5, calls, stream, raw,
          [&] { scene.kernel.run(scene.arguments, with_artifact); });
  compare("run, assume_supported", 1.5, calls, stream, raw,
          [&] { scene.kernel.run(scene.arguments, unchecked); });
  compare("run without artifact", 1.5, calls, stream, raw,
          [&] { scene.kernel.run(scene.arguments, {.stream = stream}); });
}

void compare_prepared(const Scene& scene, gemmery::PreparedLaunch& prepared, const RawLaunch& raw,
                      int calls, Stream stream) {
  compare("prepared", 0.5, calls, stream, raw, [&] { prepared.launch(stream); });
  bool is_swapped = false;
  compare("prepared, new pointer", 1.5, calls, stream, raw, [&] {
    is_swapped = !is_swapped;
    prepared.set_data("A", is_swapped ? scene.b.data() : scene.a.data());
    prepared.launch(stream);
  });
}

void measure(const Subject& subject, const RawDriver& driver, int calls, Stream stream) {
  const std::string device = gemmery::device_info(stream.device()).name;
  const std::optional<Scene> scene = make_scene(subject, stream);
  if (!scene) {
    fmt::print("no {} kernel without workspace on {}\n", subject.kernel_class, device);
    return;
  }
  gemmery::PreparedLaunch prepared = scene->artifact.bind(scene->arguments);
  void* const context = make_context_current(driver, stream.device());
  const RawLaunch raw(driver, prepared, stream);
  fmt::print("{} on {}, {}, {} calls each\n", scene->kernel.name(), device, raw.attribute_text(),
             calls);
  compare("raw again", 0, calls, stream, raw, raw);
  compare_prepared(*scene, prepared, raw, calls, stream);
  compare_runs(*scene, raw, calls, stream);
  require(driver.set_current(nullptr), "cuCtxSetCurrent");
  compare(
      "prepared, no context", 0.5, calls, stream,
      [&] {
        driver.set_current(context);
        raw();
        driver.set_current(nullptr);
      },
      [&] { prepared.launch(stream); });
}

void measure_all(int calls, Device device) {
  const gemmery::OwnedStream stream(device);  // without a GPU it throws and says what is missing
  const RawDriver driver;
  for (const Subject& subject : subjects) measure(subject, driver, calls, stream);
}

}  // namespace

int main(int argument_count, char** arguments) {
  try {
    const int calls = argument_count > 1 ? std::atoi(arguments[1]) : 10'000;
    const int device = argument_count > 2 ? std::atoi(arguments[2]) : 0;
    measure_all(std::max(calls, 1), Device::cuda(device));
    return 0;
  } catch (const gemmery::Error& error) {
    // Without a GPU there is nothing to measure, which is no failure of this program.
    fmt::print(stderr, "launch: {}\n", error.what());
    return error.kind() == gemmery::ErrorKind::unavailable ? 77 : 1;
  } catch (const std::exception& error) {
    fmt::print(stderr, "launch: {}\n", error.what());
    return 1;
  }
}
