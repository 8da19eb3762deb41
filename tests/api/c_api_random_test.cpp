// SPDX-License-Identifier: Apache-2.0
// Random invalid calls of the C API from several threads that share one bundle: each call returns a
// result and, if it fails, a message; valid products are correct. GEMMERY_SOAK=1 makes 20 times as
// many calls.
#include <gemmery/gemmery.h>

#include <gtest/gtest.h>
#include <gemmery/artifact.hpp>
#include <gemmery/discovery.hpp>
#include <gemmery/family.hpp>

#include <array>
#include <atomic>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "platform/private_folder.hpp"
#include "tests/support/random_seed.hpp"
#include "tests/support/with_nvrtc.hpp"

namespace gemmery {
namespace {

constexpr int m = 24, n = 16, k = 8;
constexpr int thread_count = 4;
constexpr std::size_t buffer_bytes = 4096;  // per operand: more than any of them needs

int calls_per_thread() { return std::getenv("GEMMERY_SOAK") != nullptr ? 20000 : 1000; }

// Owns an object of the API and releases it by the API's function.
template <class Object, void (*release)(Object*)>
using Owned = std::unique_ptr<Object, std::integral_constant<void (*)(Object*), release>>;
using Stream = Owned<gemmery_stream, gemmery_free_stream>;
using Buffer = Owned<gemmery_buffer, gemmery_free_buffer>;
using Launch = Owned<gemmery_launch, gemmery_free_launch>;
using Bundle = Owned<gemmery_bundle, gemmery_free_bundle>;

// One thread's calls. It passes NULL, its own handles or the shared bundle's; a C API cannot check
// other handles.
class Caller {
 public:
  Caller(std::uint64_t seed, const gemmery_bundle* bundle, std::string path)
      : random_(seed), bundle_(bundle), path_(std::move(path)) {
    gemmery_get_kernel(bundle, 0, &kernel_);
    gemmery_parse_device("emulated:h200", &device_);
    gemmery_stream* stream = nullptr;
    gemmery_make_stream(device_, &stream);
    stream_.reset(stream);
    for (Buffer& buffer : operands_) buffer = make_buffer(buffer_bytes);
  }

  void call_at_random() {
    using Call = void (Caller::*)();
    constexpr std::array<Call, 14> calls{
        &Caller::parse_device, &Caller::load_bundle, &Caller::find_kernel, &Caller::get_kernel,
        &Caller::describe,     &Caller::supports,    &Caller::workspace,   &Caller::load_kernel,
        &Caller::run,          &Caller::bind,        &Caller::patch,       &Caller::put,
        &Caller::copy,         &Caller::streams};
    (this->*pick(calls))();
  }

  void multiply_and_check() {
    fill_operands();
    Words words(*this);
    const gemmery_gemm gemm = words.valid();
    ASSERT_EQ(gemmery_run(kernel_, &gemm, gemmery_stream_handle(stream_.get()), nullptr),
              GEMMERY_OK)
        << gemmery_last_error();
    std::vector<float> out(m * n);
    ASSERT_EQ(gemmery_copy_out(out.data(), operands_[2].get(), out.size() * 4, stream_.get()),
              GEMMERY_OK);
    ASSERT_EQ(gemmery_synchronize(stream_.get()), GEMMERY_OK) << gemmery_last_error();
    for (const float element : out) ASSERT_EQ(element, 6.0F * k);
  }

  int made() const { return made_; }
  int accepted() const { return accepted_; }

 private:
  // The structs of one product, valid unless a field is made invalid.
  struct Words {
    explicit Words(Caller& caller) {
      const std::array<std::array<std::int64_t, 2>, 3> sizes{{{m, k}, {k, n}, {m, n}}};
      for (std::size_t i = 0; i < 3; ++i) {
        shapes[i] = {sizes[i][0], sizes[i][1], 1, 1, 1, 1};
        strides[i] = {sizes[i][1], 1, 1, 1, 1, 1};
        tensors[i] = {.data = gemmery_buffer_data(caller.operands_[i].get()),
                      .device = caller.device_,
                      .ndim = 2,
                      .dtype_code = 2,
                      .dtype_bits = 32,
                      .dtype_lanes = 1,
                      .shape = shapes[i].data(),
                      .strides = nullptr,
                      .byte_offset = 0};
      }
    }
    gemmery_gemm valid() const {
      gemmery_gemm gemm = GEMMERY_INIT(gemmery_gemm);
      gemm.a = &tensors[0];
      gemm.b = &tensors[1];
      gemm.out = &tensors[2];
      gemm.alpha = 1;
      return gemm;
    }

