// SPDX-License-Identifier: Apache-2.0
// The functions of the C API. Each runs in a guard that converts exceptions to results.
#include <gemmery/gemmery.h>
#include <gemmery/artifact.hpp>
#include <gemmery/buffer.hpp>
#include <gemmery/discovery.hpp>
#include <gemmery/version.hpp>

#include <algorithm>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "api/c_values.hpp"

// --- what the handles are -----------------------------------------------------------------------

// A kernel with its strings for C.
struct gemmery_kernel {
  explicit gemmery_kernel(gemmery::StoredArtifact stored);

  gemmery::Artifact artifact;
  std::string name, provider, family, targets, design, epilogue, problems, source, log;
};

struct gemmery_bundle {
  std::vector<std::unique_ptr<const gemmery_kernel>> kernels;
};

struct gemmery_launch {
  gemmery::PreparedLaunch prepared;
  gemmery::Device device;
};

struct gemmery_stream {
  gemmery::OwnedStream stream;
};

struct gemmery_buffer {
  gemmery::Buffer buffer;
};

namespace gemmery::c_api {
namespace {

// --- results ------------------------------------------------------------------------------------

std::string& last_error() {
  thread_local std::string text;
  return text;
}

gemmery_result fail(gemmery_result result, const char* text) noexcept {
  try {
    last_error() = text;
  } catch (const std::bad_alloc&) {
    last_error().clear();
  }
  return result;
}

gemmery_result result_of(ErrorKind kind) noexcept {
  switch (kind) {
    case ErrorKind::invalid_argument:
      return GEMMERY_INVALID_ARGUMENT;
    case ErrorKind::unsupported:
      return GEMMERY_UNSUPPORTED;
    case ErrorKind::unavailable:
      return GEMMERY_UNAVAILABLE;
    case ErrorKind::compile:
      return GEMMERY_COMPILE;
    case ErrorKind::launch:
      return GEMMERY_LAUNCH;
    case ErrorKind::out_of_memory:
      return GEMMERY_OUT_OF_MEMORY;
    case ErrorKind::io:
      return GEMMERY_IO;
  }
  return GEMMERY_INTERNAL;
}

template <class Body>
gemmery_result guarded(Body&& body) noexcept {
  try {
    body();
    return GEMMERY_OK;
  } catch (const Error& error) {
    return fail(result_of(error.kind()), error.what());
  } catch (const std::bad_alloc&) {
    return fail(GEMMERY_OUT_OF_MEMORY, "out of memory: on the host");
  } catch (const std::exception& error) {
    return fail(GEMMERY_INTERNAL, error.what());
  } catch (...) {
    return fail(GEMMERY_INTERNAL, "an exception of unknown type");
  }
}

// Stores a new handle in `*place`, or NULL; returns the reason then.
template <class Handle, class Make>
gemmery_result make_handle(Handle** place, const char* name, Make&& make) noexcept {
  return guarded([&] {
    *required(place, name) = nullptr;
    *place = make().release();
  });
}

// --- texts --------------------------------------------------------------------------------------

std::string targets_text(const Artifact& artifact) {
  std::string text;
  for (const Target target : artifact.targets())
    text += (text.empty() ? "" : " ") + to_string(target);
  return text;
}

std::string design_text(const Metadata& metadata) {
  std::string text;
  for (const DesignField& field : metadata.design)
    text += (text.empty() ? "" : " ") + field.name + "=" + field.value;
  return text;
}

std::string lines_of(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

gemmery_kernel_info info_of(const gemmery_kernel& kernel) {
  const CodeResources unknown{.registers = -1};
  const CodeResources resources = kernel.artifact.resources().value_or(unknown);
  const Kernel& own = kernel.artifact.kernel();
  return {.struct_size = sizeof(gemmery_kernel_info),
          .name = kernel.name.c_str(),
          .provider = kernel.provider.c_str(),
          .family = kernel.family.c_str(),
          .targets = kernel.targets.c_str(),
          .design = kernel.design.c_str(),
          .epilogue = kernel.epilogue.c_str(),
          .problems = kernel.problems.c_str(),
          .source = kernel.source.c_str(),
          .log = kernel.log.c_str(),
          .registers = resources.registers,
          .static_shared_bytes = resources.static_shared_bytes,
          .spill_bytes = resources.spill_store_bytes + resources.spill_load_bytes,
          .deterministic = own.family().is_deterministic(own) ? 1 : 0};
}

// --- choosing -----------------------------------------------------------------------------------

bool has_code_for(const gemmery_kernel& kernel, const DeviceInfo& device) {
  return std::ranges::any_of(kernel.artifact.targets(),
                             [&](Target target) { return runs_on(target, device.target); });
}

Status serves(const gemmery_kernel& kernel, const GemmProblem& problem, const DeviceInfo& device) {
  if (!has_code_for(kernel, device)) {
    return Status::fail("target: expected code for " + to_string(device.target) + ", got " +
                        kernel.targets);
  }
  return kernel.artifact.kernel().supports(problem, device);
}

std::string refusals(const gemmery_bundle& bundle, const GemmProblem& problem,
                     const DeviceInfo& device) {
  std::string text;
  for (const auto& kernel : bundle.kernels)
    text += "\n  " + kernel->name + ": " + serves(*kernel, problem, device).error();
  return text;
}

// Discovery ranks the kernels that serve the problem; the first of them that the bundle contains is
// the best.
const gemmery_kernel& find_best(const gemmery_bundle& bundle, const GemmProblem& problem,
                                const DeviceInfo& device) {
  std::vector<const gemmery_kernel*> fitting;
  for (const auto& kernel : bundle.kernels) {
    if (serves(*kernel, problem, device)) fitting.push_back(kernel.get());
  }
  if (fitting.empty()) {
    throw Error({.kind = ErrorKind::unsupported,
                 .operand = to_string(problem),
                 .expected = "a kernel of the bundle that serves it on " + device.name,
                 .got = "none of " + std::to_string(bundle.kernels.size()),
                 .hint = "compile one for it into the bundle",
                 .cause = refusals(bundle, problem, device)});
  }
  if (fitting.size() == 1) return *fitting.front();
  for (const RankedKernel& ranked : get_kernels(problem, device)) {
    for (const gemmery_kernel* const kernel : fitting) {
      if (kernel->artifact.kernel() == static_cast<const Kernel&>(ranked)) return *kernel;
    }
  }
  return *fitting.front();
}

Workspace to_workspace(const gemmery_workspace* workspace) {
  if (workspace == nullptr) return {};
  const gemmery_workspace known = read_struct(workspace, sizeof(gemmery_workspace), "workspace");
  return {.data = known.data, .bytes = known.bytes};
}

void check_copy(std::size_t bytes, const Buffer& buffer) {
  if (bytes <= buffer.bytes()) return;
  refuse_argument("bytes", "at most the buffer's " + std::to_string(buffer.bytes()),
                  std::to_string(bytes));
}

}  // namespace
}  // namespace gemmery::c_api

gemmery_kernel::gemmery_kernel(gemmery::StoredArtifact stored)
    : artifact(std::move(stored.artifact)) {
  const gemmery::Metadata metadata = artifact.kernel().metadata();
  name = metadata.kernel_name;
  provider = metadata.provider;
  family = metadata.kernel_class;
  targets = gemmery::c_api::targets_text(artifact);
  design = gemmery::c_api::design_text(metadata);
  epilogue = metadata.epilogue;
  problems = gemmery::c_api::lines_of(stored.problems);
  source = artifact.source();
  log = artifact.log();
}

using namespace gemmery::c_api;

extern "C" {

// --- results ------------------------------------------------------------------------------------

const char* gemmery_last_error(void) { return last_error().c_str(); }

const char* gemmery_result_name(gemmery_result result) {
#define GEMMERY_NAME_OF(value) \
  case value:                  \
    return #value
  switch (result) {
    GEMMERY_NAME_OF(GEMMERY_OK);
    GEMMERY_NAME_OF(GEMMERY_INVALID_ARGUMENT);
    GEMMERY_NAME_OF(GEMMERY_UNSUPPORTED);
    GEMMERY_NAME_OF(GEMMERY_UNAVAILABLE);
    GEMMERY_NAME_OF(GEMMERY_COMPILE);
    GEMMERY_NAME_OF(GEMMERY_LAUNCH);
    GEMMERY_NAME_OF(GEMMERY_OUT_OF_MEMORY);
    GEMMERY_NAME_OF(GEMMERY_IO);
    GEMMERY_NAME_OF(GEMMERY_INTERNAL);
  }
#undef GEMMERY_NAME_OF
  return "unknown";
}

const char* gemmery_library_version(void) { return gemmery::version(); }

// --- devices ------------------------------------------------------------------------------------

gemmery_result gemmery_parse_device(const char* text, gemmery_device* device) {
  return guarded([&] {
    const auto parsed = gemmery::parse_device(required(text, "text"));
    if (!parsed)
      refuse_argument("device", "cpu, cuda:0, emulated:h200, ...", "\"" + std::string(text) + "\"");
    *required(device, "device") = from_device(*parsed);
  });
}

gemmery_result gemmery_count_devices(int32_t* count) {
  return guarded(
      [&] { *required(count, "count") = static_cast<int32_t>(gemmery::devices().size()); });
}

// --- bundles ------------------------------------------------------------------------------------

gemmery_result gemmery_load_bundle(const char* path, gemmery_bundle** bundle) {
  return make_handle(bundle, "bundle", [&] {
    auto made = std::make_unique<gemmery_bundle>();
    for (gemmery::StoredArtifact& stored : gemmery::load_artifacts(required(path, "path")))
      made->kernels.push_back(std::make_unique<const gemmery_kernel>(std::move(stored)));
    return made;
  });
}

void gemmery_free_bundle(gemmery_bundle* bundle) { delete bundle; }

size_t gemmery_count_kernels(const gemmery_bundle* bundle) {
  return bundle == nullptr ? 0 : bundle->kernels.size();
}

gemmery_result gemmery_get_kernel(const gemmery_bundle* bundle, size_t index,
                                  const gemmery_kernel** kernel) {
  return guarded([&] {
    *required(kernel, "kernel") = nullptr;
    const auto& kernels = required(bundle, "bundle")->kernels;
    if (index >= kernels.size())
      refuse_argument("index", "less than " + std::to_string(kernels.size()),
                      std::to_string(index));
    *kernel = kernels[index].get();
  });
}

gemmery_result gemmery_find_kernel(const gemmery_bundle* bundle, const char* problem,
                                   gemmery_device device, const gemmery_kernel** kernel) {
  return guarded([&] {
    *required(kernel, "kernel") = nullptr;
    required(bundle, "bundle");
    const gemmery::ProblemLine line = gemmery::parse_problem(required(problem, "problem"));
    *kernel = &find_best(*bundle, line.problem, gemmery::device_info(to_device(device)));
  });
}

gemmery_result gemmery_describe_kernel(const gemmery_kernel* kernel, gemmery_kernel_info* info) {
  return guarded([&] {
    write_struct(info_of(*required(kernel, "kernel")), sizeof(gemmery_kernel_info), info, "info");
  });
}

// --- questions ----------------------------------------------------------------------------------

gemmery_result gemmery_supports(const gemmery_kernel* kernel, const gemmery_gemm* gemm) {
  return guarded([&] {
    const gemmery::Kernel& own = required(kernel, "kernel")->artifact.kernel();
    const gemmery::Status status = own.supports(to_arguments(gemm));
    if (status) return;
    throw gemmery::Error(
        {.kind = gemmery::ErrorKind::unsupported, .operand = kernel->name, .got = status.error()});
  });
}

gemmery_result gemmery_get_workspace_size(const gemmery_kernel* kernel, const gemmery_gemm* gemm,
                                          size_t* bytes) {
  return guarded([&] {
    const gemmery::Kernel& own = required(kernel, "kernel")->artifact.kernel();
    *required(bytes, "bytes") = own.get_workspace_size(to_arguments(gemm));
  });
}

// --- running ------------------------------------------------------------------------------------

gemmery_result gemmery_load_kernel(const gemmery_kernel* kernel, gemmery_device device) {
  return guarded([&] { required(kernel, "kernel")->artifact.load(to_device(device)); });
}

gemmery_result gemmery_run(const gemmery_kernel* kernel, const gemmery_gemm* gemm, void* stream,
                           const gemmery_workspace* workspace) {
  return guarded([&] {
    const gemmery::Artifact& artifact = required(kernel, "kernel")->artifact;
    const gemmery::GemmArguments arguments = to_arguments(gemm);
    artifact.kernel().run(arguments, {.artifact = &artifact,
                                      .stream = gemmery::Stream::of(stream, arguments.device()),
                                      .workspace = to_workspace(workspace)});
  });
}

gemmery_result gemmery_bind(const gemmery_kernel* kernel, const gemmery_gemm* gemm,
                            gemmery_launch** launch) {
  return make_handle(launch, "launch", [&] {
    const gemmery::GemmArguments arguments = to_arguments(gemm);
    return std::make_unique<gemmery_launch>(
        gemmery_launch{required(kernel, "kernel")->artifact.bind(arguments), arguments.device()});
  });
}

gemmery_result gemmery_set_data(gemmery_launch* launch, const char* operand, const void* data) {
  return guarded(
      [&] { required(launch, "launch")->prepared.set_data(required(operand, "operand"), data); });
}

gemmery_result gemmery_set_scalars(gemmery_launch* launch, double alpha, double beta) {
  return guarded([&] { required(launch, "launch")->prepared.set_scalars(alpha, beta); });
}

gemmery_result gemmery_put(gemmery_launch* launch, void* stream) {
  return guarded([&] {
    required(launch, "launch")->prepared.launch(gemmery::Stream::of(stream, launch->device));
  });
}

void gemmery_free_launch(gemmery_launch* launch) { delete launch; }

// --- memory and streams -------------------------------------------------------------------------

gemmery_result gemmery_make_stream(gemmery_device device, gemmery_stream** stream) {
  return make_handle(stream, "stream", [&] {
    return std::make_unique<gemmery_stream>(
        gemmery_stream{gemmery::OwnedStream(to_device(device))});
  });
}

void* gemmery_stream_handle(const gemmery_stream* stream) {
  return stream == nullptr ? nullptr : stream->stream.get().handle();
}

gemmery_result gemmery_synchronize(const gemmery_stream* stream) {
  return guarded([&] { gemmery::synchronize(required(stream, "stream")->stream); });
}

void gemmery_free_stream(gemmery_stream* stream) { delete stream; }

gemmery_result gemmery_make_buffer(size_t bytes, const gemmery_stream* stream,
                                   gemmery_buffer** buffer) {
  return make_handle(buffer, "buffer", [&] {
    return std::make_unique<gemmery_buffer>(
        gemmery_buffer{gemmery::Buffer(bytes, required(stream, "stream")->stream)});
  });
}

void* gemmery_buffer_data(const gemmery_buffer* buffer) {
  return buffer == nullptr ? nullptr : buffer->buffer.data();
}

void gemmery_free_buffer(gemmery_buffer* buffer) { delete buffer; }

gemmery_result gemmery_copy_in(gemmery_buffer* buffer, const void* host, size_t bytes,
                               const gemmery_stream* stream) {
  return guarded([&] {
    const gemmery::Buffer& own = required(buffer, "buffer")->buffer;
    check_copy(bytes, own);
    gemmery::copy(own.data(), own.device(), required(host, "host"), gemmery::Device::cpu(), bytes,
                  required(stream, "stream")->stream);
  });
}

gemmery_result gemmery_copy_out(void* host, const gemmery_buffer* buffer, size_t bytes,
                                const gemmery_stream* stream) {
  return guarded([&] {
    const gemmery::Buffer& own = required(buffer, "buffer")->buffer;
    check_copy(bytes, own);
    gemmery::copy(required(host, "host"), gemmery::Device::cpu(), own.data(), own.device(), bytes,
                  required(stream, "stream")->stream);
  });
}

}  // extern "C"
