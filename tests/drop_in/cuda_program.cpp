// SPDX-License-Identifier: Apache-2.0
// A CUDA program without CUDA's headers and compiler: what nvcc would write is written by hand. It
// is linked with our libcudart.so.13 and run by `gemmery emulate`.
//
//   cuda_program CASE [COMPRESSION]     exit code 0: the results are right; 3: they are not; 4: an
//   error was answered
#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <vector>

extern "C" {
struct Dim3 {
  unsigned x = 1, y = 1, z = 1;
};
using Stream = struct StreamHandle*;
using Event = struct EventHandle*;
using Graph = struct GraphHandle*;
using Node = struct NodeHandle*;
using GraphExec = struct ExecHandle*;
struct KernelParams {
  void* function;
  Dim3 grid, block;
  unsigned shared_bytes;
  void** parameters;
  void** extra;
};
void** __cudaRegisterFatBinary(void*);
void __cudaRegisterFatBinaryEnd(void**);
void __cudaUnregisterFatBinary(void**);
void __cudaRegisterFunction(void**, const char*, char*, const char*, int, void*, void*, void*,
                            void*, int*);
void __cudaRegisterManagedVar(void**, void**, char*, const char*, int, std::size_t, int, int);
char __cudaInitModule(void**);
void __cudaRegisterVar(void**, char*, char*, const char*, int, std::size_t, int, int);
const char* cudaGetErrorName(int);
int cudaGetLastError();
int cudaMalloc(void**, std::size_t);
int cudaMallocManaged(void**, std::size_t, unsigned);
int cudaMallocAsync(void**, std::size_t, Stream);
int cudaFree(void*);
int cudaMemcpy(void*, const void*, std::size_t, int);
int cudaMemcpyAsync(void*, const void*, std::size_t, int, Stream);
int cudaMemcpyToSymbol(const void*, const void*, std::size_t, std::size_t, int);
int cudaMemset(void*, int, std::size_t);
int cudaMemsetAsync(void*, int, std::size_t, Stream);
int cudaLaunchKernel(const void*, Dim3, Dim3, void**, std::size_t, Stream);
int cudaDeviceSynchronize();
int cudaStreamCreate(Stream*);
int cudaStreamDestroy(Stream);
int cudaStreamSynchronize(Stream);
int cudaStreamWaitEvent(Stream, Event, unsigned);
int cudaStreamBeginCapture(Stream, int);
int cudaStreamEndCapture(Stream, Graph*);
int cudaEventCreate(Event*);
int cudaEventDestroy(Event);
int cudaEventRecord(Event, Stream);
int cudaEventElapsedTime(float*, Event, Event);
int cudaGraphInstantiate(GraphExec*, Graph, unsigned long long);
int cudaGraphGetNodes(Graph, Node*, std::size_t*);
int cudaGraphAddKernelNode(Node*, Graph, const Node*, std::size_t, const KernelParams*);
int cudaGraphCreate(Graph*, unsigned);
int cudaGraphExecKernelNodeSetParams(GraphExec, Node, const KernelParams*);
int cudaGraphLaunch(GraphExec, Stream);
int cudaGraphDestroy(Graph);
int cudaGraphExecDestroy(GraphExec);
int cudaGetDeviceCount(int*);
int cudaSetDevice(int);
int cudaDeviceEnablePeerAccess(int, unsigned);
int cudaCreateTextureObject(void*, const void*, const void*, const void*);
}