    std::array<std::array<std::int64_t, 6>, 3> shapes, strides;
    std::array<gemmery_tensor, 3> tensors;
  };

  bool chance(int percent) { return std::uniform_int_distribution(0, 99)(random_) < percent; }

  template <class Choice, std::size_t count>
  Choice pick(const std::array<Choice, count>& choices) {
    return choices[std::uniform_int_distribution<std::size_t>(0, count - 1)(random_)];
  }

  std::int64_t odd_number() {
    return pick(std::array<std::int64_t, 12>{
        0, 1, -1, 2, 7, 8, 24, 4096, std::int64_t{1} << 31, std::int64_t{1} << 62,
        std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min()});
  }

  gemmery_device odd_device() {
    if (chance(60)) return device_;
    return {
        pick(std::array<std::int32_t, 6>{GEMMERY_CPU, GEMMERY_CUDA, GEMMERY_EMULATED, 0, -1, 55}),
        static_cast<std::int32_t>(odd_number())};
  }

  const gemmery_kernel* odd_kernel() { return chance(95) ? kernel_ : nullptr; }

  void* odd_stream() {
    if (chance(80)) return gemmery_stream_handle(stream_.get());
    return pick(std::array<void*, 3>{nullptr, reinterpret_cast<void*>(1), this});
  }

  void spoil(Words& words) {
    const std::size_t which = std::uniform_int_distribution<std::size_t>(0, 2)(random_);
    gemmery_tensor& tensor = words.tensors[which];
    switch (std::uniform_int_distribution(0, 8)(random_)) {
      case 0:
        tensor.data = pick(std::array<void*, 3>{nullptr, reinterpret_cast<void*>(3),
                                                static_cast<char*>(tensor.data) + 4});
        break;
      case 1:
        tensor.device = odd_device();
        break;
      case 2:
        tensor.ndim = pick(std::array{-1, 0, 1, 3, 4, 6, 1 << 30});
        break;
      case 3:
        tensor.dtype_code = static_cast<std::uint8_t>(odd_number());
        break;
      case 4:
        tensor.dtype_bits = static_cast<std::uint8_t>(odd_number());
        break;
      case 5:
        tensor.dtype_lanes = static_cast<std::uint16_t>(odd_number());
        break;
      case 6:
        words.shapes[which][pick(std::array<std::size_t, 2>{0, 1})] = odd_number();
        break;
      case 7:
        tensor.strides = words.strides[which].data();
        words.strides[which][pick(std::array<std::size_t, 2>{0, 1})] = odd_number();
        break;
      default:
        tensor.byte_offset = static_cast<std::uint64_t>(odd_number());
    }
  }

  void spoil(gemmery_gemm& gemm) {
    switch (std::uniform_int_distribution(0, 6)(random_)) {
      case 0:
        gemm.a = nullptr;
        break;
      case 1:
        gemm.out = gemm.a;
        break;
      case 2:
        gemm.c = pick(std::array{gemm.a, gemm.out});
        break;
      case 3:
        gemm.math = pick(std::array{"tf32", "", "guess", "f16x3"});
        break;
      case 4:
        gemm.accumulator = pick(std::array{"f32", "f64", "", "int32", "sum"});
        break;
      case 5:
        gemm.struct_size = pick(std::array<std::size_t, 4>{0, 8, sizeof gemm - 1, sizeof gemm});
        break;
      default:
        gemm.alpha = pick(std::array{0.0, -1.0, 1e300, std::numeric_limits<double>::quiet_NaN()});
        gemm.beta = pick(std::array{0.0, 1.0, std::numeric_limits<double>::infinity()});
    }
  }

  // Calls `use(gemm)` with a product, mostly an invalid one.
  template <class Use>
  void with_gemm(const Use& use) {
    Words words(*this);
    while (chance(40)) spoil(words);
    gemmery_gemm gemm = words.valid();
    while (chance(20)) spoil(gemm);
    use(chance(97) ? &gemm : nullptr);
  }

  // Checks the result of every call.
  gemmery_result expect(gemmery_result result) {
    ++made_;
    accepted_ += result == GEMMERY_OK ? 1 : 0;
    EXPECT_STRNE(gemmery_result_name(result), "unknown") << result;
    EXPECT_NE(result, GEMMERY_INTERNAL) << gemmery_last_error();
    if (result != GEMMERY_OK) {
      EXPECT_STRNE(gemmery_last_error(), "");
    }
    return result;
  }

  // By reference, since the handle is read after the call that creates it.
  template <class Handle>
  void expect_made(gemmery_result result, Handle* const& handle) {
    EXPECT_EQ(expect(result) == GEMMERY_OK, handle != nullptr);
  }

