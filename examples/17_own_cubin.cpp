// SPDX-License-Identifier: Apache-2.0
// Bring your own kernel, as machine code: discovery finds a cubin from a file, or the PTX below, by
// the rules for its operands and its launch rule. No compiler is needed.
//
//   17_own_cubin [FILE.cubin TARGET]    a kernel with the same parameters, made by
//                                       nvcc -cubin -arch=TARGET
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <gemmery/gemmery.hpp>

namespace {

using namespace gemmery;

// One thread per element of out, one row of blocks per row of out.
//   dot(const float* a, const float* b, float* out, int m, int n, int k)
constexpr const char* ptx = R"ptx(.version 7.0
.target sm_80
.address_size 64

.visible .entry dot(.param .u64 a, .param .u64 b, .param .u64 out,
                    .param .s32 m, .param .s32 n, .param .s32 k)
{
    .reg .pred %done;
    .reg .s32 %block, %threads, %thread, %column, %row, %n, %k;
    .reg .s64 %a, %b, %out, %offset, %wide_row, %wide_k, %wide_n;
    .reg .f32 %sum, %x, %y;

    mov.u32 %block, %ctaid.x;
    mov.u32 %threads, %ntid.x;
    mov.u32 %thread, %tid.x;
    mad.lo.s32 %column, %block, %threads, %thread;
    ld.param.s32 %n, [n];
    setp.ge.s32 %done, %column, %n;
    @%done bra end;

    mov.u32 %row, %ctaid.y;
    cvt.s64.s32 %wide_row, %row;
    ld.param.s32 %k, [k];
    cvt.s64.s32 %wide_k, %k;
    cvt.s64.s32 %wide_n, %n;
    ld.param.u64 %a, [a];
    ld.param.u64 %b, [b];
    ld.param.u64 %out, [out];
    cvta.to.global.u64 %a, %a;
    cvta.to.global.u64 %b, %b;
    cvta.to.global.u64 %out, %out;

    mul.lo.s64 %offset, %wide_row, %wide_k;       // a += row * k
    shl.b64 %offset, %offset, 2;
    add.s64 %a, %a, %offset;
    mul.wide.s32 %offset, %column, 4;             // b += column
    add.s64 %b, %b, %offset;
    add.s64 %out, %out, %offset;                  // out += row * n + column
    mul.lo.s64 %offset, %wide_row, %wide_n;
    shl.b64 %offset, %offset, 2;
    add.s64 %out, %out, %offset;
    shl.b64 %wide_n, %wide_n, 2;

    mov.f32 %sum, 0f00000000;
next:
    setp.le.s32 %done, %k, 0;
    @%done bra store;
    ld.global.f32 %x, [%a];
    ld.global.f32 %y, [%b];
    fma.rn.f32 %sum, %x, %y, %sum;
    add.s64 %a, %a, 4;
    add.s64 %b, %b, %wide_n;
    sub.s32 %k, %k, 1;
    bra next;
store:
    st.global.f32 [%out], %sum;
end:
    ret;
}
)ptx";

// A driver compiles PTX for its device, so the same text works for many targets.
UserImages images_of_ptx() {
  UserImages images;
  for (const char* const target : {"sm_80", "sm_90", "sm_100", "sm_120"})
    images.push_back({.target = parse_target(target), .ptx = ptx});
  return images;
}

UserImages image_of_file(const char* path, const char* target) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  UserImage image{.target = parse_target(target)};
  image.cubin.resize(bytes.size());
  std::memcpy(image.cubin.data(), bytes.data(), bytes.size());
  return {image};
}

UserKernel make_kernel(UserImages images) {
  const OperandRule rows{.dtype = DType::float32, .layout = LayoutRule::row};
  UserKernel kernel;
  kernel.name = "dot";
  kernel.operands = {.a = rows, .b = rows, .c = {}, .out = rows};
  kernel.code = std::move(images);
  kernel.launch.entry = "dot";
  kernel.launch.parameters = {"A", "B", "out", "m", "n", "k"};
  kernel.launch.grid = {"n/128", "m", "1"};
  kernel.launch.block = {128, 1, 1};
  return kernel;
}

}  // namespace

int main(int count, char** words) try {
  const bool has_file = count == 3;
  const Kernel own =
      register_kernel(make_kernel(has_file ? image_of_file(words[1], words[2]) : images_of_ptx()));
  // A cubin needs a GPU; PTX runs on an emulated one as well.
  const Device device = devices().empty() ? *parse_device("emulated:h200") : devices().front();
  std::printf("%s on %s\n", own.name().c_str(), to_string(device).c_str());

  // The launch passes no strides, so operands without packed rows are refused, not misread.
  const ProblemLine padded = parse_problem("gemm 70x300x50 a=f32/ld=64");
  std::printf("padded rows: %s\n",
              own.supports(padded.problem, device_info(device)).error().c_str());

  const VerifyReport report =
      verify(parse_problem("gemm 70x300x50 a=f32"), own, {.device = device});
  std::printf("verified: %s, worst error %.0f %% of its bound\n", report.passed ? "yes" : "no",
              report.worst_ratio * 100);
  return report.passed ? 0 : 1;
} catch (const Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