namespace {

constexpr unsigned count = 256;

// scale: numbers[i] *= *factor. race: every thread adds to the first number.
constexpr const char* ptx = R"(
.version 8.0
.target sm_80
.address_size 64
.visible .const .align 4 .f32 factor = 0f40000000;
.visible .entry scale(.param .u64 numbers, .param .u32 count) {
  .reg .pred %p1; .reg .b32 %r<6>; .reg .f32 %f<4>; .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [numbers];
  ld.param.u32 %r1, [count];
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %tid.x;
  mad.lo.s32 %r5, %r2, %r3, %r4;
  setp.ge.u32 %p1, %r5, %r1;
  @%p1 bra done;
  mul.wide.u32 %rd2, %r5, 4;
  add.s64 %rd3, %rd1, %rd2;
  ld.global.f32 %f1, [%rd3];
  ld.const.f32 %f2, [factor];
  mul.f32 %f3, %f1, %f2;
  st.global.f32 [%rd3], %f3;
done:
  ret;
}
.visible .entry race(.param .u64 numbers, .param .u32 count) {
  .reg .b32 %r<3>; .reg .f32 %f<3>; .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [numbers];
  mov.u32 %r1, %tid.x;
  cvt.rn.f32.u32 %f2, %r1;
  ld.global.f32 %f1, [%rd1];
  add.f32 %f1, %f1, %f2;
  st.global.f32 [%rd1], %f1;
  ret;
}
.visible .global .attribute(.managed) .align 4 .u32 hits = 40;
.visible .entry hit(.param .u64 numbers, .param .u32 count) {
  .reg .b32 %r<2>;
  atom.global.add.u32 %r1, [hits], 1;
  ret;
}
.visible .entry unknown(.param .u64 numbers, .param .u32 count) {
  .reg .b64 %rd1;
  alloca.u64 %rd1, 16;
  ret;
}
.visible .entry stop(.param .u64 numbers, .param .u32 count) {
  trap;
}
)";

// --- the fat binary -----------------------------------------------------------------------------

template <class Function>
Function* find(const char* library, const char* name) {
  void* const opened = dlopen(library, RTLD_NOW);
  return opened == nullptr ? nullptr : reinterpret_cast<Function*>(dlsym(opened, name));
}

std::string compressed(const std::string& text, const std::string& how) {
  std::string data(2 * text.size() + 1024, '\0');
  std::size_t bytes = 0;
  if (how == "lz4") {
    auto* const compress =
        find<int(const char*, char*, int, int)>("liblz4.so.1", "LZ4_compress_default");
    if (compress == nullptr) std::exit(77);
    bytes = static_cast<std::size_t>(compress(
        text.data(), data.data(), static_cast<int>(text.size()), static_cast<int>(data.size())));
  } else {
    auto* const compress = find<std::size_t(void*, std::size_t, const void*, std::size_t, int)>(
        "libzstd.so.1", "ZSTD_compress");
    if (compress == nullptr) std::exit(77);
    bytes = compress(data.data(), data.size(), text.data(), text.size(), 3);
  }
  data.resize(bytes);
  return data;
}

void append(std::string& to, std::uint64_t value, std::size_t bytes) {
  to.append(reinterpret_cast<const char*>(&value), bytes);
}

// A container with one part: kind 1 is PTX, 2 machine code.
std::string container(const std::string& content, const std::string& how, unsigned kind) {
  const bool is_compressed = how == "lz4" || how == "zstd";
  std::string data = is_compressed ? compressed(content, how) : content;
  const std::uint64_t data_bytes = data.size();
  data.resize((data.size() + 7) / 8 * 8, '\0');
  std::string part;
  append(part, kind, 2);
  append(part, 0x101, 2);
  append(part, 64, 4);
  append(part, data.size(), 8);
  append(part, is_compressed ? data_bytes : 0, 4);
  append(part, 0, 8);
  append(part, 80, 4);
  append(part, 64, 8);
  append(part, how == "lz4" ? 0x2000 : how == "zstd" ? 0x8000 : 0, 8);
  append(part, 0, 8);
  append(part, is_compressed ? content.size() : 0, 8);
  std::string whole;
  append(whole, 0xba55ed50, 4);
  append(whole, 1, 2);
  append(whole, 16, 2);
  append(whole, part.size() + data.size(), 8);
  return whole + part + data;
}

struct Wrapper {
  std::uint32_t mark = 0x466243b1, version = 1;
  const void* data = nullptr;
  void* further = nullptr;
};

// Their addresses stand for the kernels and the variable.
char scale_stand_in, race_stand_in, hit_stand_in, stop_stand_in, unknown_stand_in, factor_stand_in;
unsigned* hits = nullptr;  // set when the module is initialised

