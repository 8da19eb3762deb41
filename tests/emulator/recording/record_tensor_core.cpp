// SPDX-License-Identifier: Apache-2.0
// Runs each matrix instruction of tensor_core_forms.hpp on a GPU and writes the results.
//
// g++ -std=c++20 -O2 record_tensor_core.cpp -o record_tensor_core -I/usr/local/cuda/include -lcuda
// record_tensor_core arithmetic FILE   D of each case of each form, in the order of the forms: rows
//                                      of n elements, as they lie in memory
// record_tensor_core layout FILE       D of wgmma on shared memory under random descriptors
// record_tensor_core digest FILE OUT   a digest of each case of such a file, in order
// record_tensor_core ptx               the kernels' text, to look at or to assemble
#include <cuda.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>

#include "tensor_core_kernels.hpp"

using namespace gemmery::tests::recording;

namespace {

void check(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  const char* text = nullptr;
  cuGetErrorString(result, &text);
  std::fprintf(stderr, "%s: %s\n", what, text == nullptr ? "?" : text);
  std::exit(1);
}

struct Buffer {
  CUdeviceptr at = 0;
  explicit Buffer(std::size_t bytes) { check(cuMemAlloc(&at, bytes), "cuMemAlloc"); }
  ~Buffer() { cuMemFree(at); }
};

CUfunction load(const std::string& text, CUmodule* module) {
  static char log[8192];
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log, reinterpret_cast<void*>(std::size_t{8192})};
  if (cuModuleLoadDataEx(module, text.c_str(), 2, options, values) != CUDA_SUCCESS) {
    std::fprintf(stderr, "%s\n%s\n", text.c_str(), log);
    return nullptr;
  }
  CUfunction function = nullptr;
  check(cuModuleGetFunction(&function, *module, "run"), "cuModuleGetFunction");
  return function;
}

void record_form(const Form& f, std::ofstream& file) {
  const Words w = words_of(f);
  CUmodule module = nullptr;
  CUfunction function = load(kernel_of(f), &module);
  std::vector<std::uint32_t> in;
  for (int x = 0; x < f.cases; ++x) {
    const auto one = arrange(f, x);
    in.insert(in.end(), one.begin(), one.end());
  }
  const std::size_t per_case = static_cast<std::size_t>(w.lanes * w.c);
  std::vector<std::uint32_t> out(per_case * static_cast<std::size_t>(f.cases), 0xdeadbeef);
  if (function != nullptr) {
    Buffer from(in.size() * 4), to(out.size() * 4);
    check(cuMemcpyHtoD(from.at, in.data(), in.size() * 4), "copy in");
    void* arguments[] = {&from.at, &to.at};
    check(cuLaunchKernel(function, static_cast<unsigned>(f.cases), 1, 1,
                         static_cast<unsigned>(w.lanes), 1, 1, 0, nullptr, arguments, nullptr),
          "launch");
    check(cuCtxSynchronize(), f.name.c_str());
    check(cuMemcpyDtoH(out.data(), to.at, out.size() * 4), "copy out");
    cuModuleUnload(module);
  }
  for (int x = 0; x < f.cases; ++x) {
    const auto d = rows_of(f, out.data() + per_case * static_cast<std::size_t>(x));
    file.write(reinterpret_cast<const char*>(d.data()), static_cast<std::streamsize>(4 * per_case));
  }
  std::printf("%s\n", f.name.c_str());
}

void record_layout(const LayoutForm& f, std::ofstream& file) {
  CUmodule module = nullptr;
  CUfunction function = load(kernel_of(f), &module);
  if (function == nullptr) std::exit(1);
  check(cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                           layout_image_bytes),
        "shared memory");
  const auto image = layout_image(f);
  std::vector<std::uint64_t> descriptors;
  for (int x = 0; x < layout_cases; ++x) {
    const auto one = layout_descriptors(f, x);
    descriptors.insert(descriptors.end(), {one.a.bits(), one.b.bits()});
  }
  std::vector<std::uint32_t> out(std::size_t{64} * layout_n * layout_cases);
  Buffer image_at(image.size() * 4), descriptors_at(descriptors.size() * 8), to(out.size() * 4);
  check(cuMemcpyHtoD(image_at.at, image.data(), image.size() * 4), "copy in");
  check(cuMemcpyHtoD(descriptors_at.at, descriptors.data(), descriptors.size() * 8), "copy in");
  void* arguments[] = {&image_at.at, &descriptors_at.at, &to.at};
  check(cuLaunchKernel(function, layout_cases, 1, 1, 128, 1, 1, layout_image_bytes, nullptr,
                       arguments, nullptr),
        "launch");
  check(cuCtxSynchronize(), f.name.c_str());
  check(cuMemcpyDtoH(out.data(), to.at, out.size() * 4), "copy out");
  file.write(reinterpret_cast<const char*>(out.data()),
             static_cast<std::streamsize>(out.size() * 4));
  std::printf("%s\n", f.name.c_str());
}

// Files of both kinds hold cases of equal size one after the other.
void write_digests(const char* from, const char* to) {
  std::ifstream in(from, std::ios::binary);
  std::ofstream out(to, std::ios::binary);
  const auto digest_cases = [&](int cases, std::size_t words) {
    std::vector<std::uint32_t> d(words);
    for (int x = 0; x < cases; ++x) {
      in.read(reinterpret_cast<char*>(d.data()), static_cast<std::streamsize>(4 * words));
      const std::uint32_t one = digest(d.data(), words);
      out.write(reinterpret_cast<const char*>(&one), 4);
    }
  };
  in.seekg(0, std::ios::end);
  const bool is_layout = in.tellg() == std::streamoff{6} * layout_cases * 64 * layout_n * 4;
  in.seekg(0);
  if (is_layout)
    for (const LayoutForm& f : all_layout_forms())
      (void)f, digest_cases(layout_cases, 64 * layout_n);
  else
    for (const Form& f : all_forms()) digest_cases(f.cases, result_words(f));
}

}  // namespace

int main(int count, char** arguments) {
  const std::string what = count > 1 ? arguments[1] : "";
  if (what == "ptx") {
    const int wanted = count > 2 ? std::atoi(arguments[2]) : -1;
    int x = 0;
    for (const Form& f : all_forms())
      if (x++ == wanted || wanted < 0) std::cout << "// " << f.name << "\n" << kernel_of(f) << "\n";
    for (const LayoutForm& f : all_layout_forms())
      if (x++ == wanted || wanted < 0) std::cout << "// " << f.name << "\n" << kernel_of(f) << "\n";
    return 0;
  }
  if (count < 3) return 2;
  if (what == "digest" && count == 4) {
    write_digests(arguments[2], arguments[3]);
    return 0;
  }
  check(cuInit(0), "cuInit");
  CUdevice device = 0;
  check(cuDeviceGet(&device, 0), "cuDeviceGet");
  CUcontext context = nullptr;
  check(cuDevicePrimaryCtxRetain(&context, device), "context");
  check(cuCtxSetCurrent(context), "context");
  std::ofstream file(arguments[2], std::ios::binary);
  if (what == "arithmetic")
    for (const Form& f : all_forms()) record_form(f, file);
  else
    for (const LayoutForm& f : all_layout_forms()) record_layout(f, file);
  return file.good() ? 0 : 1;
}
