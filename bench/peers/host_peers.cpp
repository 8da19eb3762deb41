// SPDX-License-Identifier: Apache-2.0
// The CPU's kernels against oneDNN and OpenBLAS called directly, in one process, in interleaved
// pairs.
//
//   host_peers [--pairs N] [--size N]…
//
// Prints one line for each comparison: the median ratio of the pairs (above 1: ours is faster), its
// 10th and 90th percentile, the median rates; and the ratio and rates of each one's best time,
// which say more on a machine that others use too. Both libraries are opened at run time; oneDNN
// directly needs its header at build time.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <gemmery/discovery.hpp>

#include "onednn_functions.hpp"
#include "pairs.hpp"

namespace {

using gemmery::DType;
using gemmery::GemmArguments;
using gemmery::Tensor;
using gemmery::bench::open_library;
#if HAS_ONEDNN_HEADER
using gemmery::bench::succeeded;
#endif

// --- operands ---

struct Types {
  const char* name;
  DType input;
  DType output;
};

// Square matrices; random bits that encode small numbers in every type.
struct Operands {
  std::int64_t side;
  Types types;
  std::vector<std::byte> a, b, ours, theirs;

  Operands(std::int64_t n, Types chosen)
      : side(n),
        types(chosen),
        a(bytes(types.input)),
        b(bytes(types.input)),
        ours(bytes(types.output)),
        theirs(bytes(types.output)) {
    fill(a);
    fill(b);
  }
  GemmArguments arguments() {
    return {Tensor(a.data(), types.input, {side, side}),
            Tensor(b.data(), types.input, {side, side}),
            Tensor(ours.data(), types.output, {side, side})};
  }

 private:
  std::size_t bytes(DType dtype) const {
    return static_cast<std::size_t>(side * side) * gemmery::byte_width(dtype);
  }

  void fill(std::vector<std::byte>& memory) const {
    static std::mt19937 random(1);
    std::normal_distribution<float> normal;
    for (std::size_t i = 0; i < static_cast<std::size_t>(side * side); ++i) {
      const float value = normal(random);
      std::uint32_t bits = 0;
      std::memcpy(&bits, &value, sizeof bits);
      const auto top = static_cast<std::uint16_t>(bits >> 16);
      const auto integer =
          static_cast<std::int8_t>(std::lround(30 * std::clamp(value, -4.0f, 4.0f)));
      if (types.input == DType::float32)
        std::memcpy(memory.data() + 4 * i, &bits, 4);
      else if (types.input == DType::bfloat16)
        std::memcpy(memory.data() + 2 * i, &top, 2);
      else
        std::memcpy(memory.data() + i, &integer, 1);
    }
  }
};

using gemmery::bench::Run;

// --- ours ---

Run our_kernel(const GemmArguments& arguments, const std::string& family) {
  const gemmery::Filter filter{
      .metadata =
          [&](const gemmery::Metadata& metadata) { return metadata.kernel_class == family; },
      .target = {},
      .providers = {"host"}};
  const auto kernels = gemmery::get_kernels(arguments, filter);
  if (kernels.empty()) return {};
  const gemmery::Kernel kernel = kernels.front();
  return [kernel, &arguments] { kernel.run(arguments, {.stream = gemmery::Stream::cpu()}); };
}

// --- theirs ---

Run openblas(Operands& operands) {
  using Sgemm = void(int, int, int, int, int, int, float, const float*, int, const float*, int,
                     float, float*, int);
  if (operands.types.input != DType::float32) return {};
  static void* const library = open_library("libopenblas.so.0");
  if (library == nullptr) return {};
  auto* const sgemm = reinterpret_cast<Sgemm*>(dlsym(library, "cblas_sgemm"));
  if (sgemm == nullptr) return {};
  return [&operands, sgemm] {
    constexpr int row_major = 101, as_it_is = 111;
    const int n = static_cast<int>(operands.side);
    sgemm(row_major, as_it_is, as_it_is, n, n, n, 1,
          reinterpret_cast<const float*>(operands.a.data()), n,
          reinterpret_cast<const float*>(operands.b.data()), n, 0,
          reinterpret_cast<float*>(operands.theirs.data()), n);
  };
}

#if HAS_ONEDNN_HEADER

dnnl_data_type_t onednn_type(DType dtype) {
  switch (dtype) {
    case DType::bfloat16:
      return dnnl_bf16;
    case DType::int8:
      return dnnl_s8;
    case DType::int32:
      return dnnl_s32;
    default:
      return dnnl_f32;
  }
}

struct OnednnMemory {
  dnnl_memory_desc_t descriptor{};
  dnnl_memory_t memory = nullptr;