class Registration {
 public:
  explicit Registration(std::string code) : code_(std::move(code)) {
    wrapper_.data = code_.data();
    handle_ = __cudaRegisterFatBinary(&wrapper_);
    add(&scale_stand_in, "scale");
    add(&race_stand_in, "race");
    add(&hit_stand_in, "hit");
    add(&stop_stand_in, "stop");
    add(&unknown_stand_in, "unknown");
    __cudaRegisterManagedVar(handle_, reinterpret_cast<void**>(&hits), nullptr, "hits", 0, 4, 0, 0);
    __cudaRegisterVar(handle_, &factor_stand_in, nullptr, "factor", 0, 4, 1, 0);
    __cudaRegisterFatBinaryEnd(handle_);
  }
  ~Registration() { __cudaUnregisterFatBinary(handle_); }
  void initialise() { __cudaInitModule(handle_); }

 private:
  void add(const char* stand_in, const char* name) {
    __cudaRegisterFunction(handle_, stand_in, nullptr, name, -1, nullptr, nullptr, nullptr, nullptr,
                           nullptr);
  }
  std::string code_;
  Wrapper wrapper_;
  void** handle_ = nullptr;
};

// --- the cases ----------------------------------------------------------------------------------

void check(int error, const char* call) {
  if (error == 0) return;
  std::printf("%s: %s\n", call, cudaGetErrorName(error));
  std::exit(4);
}
#define CHECK(call) check(call, #call)

struct Numbers {
  Numbers() {
    CHECK(cudaMalloc(&memory, 4 * count));
    const std::vector<float> ones(count, 1.0F);
    CHECK(cudaMemcpy(memory, ones.data(), 4 * count, 1));
  }
  ~Numbers() { CHECK(cudaFree(memory)); }
  void launch(const char& stand_in, Stream stream = nullptr) {
    unsigned size = count;
    void* parameters[] = {&memory, &size};
    CHECK(cudaLaunchKernel(&stand_in, {2, 1, 1}, {128, 1, 1}, parameters, 0, stream));
  }
  void expect(float value) const {
    std::vector<float> found(count);
    CHECK(cudaMemcpy(found.data(), memory, 4 * count, 2));
    for (const float each : found) {
      if (each == value) continue;
      std::printf("%g instead of %g\n", static_cast<double>(each), static_cast<double>(value));
      std::exit(3);
    }
  }
  void* memory = nullptr;
};

void run_right() {
  Numbers numbers;
  Stream stream = nullptr;
  Event start = nullptr, end = nullptr;
  CHECK(cudaStreamCreate(&stream));
  CHECK(cudaEventCreate(&start));
  CHECK(cudaEventCreate(&end));
  CHECK(cudaEventRecord(start, stream));
  numbers.launch(scale_stand_in, stream);
  CHECK(cudaEventRecord(end, stream));
  CHECK(cudaStreamSynchronize(stream));
  numbers.expect(2);
  const float three = 3;
  CHECK(cudaMemcpyToSymbol(&factor_stand_in, &three, 4, 0, 1));
  numbers.launch(scale_stand_in);
  numbers.expect(6);
  float elapsed = -1;
  CHECK(cudaEventElapsedTime(&elapsed, start, end));
  CHECK(cudaEventDestroy(start));
  CHECK(cudaEventDestroy(end));
  CHECK(cudaStreamDestroy(stream));
  if (elapsed < 0) std::exit(3);
}

void run_managed() {
  void* memory = nullptr;
  CHECK(cudaMallocManaged(&memory, 4 * count, 1));
  auto* const numbers = static_cast<float*>(memory);
  for (unsigned at = 0; at < count; ++at) numbers[at] = 5;
  unsigned size = count;
  void* parameters[] = {&memory, &size};
  CHECK(cudaLaunchKernel(&scale_stand_in, {2, 1, 1}, {128, 1, 1}, parameters, 0, nullptr));
  CHECK(cudaDeviceSynchronize());
  for (unsigned at = 0; at < count; ++at) {
    if (numbers[at] != 10) std::exit(3);
  }
  CHECK(cudaFree(memory));
  ++*hits;
  CHECK(cudaLaunchKernel(&hit_stand_in, {1, 1, 1}, {1, 1, 1}, parameters, 0, nullptr));
  CHECK(cudaDeviceSynchronize());
  if (*hits != 42) std::exit(3);
}