  Buffer make_buffer(std::size_t bytes) {
    gemmery_buffer* buffer = nullptr;
    expect_made(gemmery_make_buffer(bytes, stream_.get(), &buffer), buffer);
    return Buffer(buffer);
  }

  void fill_operands() {
    const std::vector<float> twos(buffer_bytes / 4, 2), threes(buffer_bytes / 4, 3);
    expect(gemmery_copy_in(operands_[0].get(), twos.data(), buffer_bytes, stream_.get()));
    expect(gemmery_copy_in(operands_[1].get(), threes.data(), buffer_bytes, stream_.get()));
    expect(gemmery_copy_in(operands_[2].get(), threes.data(), buffer_bytes, stream_.get()));
    expect(gemmery_synchronize(stream_.get()));
  }

  // --- the calls ---

  void parse_device() {
    gemmery_device device{};
    expect(gemmery_parse_device(pick(std::array{"cpu", "cuda:0", "cuda:-1", "emulated:h200", "",
                                                "emulated:", "cuda:99999999999", "\xff\xfe"}),
                                chance(95) ? &device : nullptr));
  }

  void load_bundle() {
    gemmery_bundle* bundle = nullptr;
    const std::string damaged = damaged_file();
    const auto path = pick(std::array{path_.c_str(), damaged.c_str(), "", "/", "/dev/null",
                                      "/no/such/file", static_cast<const char*>(nullptr)});
    const gemmery_result result = gemmery_load_bundle(path, &bundle);
    expect_made(result, bundle);
    const Bundle owned(bundle);
  }

  // A copy of the bundle's file with some bytes changed, or cut.
  std::string damaged_file() {
    std::ifstream source(path_, std::ios::binary);
    std::string bytes{std::istreambuf_iterator<char>(source), {}};
    std::uniform_int_distribution<std::size_t> place(0, bytes.size() - 1);
    for (int change = 0; change < 3; ++change)
      bytes[place(random_)] = static_cast<char>(random_() & 0xff);
    if (chance(30)) bytes.resize(place(random_));
    return folder_.write("damaged", bytes);
  }

  void find_kernel() {
    const gemmery_kernel* kernel = nullptr;
    const auto problem = pick(std::array{
        "gemm 24x16x8 a=f32", "gemm 24x16x8 a=f64", "gemm", "", "gemm 0x0x0 a=f32",
        "gemm 99999999999x1x1 a=f32", "gemm 24x16x8 a=f32 epilogue=\"D = relu(\"",
        "gemm 2147483647x2147483647x2147483647 a=f32", static_cast<const char*>(nullptr)});
    const gemmery_result result =
        gemmery_find_kernel(chance(95) ? bundle_ : nullptr, problem, odd_device(), &kernel);
    expect_made(result, kernel);
  }

  void get_kernel() {
    const gemmery_kernel* kernel = nullptr;
    const gemmery_result result = gemmery_get_kernel(
        chance(95) ? bundle_ : nullptr, static_cast<std::size_t>(odd_number()), &kernel);
    expect_made(result, kernel);
  }

  void describe() {
    gemmery_kernel_info info = GEMMERY_INIT(gemmery_kernel_info);
    if (chance(30)) info.struct_size = pick(std::array<std::size_t, 3>{0, 8, sizeof info - 1});
    if (expect(gemmery_describe_kernel(odd_kernel(), &info)) == GEMMERY_OK) {
      EXPECT_NE(std::string(info.source).find("__global__"), std::string::npos);
    }
  }

  void supports() {
    with_gemm([&](const gemmery_gemm* gemm) { expect(gemmery_supports(odd_kernel(), gemm)); });
  }

  void workspace() {
    std::size_t bytes = 0;
    with_gemm([&](const gemmery_gemm* gemm) {
      expect(gemmery_get_workspace_size(odd_kernel(), gemm, chance(95) ? &bytes : nullptr));
    });
  }

  void load_kernel() { expect(gemmery_load_kernel(odd_kernel(), odd_device())); }

  void run() {
    gemmery_workspace workspace = GEMMERY_INIT(gemmery_workspace);
    if (chance(20)) workspace.struct_size = pick(std::array<std::size_t, 2>{0, 8});
    workspace.data = pick(std::array<void*, 3>{nullptr, reinterpret_cast<void*>(256),
                                               gemmery_buffer_data(operands_[2].get())});
    workspace.bytes = static_cast<std::size_t>(odd_number());
    with_gemm([&](const gemmery_gemm* gemm) {
      expect(gemmery_run(odd_kernel(), gemm, odd_stream(), chance(50) ? &workspace : nullptr));
    });
    restore();
  }