  OnednnMemory(dnnl_engine_t engine, DType dtype, std::int64_t side, void* data) {
    const dnnl_dims_t dimensions = {side, side};
    const dnnl_dims_t strides = {side, 1};
#if DNNL_VERSION_MAJOR >= 3
    ONEDNN(dnnl_memory_desc_create_with_strides)
    (&descriptor, 2, dimensions, onednn_type(dtype), strides);
    ONEDNN(dnnl_memory_create)(&memory, descriptor, engine, data);
#else
    ONEDNN(dnnl_memory_desc_init_by_strides)
    (&descriptor, 2, dimensions, onednn_type(dtype), strides);
    ONEDNN(dnnl_memory_create)(&memory, &descriptor, engine, data);
#endif
  }
};

dnnl_primitive_desc_t describe(dnnl_engine_t engine, OnednnMemory& a, OnednnMemory& b,
                               OnednnMemory& out) {
  dnnl_primitive_desc_t descriptor = nullptr;
#if DNNL_VERSION_MAJOR >= 3
  ONEDNN(dnnl_matmul_primitive_desc_create)
  (&descriptor, engine, a.descriptor, b.descriptor, nullptr, out.descriptor, nullptr);
#else
  dnnl_matmul_desc_t operation{};
  ONEDNN(dnnl_matmul_desc_init)(&operation, &a.descriptor, &b.descriptor, nullptr, &out.descriptor);
  ONEDNN(dnnl_primitive_desc_create)(&descriptor, &operation, nullptr, engine, nullptr);
#endif
  return descriptor;
}

// Everything is made once; a call is one execution. Kept until the process ends.
Run onednn(Operands& operands) {
  if (ONEDNN(dnnl_engine_create) == nullptr) return {};
  dnnl_engine_t engine = nullptr;
  dnnl_stream_t stream = nullptr;
  if (!succeeded(ONEDNN(dnnl_engine_create)(&engine, dnnl_cpu, 0)) ||
      !succeeded(ONEDNN(dnnl_stream_create)(&stream, engine, dnnl_stream_default_flags)))
    return {};
  OnednnMemory a(engine, operands.types.input, operands.side, operands.a.data());
  OnednnMemory b(engine, operands.types.input, operands.side, operands.b.data());
  OnednnMemory out(engine, operands.types.output, operands.side, operands.theirs.data());
  const dnnl_primitive_desc_t descriptor = describe(engine, a, b, out);
  dnnl_primitive_t primitive = nullptr;
  if (descriptor == nullptr || !succeeded(ONEDNN(dnnl_primitive_create)(&primitive, descriptor)))
    return {};
  const std::vector<dnnl_exec_arg_t> arguments{
      {DNNL_ARG_SRC, a.memory}, {DNNL_ARG_WEIGHTS, b.memory}, {DNNL_ARG_DST, out.memory}};
  auto* const execute = ONEDNN(dnnl_primitive_execute);
  auto* const wait = ONEDNN(dnnl_stream_wait);
  return [=] {
    if (!succeeded(
            execute(primitive, stream, static_cast<int>(arguments.size()), arguments.data())))
      std::abort();
    wait(stream);
  };
}

#else

Run onednn(Operands&) { return {}; }

#endif

// --- pairs ---

struct Pair {
  std::string ours, theirs;
  Run our_run, their_run;
};

void compare(const Operands& operands, const Pair& pair, int pairs) {
  std::printf("%-5s %5lld^3  %-12s vs %-9s ", operands.types.name,
              static_cast<long long>(operands.side), pair.ours.c_str(), pair.theirs.c_str());
  if (!pair.our_run || !pair.their_run) {
    std::printf("not available: %s\n", !pair.our_run ? pair.ours.c_str() : pair.theirs.c_str());
    return;
  }
  const double gflop = 2e-9 * std::pow(static_cast<double>(operands.side), 3);
  gemmery::bench::print_pairs(pair.our_run, pair.their_run, pairs, gflop);
}

void compare_size(std::int64_t side, int pairs) {
  for (const Types types : {Types{"f32", DType::float32, DType::float32},
                            Types{"bf16", DType::bfloat16, DType::float32},
                            Types{"bf16d", DType::bfloat16, DType::bfloat16},
                            Types{"int8", DType::int8, DType::int32}}) {
    Operands operands(side, types);
    const GemmArguments arguments = operands.arguments();
    compare(operands,
            {"host_onednn", "oneDNN", our_kernel(arguments, "host_onednn"), onednn(operands)},
            pairs);
    compare(operands,
            {"host_plain", "oneDNN", our_kernel(arguments, "host_plain"), onednn(operands)}, pairs);
    if (types.input == DType::float32)
      compare(operands,
              {"host_plain", "OpenBLAS", our_kernel(arguments, "host_plain"), openblas(operands)},
              pairs);
  }
}

}  // namespace

int main(int count, char** words) {
  int pairs = 15;
  std::vector<std::int64_t> sizes;
  for (int i = 1; i + 1 < count; i += 2) {
    if (std::strcmp(words[i], "--pairs") == 0) pairs = std::max(1, std::atoi(words[i + 1]));
    if (std::strcmp(words[i], "--size") == 0) sizes.push_back(std::atoll(words[i + 1]));
  }
  if (sizes.empty()) sizes = {256, 1024, 2048};
  for (const std::int64_t side : sizes) compare_size(side, pairs);
}