// On a stream that joins the capture of another one and is destroyed before its end.
void launch_beside(Stream stream, Numbers& numbers) {
  Stream beside = nullptr;
  Event fork = nullptr;
  Event join = nullptr;
  CHECK(cudaStreamCreate(&beside));
  CHECK(cudaEventCreate(&fork));
  CHECK(cudaEventCreate(&join));
  CHECK(cudaEventRecord(fork, stream));
  CHECK(cudaStreamWaitEvent(beside, fork, 0));
  numbers.launch(scale_stand_in, beside);
  CHECK(cudaEventRecord(join, beside));
  CHECK(cudaStreamWaitEvent(stream, join, 0));
  CHECK(cudaEventDestroy(fork));
  CHECK(cudaEventDestroy(join));
  CHECK(cudaStreamDestroy(beside));
}

void run_captured_graph() {
  Numbers numbers;
  Stream stream = nullptr;
  Graph graph = nullptr;
  GraphExec exec = nullptr;
  CHECK(cudaStreamCreate(&stream));
  CHECK(cudaStreamBeginCapture(stream, 0));  // global: the driver refuses what is not stream work
  numbers.launch(scale_stand_in, stream);
  launch_beside(stream, numbers);
  CHECK(cudaStreamEndCapture(stream, &graph));
  std::size_t nodes = 0;
  CHECK(cudaGraphGetNodes(graph, nullptr, &nodes));
  if (nodes != 2) std::exit(3);
  numbers.expect(1);
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  CHECK(cudaGraphDestroy(graph));
  CHECK(cudaGraphLaunch(exec, stream));
  CHECK(cudaGraphLaunch(exec, stream));
  numbers.expect(16);
  CHECK(cudaGraphExecDestroy(exec));
  CHECK(cudaStreamDestroy(stream));
}

void run_explicit_graph() {
  Numbers first, second;
  unsigned size = count;
  void* to_first[] = {&first.memory, &size};
  void* to_second[] = {&second.memory, &size};
  KernelParams parameters{&scale_stand_in, {2, 1, 1}, {128, 1, 1}, 0, to_first, nullptr};
  Graph graph = nullptr;
  Node node = nullptr;
  GraphExec exec = nullptr;
  CHECK(cudaGraphCreate(&graph, 0));
  CHECK(cudaGraphAddKernelNode(&node, graph, nullptr, 0, &parameters));
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  CHECK(cudaGraphLaunch(exec, nullptr));
  parameters.parameters = to_second;
  CHECK(cudaGraphExecKernelNodeSetParams(exec, node, &parameters));
  CHECK(cudaGraphLaunch(exec, nullptr));
  CHECK(cudaGraphLaunch(exec, nullptr));
  first.expect(2);
  second.expect(4);
  CHECK(cudaGraphExecDestroy(exec));
  CHECK(cudaGraphDestroy(graph));
}

void expect_bytes(const void* memory, unsigned char value) {
  std::vector<unsigned char> found(count);
  CHECK(cudaMemcpy(found.data(), memory, count, 2));
  for (const unsigned char each : found)
    if (each != value) std::exit(3);
}

// Memory that a graph allocates and does not free: the program frees it, also after the graph's
// end.
void run_graph_memory() {
  Stream stream = nullptr;
  Graph graph = nullptr;
  GraphExec exec = nullptr;
  void* memory = nullptr;
  CHECK(cudaStreamCreate(&stream));
  CHECK(cudaStreamBeginCapture(stream, 0));
  CHECK(cudaMallocAsync(&memory, count, stream));
  CHECK(cudaMemsetAsync(memory, 7, count, stream));
  CHECK(cudaStreamEndCapture(stream, &graph));
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  for (int launch = 0; launch < 2; ++launch) {
    if (launch != 0) CHECK(cudaFree(memory));
    CHECK(cudaGraphLaunch(exec, stream));
    CHECK(cudaStreamSynchronize(stream));
    expect_bytes(memory, 7);
  }
  CHECK(cudaGraphExecDestroy(exec));
  CHECK(cudaGraphDestroy(graph));
  expect_bytes(memory, 7);
  CHECK(cudaFree(memory));
  CHECK(cudaStreamDestroy(stream));
}