  void bind() {
    gemmery_launch* launch = nullptr;
    with_gemm([&](const gemmery_gemm* gemm) {
      expect_made(gemmery_bind(odd_kernel(), gemm, &launch), launch);
    });
    if (launch != nullptr) launch_.reset(launch);
  }

  void patch() {
    expect(gemmery_set_scalars(launch_.get(), pick(std::array{0.0, 1.0, 1e308}),
                               pick(std::array{0.0, 1.0, -1e308})));
    const auto operand =
        pick(std::array{"A", "B", "C", "out", "", "a", static_cast<const char*>(nullptr)});
    const auto data = pick(std::array<const void*, 4>{nullptr, reinterpret_cast<const void*>(5),
                                                      gemmery_buffer_data(operands_[0].get()),
                                                      gemmery_buffer_data(operands_[2].get())});
    expect(gemmery_set_data(launch_.get(), operand, data));
  }

  void put() {
    expect(gemmery_put(launch_.get(), odd_stream()));
    restore();
  }

  void copy() {
    std::vector<char> host(buffer_bytes);
    gemmery_buffer* const buffer =
        chance(95) ? pick(std::array{operands_[0].get(), operands_[2].get()}) : nullptr;
    const auto bytes = pick(std::array<std::size_t, 5>{0, 1, buffer_bytes, buffer_bytes + 1,
                                                       std::numeric_limits<std::size_t>::max()});
    void* const place = chance(95) ? host.data() : nullptr;
    if (chance(50)) {
      expect(gemmery_copy_in(buffer, place, bytes, stream_.get()));
    } else {
      expect(gemmery_copy_out(place, buffer, bytes, stream_.get()));
    }
    expect(gemmery_synchronize(chance(95) ? stream_.get() : nullptr));
  }

  void streams() {
    gemmery_stream* stream = nullptr;
    expect_made(gemmery_make_stream(odd_device(), &stream), stream);
    const Stream owned(stream);
    gemmery_buffer* buffer = nullptr;
    const auto bytes = pick(std::array<std::size_t, 5>{0, 1, 4096, std::size_t{1} << 50,
                                                       std::numeric_limits<std::size_t>::max()});
    expect_made(gemmery_make_buffer(bytes, stream, &buffer), buffer);
    gemmery_free_buffer(buffer);
  }

  // A kernel that failed on an emulated device leaves the error to the stream's next user.
  void restore() { expect(gemmery_synchronize(stream_.get())); }

  std::mt19937_64 random_;
  const gemmery_bundle* bundle_;
  std::string path_;
  platform::PrivateFolder folder_{"gemmery-c-api-caller"};
  const gemmery_kernel* kernel_ = nullptr;
  gemmery_device device_{};
  Stream stream_;
  std::array<Buffer, 3> operands_;
  Launch launch_;
  int made_ = 0;
  int accepted_ = 0;
};

class CApiUnderRandomCalls : public tests::WithNvrtc {
 protected:
  void SetUp() override {
    WithNvrtc::SetUp();
    if (IsSkipped()) return;
    const auto problem = parse_problem("gemm 24x16x8 a=f32").problem;
    const Kernel kernel = get_kernels(problem, find_device_info("h200").value()).at(0);
    const StoredArtifact stored{kernel.compile(Target{90, 0}), {"gemm 24x16x8 a=f32"}};
    save_artifacts(path_, std::span(&stored, 1), {.with_ptx = true});
    gemmery_bundle* bundle = nullptr;
    ASSERT_EQ(gemmery_load_bundle(path_.c_str(), &bundle), GEMMERY_OK) << gemmery_last_error();
    bundle_.reset(bundle);
  }

  platform::PrivateFolder folder_{"gemmery-c-api-random"};
  std::string path_ = folder_.path() + "/kernels";
  Bundle bundle_;
};

TEST_F(CApiUnderRandomCalls, every_call_answers_and_products_stay_right) {
  const std::uint64_t seed = tests::random_seed();
  std::atomic<int> made{0}, accepted{0};
  std::vector<std::jthread> threads;
  for (int thread = 0; thread < thread_count; ++thread) {
    threads.emplace_back([&, thread] {
      Caller caller(seed + static_cast<std::uint64_t>(thread), bundle_.get(), path_);
      for (int call = 0; call < calls_per_thread(); ++call) {
        caller.call_at_random();
        if (call % 50 == 0) caller.multiply_and_check();
      }
      made += caller.made();
      accepted += caller.accepted();
    });
  }
  threads.clear();
  std::printf("%d calls, %d of them accepted\n", made.load(), accepted.load());
}

}  // namespace
}  // namespace gemmery
