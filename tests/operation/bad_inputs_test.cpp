// SPDX-License-Identifier: Apache-2.0
// Invalid inputs, one per row: each gives an error with the row's kind and operand, the expectation
// and the given value.
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <gemmery/gemmery.hpp>

#include <gemmery/dlpack_abi.hpp>

namespace gemmery {
namespace {

constexpr ErrorKind invalid = ErrorKind::invalid_argument;
constexpr ErrorKind unsupported = ErrorKind::unsupported;
constexpr ErrorKind unavailable = ErrorKind::unavailable;

struct BadInput {
  std::string name;
  ErrorKind kind;
  std::string operand;  // a part of the error's operand
  std::string got;      // a part of the given value in the error
  std::function<void()> act;
};

// --- memory that rows point at ---

struct Memory {
  alignas(64) std::array<std::byte, 1 << 16> bytes{};
  void* at(std::size_t offset) { return bytes.data() + offset; }
};
Memory& memory() {
  static Memory shared;
  return shared;
}
void* const a_memory = memory().at(0);
void* const b_memory = memory().at(16384);
void* const out_memory = memory().at(32768);
void* const c_memory = memory().at(49152);

using List = std::initializer_list<std::int64_t>;

Tensor f32(void* data, List shape) { return Tensor(data, DType::float32, shape); }
Tensor f32(void* data, List shape, List strides) {
  return Tensor(data, DType::float32, shape, strides);
}
Tensor of(DType dtype, void* data, List shape) { return Tensor(data, dtype, shape); }

const Tensor a43 = f32(a_memory, {4, 3});
const Tensor b35 = f32(b_memory, {3, 5});
const Tensor out45 = f32(out_memory, {4, 5});
const Tensor c45 = f32(c_memory, {4, 5});

void gemm(const Tensor& a, const Tensor& b, const Tensor& out, const GemmOptions& options = {}) {
  const GemmArguments arguments(a, b, out, options);
  (void)arguments;
}
GemmArguments good() { return GemmArguments(a43, b35, out45); }
GemmArguments good_with_c() { return GemmArguments(a43, b35, out45, {.c = c45, .beta = 1}); }

GemmOptions with_c(const Tensor& c) { return {.c = c, .beta = 1}; }

void* byte_at(void* data, std::size_t offset) { return static_cast<std::byte*>(data) + offset; }

// --- DLPack ---

struct Dlpack {
  std::array<std::int64_t, 8> shape{4, 3, 1, 1, 1, 1, 1, 1};
  std::array<std::int64_t, 8> strides{3, 1, 1, 1, 1, 1, 1, 1};
  dlpack::TensorLayout layout{.data = a_memory,
                              .device = {dlpack::device_cpu, 0},
                              .rank = 2,
                              .dtype = {2, 32, 1},
                              .shape = nullptr,
                              .strides = nullptr,
                              .byte_offset = 0};
};

std::function<void()> view_dlpack(const std::function<void(Dlpack&)>& spoil) {
  return [spoil] {
    Dlpack tensor;
    tensor.layout.shape = tensor.shape.data();
    tensor.layout.strides = tensor.strides.data();
    spoil(tensor);
    (void)from_dlpack(reinterpret_cast<const DLTensor&>(tensor.layout));
  };
}

std::function<void()> take_dlpack(std::uint32_t major_version) {
  return [major_version] {
    Dlpack tensor;
    tensor.layout.shape = tensor.shape.data();
    dlpack::ManagedVersionedLayout managed{.version = {major_version, 0},
                                           .context = nullptr,
                                           .deleter = [](dlpack::ManagedVersionedLayout*) {},
                                           .flags = 0,
                                           .tensor = tensor.layout};
    const DlpackTensor taken(reinterpret_cast<DLManagedTensorVersioned*>(&managed));
  };
}

// --- kernels ---

Kernel host_kernel() { return get_kernels(good(), {.providers = {"host"}}).at(0); }

Kernel kernel_for(const GemmArguments& arguments) { return get_kernels(arguments).at(0); }

std::function<void()> parse(const std::string& line) {
  return [line] { (void)parse_problem(line); };
}
std::function<void()> read_target(const std::string& text) {
  return [text] { (void)parse_target(text); };
}

// --- the table ----------------------------------------------------------------------------------

std::vector<BadInput> tensor_rows() {
  constexpr std::int64_t huge = std::int64_t{1} << 62;
  return {
      {"rank 6", invalid, "tensor", "rank 6",
       [] {
         (void)f32(a_memory, {1, 1, 1, 1, 1, 1});
       }},
      {"negative extent", invalid, "tensor", "-3",
       [] {
         (void)f32(a_memory, {4, -3});
       }},
      {"fewer strides than extents", invalid, "tensor", "1 strides",
       [] {
         (void)f32(a_memory, {4, 3}, {3});
       }},
      {"more strides than extents", invalid, "tensor", "3 strides",
       [] {
         (void)f32(a_memory, {4, 3}, {9, 3, 1});
       }},
      {"extents that overflow", invalid, "tensor", "shape",
       [] {
         (void)f32(a_memory, {huge, 4});
       }},
      {"extents whose product overflows", invalid, "tensor", "shape",
       [] {
         (void)f32(a_memory, {std::int64_t{1} << 31, std::int64_t{1} << 31, 4});
       }},
      {"stride that overflows", invalid, "tensor", "strides",
       [] {
         (void)f32(a_memory, {8, 3}, {huge, 1});
       }},
      {"most negative stride", invalid, "tensor", "strides",
       [] {
         (void)f32(a_memory, {4, 3}, {std::numeric_limits<std::int64_t>::min(), 1});
       }},
      {"huge extent of one", invalid, "tensor", "shape",
       [] { (void)f32(a_memory, {std::numeric_limits<std::int64_t>::max()}); }},
  };
}

std::vector<BadInput> shape_rows() {
  const auto row = [](std::string name, std::string operand, std::string got, Tensor a, Tensor b,
                      Tensor out) {
    return BadInput{std::move(name), invalid, std::move(operand), std::move(got),
                    [a, b, out] { gemm(a, b, out); }};
  };
  return {
      row("A of rank 1", "A", "rank 1", f32(a_memory, {12}), b35, out45),
      row("A of rank 0", "A", "rank 0", f32(a_memory, {}), b35, out45),
      row("A of rank 4", "A", "rank 4", f32(a_memory, {1, 1, 4, 3}), b35, out45),
      row("B of rank 1", "B", "rank 1", a43, f32(b_memory, {15}), out45),
      row("out of rank 1", "out", "rank 1", a43, b35, f32(out_memory, {20})),
      row("out of rank 5", "out", "rank 5", a43, b35, f32(out_memory, {1, 1, 1, 4, 5})),
      row("K of B differs", "B", "4", a43, f32(b_memory, {4, 5}), out45),
      row("K of B is 0", "B", "0", a43, f32(b_memory, {0, 5}), out45),
      row("M of out differs", "out", "3", a43, b35, f32(out_memory, {3, 5})),
      row("N of out differs", "out", "6", a43, b35, f32(out_memory, {4, 6})),
      row("out is transposed", "out", "5", a43, b35, f32(out_memory, {5, 4})),
      row("batch A, out without one", "out", "(4, 5)", f32(a_memory, {2, 4, 3}), b35, out45),
      row("batch B, out without one", "out", "(4, 5)", a43, f32(b_memory, {2, 3, 5}), out45),
      row("batches of A differ", "A", "3", f32(a_memory, {3, 4, 3}), b35,
          f32(out_memory, {2, 4, 5})),
      row("batches of B differ", "B", "3", f32(a_memory, {2, 4, 3}), f32(b_memory, {3, 3, 5}),
          f32(out_memory, {2, 4, 5})),
      row("no batches of A", "A", "0", f32(a_memory, {0, 4, 3}), b35, f32(out_memory, {2, 4, 5})),
      row("one batch of out, two of A", "A", "2", f32(a_memory, {2, 4, 3}), b35,
          f32(out_memory, {1, 4, 5})),
      {"extent beyond 31 bits", unsupported, "A", "2147483648",
       [] {
         gemm(f32(a_memory, {std::int64_t{1} << 31, 0}), f32(b_memory, {0, 5}),
              f32(out_memory, {std::int64_t{1} << 31, 5}, {0, 0}));
       }},
  };
}

std::vector<BadInput> c_rows() {
  const auto row = [](std::string name, std::string got, Tensor c) {
    return BadInput{std::move(name), invalid, "C", std::move(got),
                    [c] { gemm(a43, b35, out45, with_c(c)); }};
  };
  return {
      {"beta without C", invalid, "C", "none", [] { gemm(a43, b35, out45, {.beta = 1}); }},
      {"NaN beta without C", invalid, "C", "none",
       [] { gemm(a43, b35, out45, {.beta = std::numeric_limits<double>::quiet_NaN()}); }},
      row("C of rank 4", "rank 4", f32(c_memory, {1, 1, 4, 5})),
      row("rows of C differ", "(3, 5)", f32(c_memory, {3, 5})),
      row("columns of C differ", "(4, 4)", f32(c_memory, {4, 4})),
      row("C is transposed", "(5, 4)", f32(c_memory, {5, 4})),
      row("C as a vector of M", "(4)", f32(c_memory, {4})),
      row("batches of C where out has one", "(2, 4, 5)", f32(c_memory, {2, 4, 5})),
      row("C without memory", "null", f32(nullptr, {4, 5})),
      row("misaligned C", "off", f32(byte_at(c_memory, 1), {4, 5})),
      {"C of scales", unsupported, "C", "float8_e8m0fnu",
       [] {
         gemm(a43, b35, out45, with_c(of(DType::float8_e8m0fnu, c_memory, {4, 5})));
       }},
      {"C on another device", invalid, "C", "cuda:0",
       [] {
         gemm(a43, b35, out45, with_c(Tensor(c_memory, DType::float32, {4, 5}, Device::cuda(0))));
       }},
      {"out shifted against C", invalid, "out", "overlapping",
       [] {
         gemm(a43, b35, out45, with_c(f32(byte_at(out_memory, 4), {4, 5})));
       }},
      {"C is out transposed", invalid, "out", "overlapping",
       [] {
         gemm(f32(a_memory, {4, 3}), f32(b_memory, {3, 4}), f32(out_memory, {4, 4}),
              with_c(f32(out_memory, {4, 4}, {1, 4})));
       }},
      {"C is a row of out", invalid, "out", "overlapping",
       [] {
         gemm(a43, b35, out45, with_c(f32(out_memory, {1, 5})));
       }},
  };
}

std::vector<BadInput> type_rows() {
  const auto row = [](std::string name, ErrorKind kind, std::string operand, std::string got,
                      DType a, DType b, DType out) {
    return BadInput{
        std::move(name), kind, std::move(operand), std::move(got), [a, b, out] {
          gemm(of(a, a_memory, {4, 3}), of(b, b_memory, {3, 5}), of(out, out_memory, {4, 5}));
        }};
  };
  const auto with = [](std::string name, std::string operand, std::string got, DType a,
                       DType accumulator, Math math) {
    return BadInput{
        std::move(name), invalid, std::move(operand), std::move(got), [a, accumulator, math] {
          const GemmArguments arguments(of(a, a_memory, {4, 3}), of(a, b_memory, {3, 5}),
                                        of(DType::float32, out_memory, {4, 5}), accumulator,
                                        {.math = math});
        }};
  };
  using enum DType;
  return {
      row("A of scales", unsupported, "A", "float8_e8m0fnu", float8_e8m0fnu, float32, float32),
      {"rows of A that end within a byte", invalid, "tensor", "(5, 1)",
       [] {
         gemm(of(float4_e2m1fn, a_memory, {4, 5}), of(float32, b_memory, {5, 5}),
              of(float32, out_memory, {4, 5}));
       }},
      {"C of packed 6-bit numbers", unsupported, "C", "float6_e2m3fn",
       [] {
         gemm(a43, b35, out45, with_c(Tensor(c_memory, float6_e2m3fn, {4, 5}, {8, 1})));
       }},
      row("B of uint32", unsupported, "B", "uint32", float32, uint32, float32),
      row("out of uint32", unsupported, "out", "uint32", float32, float32, uint32),
      {"out of packed 4-bit numbers", unsupported, "out", "float4_e2m1fn",
       [] {
         gemm(of(float32, a_memory, {4, 3}), of(float32, b_memory, {3, 6}),
              of(float4_e2m1fn, out_memory, {4, 6}));
       }},
      row("integer A, floating B", unsupported, "B", "float32", int8, float32, float32),
      row("floating A, integer B", unsupported, "B", "int8", float32, int8, float32),
      row("A and B of int32", unsupported, "A", "int32", int32, int32, int32),
      with("int8 accumulated in f32", "accumulator_type", "float32", int8, float32, Math::native),
      with("int8 accumulated in int8", "accumulator_type", "int8", int8, int8, Math::native),
      with("e4m3 accumulated in f16", "accumulator_type", "float16", float8_e4m3fn, float16,
           Math::native),
      with("f32 accumulated in f16", "accumulator_type", "float16", float32, float16, Math::native),
      with("f32 accumulated in int32", "accumulator_type", "int32", float32, int32, Math::native),
      with("f64 accumulated in f32", "accumulator_type", "float32", float64, float32, Math::native),
      with("bf16 accumulated in bf16", "accumulator_type", "bfloat16", bfloat16, bfloat16,
           Math::native),
      with("tf32 of f64", "math", "tf32", float64, float64, Math::tf32),
      with("tf32 of f16", "math", "tf32", float16, float32, Math::tf32),
      with("bf16x9 of f16", "math", "bf16x9", float16, float32, Math::bf16x9),
      with("bf16x6 of bf16", "math", "bf16x6", bfloat16, float32, Math::bf16x6),
      with("fp8_fast of f32", "math", "fp8_fast", float32, float32, Math::fp8_fast),
      with("saturate of f32", "math", "saturate", float32, float32, Math::saturate),
      with("fp8_fast of int8", "math", "fp8_fast", int8, int32, Math::fp8_fast),
  };
}

std::vector<BadInput> memory_rows() {
  const auto row = [](std::string name, std::string operand, std::string got, Tensor a, Tensor b,
                      Tensor out) {
    return BadInput{std::move(name), invalid, std::move(operand), std::move(got),
                    [a, b, out] { gemm(a, b, out); }};
  };
  const Tensor on_gpu(out_memory, DType::float32, {4, 5}, Device::cuda(0));
  return {
      row("A without memory", "A", "null", f32(nullptr, {4, 3}), b35, out45),
      row("B without memory", "B", "null", a43, f32(nullptr, {3, 5}), out45),
      row("out without memory", "out", "null", a43, b35, f32(nullptr, {4, 5})),
      row("misaligned A", "A", "1 bytes off", f32(byte_at(a_memory, 1), {4, 3}), b35, out45),
      row("misaligned B", "B", "2 bytes off", a43, f32(byte_at(b_memory, 2), {3, 5}), out45),
      row("misaligned out", "out", "3 bytes off", a43, b35, f32(byte_at(out_memory, 3), {4, 5})),
      row("out on a GPU, A not", "A", "cpu", a43, b35, on_gpu),
      row("A on a GPU, out not", "A", "cuda:0",
          Tensor(a_memory, DType::float32, {4, 3}, Device::cuda(0)), b35, out45),
      row("B on another GPU", "B", "cuda:1",
          Tensor(a_memory, DType::float32, {4, 3}, Device::cuda(0)),
          Tensor(b_memory, DType::float32, {3, 5}, Device::cuda(1)), on_gpu),
      row("out is A", "out", "overlapping", f32(a_memory, {4, 4}), f32(b_memory, {4, 4}),
          f32(a_memory, {4, 4})),
      row("out is B", "out", "overlapping", f32(a_memory, {4, 4}), f32(b_memory, {4, 4}),
          f32(b_memory, {4, 4})),
      row("out begins in A", "out", "overlapping", f32(a_memory, {4, 4}), f32(b_memory, {4, 4}),
          f32(byte_at(a_memory, 60), {4, 4})),
      row("out ends in B", "out", "overlapping", f32(a_memory, {4, 4}),
          f32(byte_at(out_memory, 60), {4, 4}), f32(out_memory, {4, 4})),
      row("out lies in a reversed A", "out", "overlapping",
          f32(byte_at(out_memory, 48), {4, 4}, {-4, 1}), f32(b_memory, {4, 4}),
          f32(out_memory, {4, 4})),
      row("rows of out interleave with a batch of A", "out", "overlapping",
          f32(out_memory, {2, 4, 4}), f32(b_memory, {4, 4}),
          f32(byte_at(out_memory, 64), {2, 4, 4})),
      row("rows of out on one another", "out", "strides", a43, b35,
          f32(out_memory, {4, 5}, {0, 1})),
      row("columns of out on one another", "out", "strides", a43, b35,
          f32(out_memory, {4, 5}, {5, 0})),
      row("rows of out that overlap", "out", "strides", a43, b35, f32(out_memory, {4, 5}, {4, 1})),
      row("diagonals of out that meet", "out", "strides", a43, b35,
          f32(out_memory, {4, 5}, {1, 1})),
      row("batches of out on one another", "out", "strides", f32(a_memory, {2, 4, 3}), b35,
          f32(out_memory, {2, 4, 5}, {0, 5, 1})),
      row("batches of out that overlap", "out", "strides", f32(a_memory, {2, 4, 3}), b35,
          f32(out_memory, {2, 4, 5}, {19, 5, 1})),
  };
}

std::vector<BadInput> patch_rows() {
  const auto patch = [](std::string name, std::string operand, std::string got, std::string which,
                        void* data) {
    return BadInput{std::move(name), invalid, std::move(operand), std::move(got), [which, data] {
                      GemmArguments arguments = good_with_c();
                      arguments.set_data(which, data);
                    }};
  };
  return {
      patch("null A", "A", "null", "A", nullptr),
      patch("null out", "out", "null", "out", nullptr),
      patch("misaligned B", "B", "off", "B", byte_at(b_memory, 2)),
      patch("A onto out", "out", "overlapping", "A", out_memory),
      patch("out onto B", "out", "overlapping", "out", b_memory),
      patch("C shifted against out", "out", "overlapping", "C", byte_at(out_memory, 4)),
      patch("an operand without a name", "set_data", "\"\"", "", a_memory),
      patch("an operand that is not there", "set_data", "\"D\"", "D", a_memory),
      patch("an operand in lower case", "set_data", "\"a\"", "a", a_memory),
      {"C where it is not read", invalid, "set_data", "\"C\"",
       [] {
         GemmArguments arguments = good();
         arguments.set_data("C", c_memory);
       }},
      {"less aligned memory", invalid, "A", "4 bytes",
       [] {
         GemmArguments arguments(f32(a_memory, {4, 4}), f32(b_memory, {4, 4}),
                                 f32(out_memory, {4, 4}));
         arguments.set_data("A", byte_at(a_memory, 4));
       }},
      {"beta that appears", invalid, "beta", "0.5",
       [] {
         GemmArguments arguments = good();
         arguments.set_scalars(1, 0.5);
       }},
      {"a C that partly overlaps out, though beta is 0", invalid, "out", "overlapping",
       [] {
         gemm(a43, b35, out45, {.c = f32(byte_at(out_memory, 4), {4, 5}), .beta = 0});
       }},
  };
}

std::vector<BadInput> dlpack_rows() {
  const auto row = [](std::string name, ErrorKind kind, std::string got,
                      const std::function<void(Dlpack&)>& spoil) {
    return BadInput{std::move(name), kind, "DLPack", std::move(got), view_dlpack(spoil)};
  };
  std::vector<BadInput> rows{
      row("rank -1", invalid, "rank -1", [](Dlpack& t) { t.layout.rank = -1; }),
      row("rank 6", invalid, "rank 6", [](Dlpack& t) { t.layout.rank = 6; }),
      row("largest rank", invalid, "2147483647", [](Dlpack& t) { t.layout.rank = 2147483647; }),
      row("null shape", invalid, "null shape", [](Dlpack& t) { t.layout.shape = nullptr; }),
      row("null data", invalid, "null data", [](Dlpack& t) { t.layout.data = nullptr; }),
      row("no lanes", unsupported, "0 lanes", [](Dlpack& t) { t.layout.dtype.lanes = 0; }),
      row("four lanes", unsupported, "4 lanes", [](Dlpack& t) { t.layout.dtype.lanes = 4; }),
      row("complex", unsupported, "type code 5",
          [](Dlpack& t) {
            t.layout.dtype = {5, 64, 1};
          }),
      row("bool", unsupported, "type code 6",
          [](Dlpack& t) {
            t.layout.dtype = {6, 8, 1};
          }),
      row("128-bit float", unsupported, "128 bits",
          [](Dlpack& t) {
            t.layout.dtype = {2, 128, 1};
          }),
      row("64-bit integer", unsupported, "64 bits",
          [](Dlpack& t) {
            t.layout.dtype = {0, 64, 1};
          }),
      row("unknown type code", unsupported, "type code 255",
          [](Dlpack& t) {
            t.layout.dtype = {255, 8, 1};
          }),
      row("device of another kind", unsupported, "device type 10",
          [](Dlpack& t) {
            t.layout.device = {10, 0};
          }),
      row("no device", unsupported, "device type 0",
          [](Dlpack& t) {
            t.layout.device = {0, 0};
          }),
      row("misaligned offset", invalid, "byte offset 2",
          [](Dlpack& t) { t.layout.byte_offset = 2; }),
      row("misaligned address", invalid, "misaligned",
          [](Dlpack& t) { t.layout.data = byte_at(a_memory, 1); }),
  };
  rows.push_back({"negative extent in DLPack", invalid, "tensor", "-4",
                  view_dlpack([](Dlpack& t) { t.shape[0] = -4; })});
  rows.push_back(
      {"stride that overflows in DLPack", invalid, "tensor", "strides",
       view_dlpack([](Dlpack& t) { t.strides[0] = std::numeric_limits<std::int64_t>::max(); })});
  rows.push_back({"DLPack of version 0", unsupported, "DLPack", "version 0", take_dlpack(0)});
  rows.push_back({"DLPack of version 2", unsupported, "DLPack", "version 2", take_dlpack(2)});
  rows.push_back({"null managed tensor", invalid, "DLPack", "null", [] {
                    const DlpackTensor taken(static_cast<DLManagedTensorVersioned*>(nullptr));
                  }});
  rows.push_back({"null old managed tensor", invalid, "DLPack", "null",
                  [] { const DlpackTensor taken(static_cast<DLManagedTensor*>(nullptr)); }});
  return rows;
}

std::vector<BadInput> grammar_rows() {
  const auto row = [](std::string name, std::string got, const std::string& line,
                      ErrorKind kind = invalid) {
    return BadInput{std::move(name), kind, "problem", std::move(got), parse(line)};
  };
  return {
      row("an empty line", "\"\"", ""),
      row("nothing but spaces", "\"\"", " \t "),
      row("an unknown kind", "gemv", "gemv 4x4x4 a=f32"),
      row("a kind in capitals", "GEMM", "GEMM 4x4x4 a=f32"),
      row("a convolution of no kind", "conv2d", "conv2d 4x4x4 a=f32"),
      BadInput{"pixels that overflow 64 bits", unsupported, "pixels", "18446744073709551616",
               parse("conv3d_wgrad 1x2097152x2097152x4194304x1 k=1 t=1 r=1 s=1 a=f32")},
      row("pixels too far apart", "ld=1099511627776",
          "conv2d_fprop 1x2x1073741823x8 k=8 r=1 s=1 a=f16/ld=1099511627776", unsupported),
      row("pixels of out too far apart", "ld=-1099511627776",
          "conv2d_fprop 1x64x64x8 k=8 r=1 s=1 a=f16 out=f16/ld=-1099511627776", unsupported),
      row("no shape", "gemm", "gemm"),
      row("two extents", "4x4", "gemm 4x4 a=f32"),
      row("five extents", "1x2x3x4x5", "gemm 1x2x3x4x5 a=f32"),
      row("an extent with a letter", "4x4xk", "gemm 4x4xk a=f32"),
      row("an empty extent", "4xx4", "gemm 4xx4 a=f32"),
      row("an extent below zero", "-4x4x4", "gemm -4x4x4 a=f32"),
      row("an extent beyond 31 bits", "2147483648", "gemm 2147483648x4x4 a=f32"),
      row("an extent beyond 64 bits", "99999999999999999999",
          "gemm 99999999999999999999x4x4 a=f32"),
      row("a fraction", "4.0x4x4", "gemm 4.0x4x4 a=f32"),
      row("no A", "none", "gemm 4x4x4"),
      row("a word without a value", "f32", "gemm 4x4x4 f32"),
      row("an unknown field", "d=f32", "gemm 4x4x4 a=f32 d=f32"),
      row("an unknown type", "f31", "gemm 4x4x4 a=f31"),
      row("an empty type", "a=", "gemm 4x4x4 a="),
      row("a type in capitals", "F32", "gemm 4x4x4 a=F32"),
      row("an unknown layout", "f32:x", "gemm 4x4x4 a=f32:x"),
      row("an unknown modifier", "/pad=3", "gemm 4x4x4 a=f32/pad=3"),
      row("a modifier without a value", "/ld", "gemm 4x4x4 a=f32/ld"),
      row("a leading dimension too small", "/ld=3", "gemm 4x4x4 a=f32/ld=3"),
      row("a leading dimension below zero", "/ld=-4", "gemm 4x4x4 a=f32/ld=-4"),
      row("an alignment of three", "/align=3", "gemm 4x4x4 a=f32/align=3"),
      row("an alignment of 32", "/align=32", "gemm 4x4x4 a=f32/align=32"),
      row("an alignment below the element's", "/align=2", "gemm 4x4x4 a=f32/align=2"),
      row("an alignment that the strides forbid", "/align=16", "gemm 4x5x5 a=f32/align=16"),
      row("one stride", "/strides=4", "gemm 4x4x4 a=f32/strides=4"),
      row("a leading dimension and strides", "strides", "gemm 4x4x4 a=f32/ld=8/strides=8,1"),
      row("a stride beyond 2^40", "strides", "gemm 4x4x4 a=f32/strides=9999999999999,1"),
      row("dims that are not closed", "c=f32[n", "gemm 4x4x4 a=f32 c=f32[n beta=1"),
      row("unknown dims", "c=f32[k]", "gemm 4x4x4 a=f32 c=f32[k] beta=1"),
      row("dims of A", "a=f32[n]", "gemm 4x4x4 a=f32[n]"),
      row("A twice", "a=f16", "gemm 4x4x4 a=f32 a=f16"),
      row("alpha twice", "alpha=2", "gemm 4x4x4 a=f32 alpha=1 alpha=2"),
      row("alpha that is no number", "alpha=one", "gemm 4x4x4 a=f32 alpha=one"),
      row("beta with something behind", "beta=1x", "gemm 4x4x4 a=f32 c=f32 beta=1x"),
      row("beta without C", "none", "gemm 4x4x4 a=f32 beta=1"),
      row("an unknown accumulator", "acc=f33", "gemm 4x4x4 a=f32 acc=f33"),
      row("unknown math", "math=fast", "gemm 4x4x4 a=f32 math=fast"),
      row("tf32 operands with other math", "tf32", "gemm 4x4x4 a=tf32 math=bf16x3"),
      row("a quote that is not closed", "D", "gemm 4x4x4 a=f32 epilogue=\"D"),
      {"an epilogue that calls nothing known", invalid, "epilogue", "glu",
       parse("gemm 4x4x4 a=f32 epilogue=\"D = glu(accum)\"")},
      row("an operand that the epilogue has not", "x=f32",
          "gemm 4x4x4 a=f32 epilogue=\"D = accum\" x=f32"),
      row("an epilogue without its operand", "none", "gemm 4x4x4 a=f32 epilogue=\"D = accum + x\""),
      {"an empty epilogue", invalid, "epilogue", "column 1",
       parse("gemm 4x4x4 a=f32 epilogue=\"\"")},
  };
}

std::vector<BadInput> target_rows() {
  std::vector<BadInput> rows;
  for (const char* const text : {"", "sm_", "sm_9x", "sm_90ab", "sm_90b", "sm_80a", "sm_90f",
                                 "sm_1000", "sm_5", "-90", "gpu", "SM_90", "sm_90 "})
    rows.push_back({std::string("target ") + text, invalid, "target", std::string("\"") + text,
                    read_target(text)});
  return rows;
}

void bind(DType out, std::string_view program, std::vector<EpilogueOperand> operands = {}) {
  GemmOptions options;
  options.epilogue = EpilogueArguments(program, std::move(operands));
  gemm(a43, b35, of(out, out_memory, {4, 5}), options);
}

// Integer results of floating-point accumulators, which would need an implicit rounding.
std::vector<BadInput> integer_rows() {
  const Tensor whole = of(DType::int32, c_memory, {4, 5});
  const auto line = [](std::string_view text) { return [text] { (void)parse_problem(text); }; };
  return {
      {"integer out of floats", invalid, "out", "int8 of values in float32",
       [] {
         gemm(a43, b35, of(DType::int8, out_memory, {4, 5}));
       }},
      {"integer out of doubles", invalid, "out", "int32 of values in float64",
       line("gemm 4x5x3 a=f64 out=int32")},
      {"integer out of a line", invalid, "out", "uint8", line("gemm 4x5x3 a=bf16 out=uint8 c=f32")},
      {"out whose elements share memory", invalid, "problem", "out=s32/strides=0,0",
       line("gemm 2147483647x1x1 a=s8/strides=0,0 b=s8 out=s32/strides=0,0")},
      {"integer out of scaled sums", invalid, "out", "int8",
       [] { bind(DType::int8, "D = accum * 0.5"); }},
      {"integer out of a rounded part", invalid, "out", "int8",
       [] { bind(DType::int8, "D = round(accum) * 0.5"); }},
      {"an integer result", invalid, "r", "int32",
       [whole] {
         bind(DType::float32, "D = accum; r = accum", {{"r", whole}});
       }},
      {"an integer reduction", invalid, "r", "int32",
       [] {
         bind(DType::float32, "D = accum; r = sum(accum)",
              {{"r", of(DType::int32, c_memory, {4, 1})}});
       }},
      {"an elementwise program", invalid, "out", "int8",
       [] {
         const ElementwiseArguments arguments(a43, f32(b_memory, {4, 3}),
                                              of(DType::int8, out_memory, {4, 3}), "D = A + B");
       }},
  };
}

TEST(IntegerResults, are_taken_where_the_program_says_how) {
  const Tensor whole = of(DType::int32, c_memory, {4, 5});
  for (const auto* const program :
       {"D = round(accum)", "D = floor(accum)", "D = floor(log(-6))", "D = cast(accum, int8)",
        "D = cast(accum, int8, toward_zero)", "D = clamp(round(accum * 0.5), -8, 7)",
        "D = accum > 0", "D = where(accum > 0, 1, -1)", "D = abs(round(accum)) + 2",
        "D = cast(accum, int8) if accum < 9 else 3"})
    EXPECT_NO_THROW(bind(DType::int8, program)) << program;
  EXPECT_NO_THROW(bind(DType::float32, "D = accum; r = round(accum)", {{"r", whole}}));
  EXPECT_NO_THROW(bind(DType::int8, "D = w", {{"w", whole}}));
  // Products of integers may be scaled, as in quantised GEMMs.
  EXPECT_NO_THROW((void)parse_problem("gemm 4x5x3 a=int8 out=int8 alpha=0.5"));
}

std::vector<BadInput> kernel_rows() {
  return {
      {"an unknown provider", invalid, "providers", "nobody",
       [] { (void)get_kernels(good(), {.providers = {"nobody"}}); }},
      {"no family", invalid, "register_family", "null", [] { register_family(nullptr); }},
      {"a device that is not there", unavailable, "", "",
       [] { (void)device_info(Device::cuda(61)); }},
      {"memory of a device that is not there", unavailable, "", "",
       [] { const Buffer buffer(64, Stream::of(nullptr, Device::cuda(61))); }},
      {"a kernel of other types", unsupported, "", "float64",
       [] {
         const GemmArguments doubles(of(DType::float64, a_memory, {4, 3}),
                                     of(DType::float64, b_memory, {3, 5}),
                                     of(DType::float64, out_memory, {4, 5}));
         host_kernel().run(doubles, {.stream = Stream::cpu()});
       }},
      {"a kernel without C for arguments with it", unsupported, "", "C",
       [] { kernel_for(good()).run(good_with_c(), {.stream = Stream::cpu()}); }},
      {"the workspace of a kernel of other types", unsupported, "", "float64",
       [] {
         const GemmArguments doubles(of(DType::float64, a_memory, {4, 3}),
                                     of(DType::float64, b_memory, {3, 5}),
                                     of(DType::float64, out_memory, {4, 5}));
         (void)host_kernel().get_workspace_size(doubles);
       }},
      {"a CPU kernel compiled for a GPU", unsupported, "", "sm_90",
       [] { (void)host_kernel().compile(parse_target("sm_90")); }},
      {"the artifact of another kernel", invalid, "artifact", "",
       [] {
         const Artifact other = kernel_for(good_with_c()).compile(Target::cpu());
         kernel_for(good()).run(good(), {.artifact = &other, .stream = Stream::cpu()});
       }},
      {"no samples", invalid, "samples", "0",
       [] { (void)measure(parse_problem("gemm 4x5x3 a=f32"), host_kernel(), {.samples = 0}); }},
  };
}

// False for rows whose error states facts rather than an expectation.
bool states_expected(const BadInput& row) {
  return row.kind != unavailable && !(row.kind == unsupported && row.operand.empty());
}

class BadInputs : public testing::TestWithParam<BadInput> {};

TEST_P(BadInputs, are_refused_with_kind_operand_expected_and_got) {
  const BadInput& row = GetParam();
  try {
    row.act();
  } catch (const Error& error) {
    SCOPED_TRACE(error.what());
    EXPECT_EQ(name(error.kind()), name(row.kind));
    EXPECT_NE(error.operand().find(row.operand), std::string::npos)
        << "operand: " << error.operand();
    EXPECT_FALSE(error.operand().empty());
    EXPECT_NE(error.got().find(row.got), std::string::npos) << "got: " << error.got();
    EXPECT_FALSE(error.got().empty());
    if (states_expected(row)) {
      EXPECT_FALSE(error.expected().empty());
    }
    return;
  }
  ADD_FAILURE() << row.name << " was accepted";
}

std::string test_name(const testing::TestParamInfo<BadInput>& info) {
  std::string text;
  for (const char letter : info.param.name)
    text += std::isalnum(static_cast<unsigned char>(letter)) != 0 ? letter : '_';
  return text + "_" + std::to_string(info.index);
}

INSTANTIATE_TEST_SUITE_P(tensor, BadInputs, testing::ValuesIn(tensor_rows()), test_name);
INSTANTIATE_TEST_SUITE_P(shape, BadInputs, testing::ValuesIn(shape_rows()), test_name);
INSTANTIATE_TEST_SUITE_P(c, BadInputs, testing::ValuesIn(c_rows()), test_name);
INSTANTIATE_TEST_SUITE_P(type, BadInputs, testing::ValuesIn(type_rows()), test_name);
INSTANTIATE_TEST_SUITE_P(memory, BadInputs, testing::ValuesIn(memory_rows()), test_name);
INSTANTIATE_TEST_SUITE_P(patch, BadInputs, testing::ValuesIn(patch_rows()), test_name);
INSTANTIATE_TEST_SUITE_P(dlpack, BadInputs, testing::ValuesIn(dlpack_rows()), test_name);
INSTANTIATE_TEST_SUITE_P(grammar, BadInputs, testing::ValuesIn(grammar_rows()), test_name);
INSTANTIATE_TEST_SUITE_P(target, BadInputs, testing::ValuesIn(target_rows()), test_name);
INSTANTIATE_TEST_SUITE_P(integer, BadInputs, testing::ValuesIn(integer_rows()), test_name);
INSTANTIATE_TEST_SUITE_P(kernel, BadInputs, testing::ValuesIn(kernel_rows()), test_name);

}  // namespace
}  // namespace gemmery