// A kernel of device 1 works on memory of device 0.
void run_peers() {
  int devices = 0;
  CHECK(cudaGetDeviceCount(&devices));
  if (devices != 2) std::exit(3);
  Numbers numbers;
  CHECK(cudaSetDevice(1));
  CHECK(cudaDeviceEnablePeerAccess(0, 0));
  numbers.launch(scale_stand_in);
  CHECK(cudaDeviceSynchronize());
  numbers.expect(2);
  CHECK(cudaSetDevice(0));
}

void run_race() {
  Numbers numbers;
  numbers.launch(race_stand_in);
  CHECK(cudaDeviceSynchronize());
}

void run_trap() {
  Numbers numbers;
  unsigned size = count;
  void* parameters[] = {&numbers.memory, &size};
  cudaLaunchKernel(&stop_stand_in, {2, 1, 1}, {128, 1, 1}, parameters, 0, nullptr);
  CHECK(cudaDeviceSynchronize());
}

void run_unknown() {
  Numbers numbers;
  unsigned size = count;
  void* parameters[] = {&numbers.memory, &size};
  CHECK(cudaLaunchKernel(&unknown_stand_in, {1, 1, 1}, {32, 1, 1}, parameters, 0, nullptr));
}

void run_absent() { CHECK(cudaCreateTextureObject(nullptr, nullptr, nullptr, nullptr)); }

// Freed by a destructor that runs when the main thread's own values have been destroyed.
struct FreedAtExit {
  ~FreedAtExit() {
    if (memory != nullptr && cudaFree(memory) != 0) std::_Exit(3);
  }
  void* memory = nullptr;
} freed_at_exit;

void run_static() { CHECK(cudaMalloc(&freed_at_exit.memory, 4 * count)); }

// Null pointers where the driver needs something are answered.
void run_null() {
  constexpr int invalid_value = 1;
  constexpr int invalid_handle = 400;
  const auto expect = [](int result, int expected) {
    if (result != expected) std::exit(3);
  };
  expect(cudaStreamCreate(nullptr), invalid_value);
  expect(cudaEventDestroy(nullptr), invalid_handle);
  expect(cudaGraphDestroy(nullptr), invalid_value);
  auto* const push = find<int(void*)>("libcuda.so.1", "cuCtxPushCurrent_v2");
  auto* const pop = find<int(void**)>("libcuda.so.1", "cuCtxPopCurrent_v2");
  auto* const current = find<int(void**)>("libcuda.so.1", "cuCtxGetCurrent");
  CHECK(cudaDeviceSynchronize());
  void* context = nullptr;
  CHECK(current(&context));
  CHECK(push(context));
  CHECK(pop(nullptr));
}

// A kernel from the driver's linker.
void run_linked() {
  constexpr int ptx_input = 1;
  const char* const library = "libcuda.so.1";
  void *link = nullptr, *image = nullptr, *module = nullptr, *kernel = nullptr;
  std::size_t bytes = 0;
  Numbers numbers;
  CHECK((find<int(unsigned, int*, void**, void**)>(library, "cuLinkCreate_v2")(0, nullptr, nullptr,
                                                                               &link)));
  CHECK((find<int(void*, int, const void*, std::size_t, const char*, unsigned, int*, void**)>(
      library, "cuLinkAddData_v2")(link, ptx_input, ptx, std::strlen(ptx) + 1, "scale", 0, nullptr,
                                   nullptr)));
  CHECK((find<int(void*, void**, std::size_t*)>(library, "cuLinkComplete")(link, &image, &bytes)));
  CHECK((find<int(void**, const void*)>(library, "cuModuleLoadData")(&module, image)));
  CHECK((find<int(void*)>(library, "cuLinkDestroy")(link)));
  CHECK((find<int(void**, void*, const char*)>(library, "cuModuleGetFunction")(&kernel, module,
                                                                               "scale")));
  unsigned size = count;
  void* parameters[] = {&numbers.memory, &size};
  CHECK((find<int(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                  Stream, void**, void**)>(library, "cuLaunchKernel")(
      kernel, 2, 1, 1, 128, 1, 1, 0, nullptr, parameters, nullptr)));
  numbers.expect(2);
  CHECK((find<int(void*)>(library, "cuModuleUnload")(module)));
}

// Two pieces of memory side by side in reserved addresses; one of them moves.
void run_virtual() {
  using Address = unsigned long long;
  struct Properties {
    int type = 1, handle_types = 0;
    struct {
      int type = 1, id = 0;
    } location;
    void* unused = nullptr;
    unsigned char flags[8] = {};
  } properties;
  const char* const library = "libcuda.so.1";
  auto* const create =
      find<int(Address*, std::size_t, const Properties*, Address)>(library, "cuMemCreate");
  auto* const reserve = find<int(Address*, std::size_t, std::size_t, Address, Address)>(
      library, "cuMemAddressReserve");
  auto* const map =
      find<int(Address, std::size_t, std::size_t, Address, Address)>(library, "cuMemMap");
  auto* const unmap = find<int(Address, std::size_t)>(library, "cuMemUnmap");
  auto* const release = find<int(Address)>(library, "cuMemRelease");
  auto* const give_back = find<int(Address, std::size_t)>(library, "cuMemAddressFree");
  std::size_t piece = 0;
  CHECK((find<int(std::size_t*, const Properties*, int)>(library, "cuMemGetAllocationGranularity")(
      &piece, &properties, 0)));
  CHECK(cudaDeviceSynchronize());
  Address begin = 0, handles[2] = {};
  CHECK(reserve(&begin, 3 * piece, 0, 0, 0));
  for (int index = 0; index < 2; ++index) {
    CHECK(create(&handles[index], piece, &properties, 0));
    CHECK(map(begin + static_cast<Address>(index) * piece, piece, 0, handles[index], 0));
  }
  const std::vector<unsigned char> ones(2 * piece, 1);
  CHECK(cudaMemcpy(reinterpret_cast<void*>(begin), ones.data(), 2 * piece, 1));
  CHECK(unmap(begin, piece));
  CHECK(map(begin + 2 * piece, piece, 0, handles[0], 0));
  expect_bytes(reinterpret_cast<const void*>(begin + 3 * piece - count), 1);
  if (map(begin, piece, 0, handles[1], 0) == 0) std::exit(3);  // mapped twice
  if (give_back(begin, 3 * piece) == 0) std::exit(3);          // still mapped
  for (const Address handle : handles) CHECK(release(handle));
  CHECK(unmap(begin, 3 * piece));
  if (release(handles[0]) == 0) std::exit(3);  // there is none any more
  CHECK(give_back(begin, 3 * piece));
}

void run_bounds() {
  Numbers numbers;
  std::vector<float> more(count + 1);
  CHECK(cudaMemcpy(numbers.memory, more.data(), 4 * count + 4, 1));
}

}  // namespace

int main(int argc, char** argv) {
  const std::map<std::string, std::function<void()>> cases{{"right", run_right},
                                                           {"managed", run_managed},
                                                           {"captured", run_captured_graph},
                                                           {"graph", run_explicit_graph},
                                                           {"graph_memory", run_graph_memory},
                                                           {"linked", run_linked},
                                                           {"virtual", run_virtual},
                                                           {"peers", run_peers},
                                                           {"race", run_race},
                                                           {"trap", run_trap},
                                                           {"absent", run_absent},
                                                           {"bounds", run_bounds},
                                                           {"null", run_null},
                                                           {"unknown", run_unknown},
                                                           {"static", run_static},
                                                           {"machine", run_right}};
  const auto found = cases.find(argc > 1 ? argv[1] : "");
  if (found == cases.end()) return 2;
  const bool is_machine_code = found->first == "machine";
  const int starts = argc > 3 ? std::atoi(argv[3]) : 1;
  for (int start = 0; start < starts; ++start) {
    Registration registration(container(is_machine_code ? "\177ELF" : ptx,
                                        argc > 2 ? argv[2] : "none", is_machine_code ? 2 : 1));
    if (found->first == "managed") registration.initialise();
    found->second();
  }
  std::puts("right");
  return 0;
}
