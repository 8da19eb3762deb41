// SPDX-License-Identifier: Apache-2.0
// The emulator as a driver: facts, memory, streams, captures, events, errors. The execution of
// kernels is tested with the machine.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>
#include <gemmery/buffer.hpp>
#include <gemmery/log.hpp>

#include <array>
#include <atomic>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "driver/code.hpp"
#include "driver/driver.hpp"
#include "driver/emulated_driver.hpp"
#include "driver/graph.hpp"
#include "driver/stream.hpp"
#include "driver/tensor_map.hpp"
#include "emulator/device.hpp"
#include "emulator/memory/tensor_map.hpp"
#include "tests/support/error_of.hpp"
#include "tests/support/random_seed.hpp"

namespace gemmery::tests {
namespace {

const Device h100 = Device::emulated(0);
const Device h200 = Device::emulated(1);

std::vector<std::uint8_t> random_bytes(std::size_t count) {
  static std::mt19937_64 generator(random_seed());
  std::vector<std::uint8_t> bytes(count);
  for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(generator());
  return bytes;
}

void upload(const Buffer& to, const std::vector<std::uint8_t>& bytes, Stream stream) {
  copy(to.data(), to.device(), bytes.data(), Device::cpu(), bytes.size(), stream);
}

std::vector<std::uint8_t> download(const Buffer& from, std::size_t count, Stream stream) {
  std::vector<std::uint8_t> bytes(count);
  copy(bytes.data(), Device::cpu(), from.data(), from.device(), count, stream);
  return bytes;
}

std::string words(const Error& error) { return error.what(); }

// --- which devices ------------------------------------------------------------------------------

TEST(EmulatedDevice, names_are_written_and_read) {
  EXPECT_EQ(to_string(h200), "emulated:h200");
  EXPECT_EQ(to_string(Device::emulated(5)), "emulated:b200");
  EXPECT_EQ(to_string(Device::emulated(77)), "emulated:77");
  EXPECT_EQ(parse_device("emulated:h200"), h200);
  EXPECT_EQ(parse_device("emulated:1"), h200);
  EXPECT_EQ(parse_device("cuda:3"), Device::cuda(3));
  EXPECT_EQ(parse_device("cpu"), Device::cpu());
  for (const char* const text : {"", "emulated", "emulated:", "emulated:h300", "emulated:-1",
                                 "cuda:h200", "cuda:", "cpu:0", "emulated:1x", "cuda:99999999999"})
    EXPECT_FALSE(parse_device(text)) << text;
}

TEST(EmulatedDevice, every_known_device_is_there_with_the_facts_of_the_table) {
  const driver::Driver& driver = driver::driver_for(DeviceType::emulated);
  ASSERT_EQ(static_cast<std::size_t>(driver.device_count()), known_device_names().size());
  EXPECT_EQ(driver.code_form(), CodeForm::ptx);
  for (int index = 0; index < driver.device_count(); ++index) {
    const auto name = known_device_names()[static_cast<std::size_t>(index)];
    const DeviceInfo& info = driver.open(index).info();
    const DeviceInfo expected = find_device_info(name).value();
    EXPECT_EQ(info.name, expected.name);
    EXPECT_EQ(info.target, expected.target);
    EXPECT_EQ(info.multiprocessors, expected.multiprocessors);
    EXPECT_EQ(info.shared_bytes_per_block, expected.shared_bytes_per_block);
    EXPECT_EQ(info.shared_bytes_per_multiprocessor, expected.shared_bytes_per_multiprocessor);
    EXPECT_EQ(info.l2_bytes, expected.l2_bytes);
    EXPECT_EQ(info.memory_bytes, expected.memory_bytes);
    EXPECT_DOUBLE_EQ(info.clock_ghz, expected.clock_ghz);
    EXPECT_DOUBLE_EQ(info.bandwidth_bytes_per_second, expected.bandwidth_bytes_per_second);
    EXPECT_EQ(info.fma_f32_per_clock, expected.fma_f32_per_clock);
  }
}

TEST(EmulatedDevice, one_that_is_not_there_is_refused) {
  const int beyond = static_cast<int>(known_device_names().size());
  const Error error = error_of([&] { driver::open_device(Device::emulated(beyond)); });
  EXPECT_EQ(error.kind(), ErrorKind::unavailable);
  EXPECT_EQ(error.hint(), "");
}

TEST(EmulatedDevice, a_seed_that_is_no_number_is_refused_when_the_emulator_is_opened) {
  const char* const before = std::getenv("GEMMERY_EMULATOR_SEED");
  const std::string kept = before == nullptr ? "" : before;
  for (const char* const seed : {"seven", "-1", "1.5", "99999999999999999999"}) {
    setenv("GEMMERY_EMULATOR_SEED", seed, 1);
    const Error error = error_of([] { driver::open_emulated_driver(); });
    EXPECT_EQ(error.kind(), ErrorKind::invalid_argument);
    EXPECT_EQ(error.operand(), "GEMMERY_EMULATOR_SEED");
    EXPECT_EQ(error.expected(), "a whole number from 0 to 9223372036854775807");
    EXPECT_EQ(error.got(), '"' + std::string(seed) + '"');
  }
  setenv("GEMMERY_EMULATOR_SEED", kept.c_str(), 1);  // empty counts as unset
}

// --- memory -------------------------------------------------------------------------------------

TEST(EmulatedMemory, bytes_come_back_as_they_went) {
  const OwnedStream stream(h200);
  const auto sent = random_bytes(100'003);
  const Buffer first(sent.size(), stream);
  const Buffer second(sent.size(), stream);
  upload(first, sent, stream);
  copy(second.data(), h200, first.data(), h200, sent.size(), stream);
  EXPECT_EQ(download(second, sent.size(), stream), sent);
  fill(second.data(), 7, 50, stream);
  std::vector<std::uint8_t> expected = sent;
  std::fill_n(expected.begin(), 50, std::uint8_t{7});
  EXPECT_EQ(download(second, sent.size(), stream), expected);
}

TEST(EmulatedMemory, bytes_move_between_devices) {
  const OwnedStream stream(h200);
  const OwnedStream other(h100);
  const auto sent = random_bytes(1000);
  const Buffer here(sent.size(), stream);
  const Buffer there(sent.size(), other);
  upload(here, sent, stream);
  copy(there.data(), h100, here.data(), h200, sent.size(), stream);
  EXPECT_EQ(download(there, sent.size(), other), sent);
}

TEST(EmulatedMemory, an_allocation_ends_where_it_was_asked_to) {
  const OwnedStream stream(h200);
  const Buffer buffer(1000, stream);
  const std::vector<std::uint8_t> bytes(1001);
  EXPECT_NO_THROW(fill(buffer.data(), 1, 1000, stream));
  const Error error = error_of([&] { upload(buffer, bytes, stream); });
  EXPECT_EQ(error.kind(), ErrorKind::launch);
  EXPECT_NE(words(error).find("1000 bytes from"), std::string::npos) << error.what();
  EXPECT_THROW(fill(static_cast<char*>(buffer.data()) + 1000, 1, 1, stream), Error);
  EXPECT_THROW(download(buffer, 1001, stream), Error);
}

TEST(EmulatedMemory, what_nobody_wrote_is_counted_when_it_is_copied_to_the_host) {
  static std::atomic<int> warnings;
  warnings = 0;
  set_log_sink([](LogLevel, std::string_view) { ++warnings; }, LogLevel::warning);
  const OwnedStream stream(h200);
  const std::atomic<std::uint64_t>& unwritten =
      emulator::device_at(h200.index).counters.unwritten_bytes_copied;
  const std::uint64_t before = unwritten;
  const Buffer buffer(40'000, stream);
  fill(buffer.data(), 1, 39'990, stream);
  download(buffer, 39'990, stream);
  EXPECT_EQ(unwritten, before);
  download(buffer, 40'000, stream);
  download(buffer, 40'000, stream);
  set_log_sink({});
  EXPECT_EQ(unwritten, before + 20);
  EXPECT_EQ(warnings, 1);
}

TEST(EmulatedMemory, the_pool_counts_and_holds_its_limit) {
  const OwnedStream stream(h100);
  configure_pool(h100, {.initial_bytes = 1 << 20, .limit_bytes = 8 << 20});
  const std::uint64_t before = pool_statistics(h100).used_bytes;
  {
    const Buffer buffer(5 << 20, stream);
    EXPECT_EQ(pool_statistics(h100).used_bytes, before + (5 << 20));
    EXPECT_EQ(error_of([&] { Buffer(5 << 20, stream); }).kind(), ErrorKind::out_of_memory);
  }
  EXPECT_EQ(pool_statistics(h100).used_bytes, before);
  configure_pool(h100, {});
}

TEST(EmulatedMemory, more_than_this_machine_holds_is_refused) {
  const OwnedStream stream(h200);
  const auto most = static_cast<std::size_t>(driver::open_device(h200).info().memory_bytes);
  EXPECT_EQ(error_of([&] { Buffer(most + 1, stream); }).kind(), ErrorKind::out_of_memory);
  EXPECT_EQ(error_of([&] { Buffer(std::size_t{1} << 46, stream); }).kind(),
            ErrorKind::out_of_memory);
}

// --- captures -----------------------------------------------------------------------------------

TEST(EmulatedCapture, copies_and_fills_are_recorded_and_replayed) {
  const OwnedStream stream(h200);
  const Buffer source(64, stream);
  const Buffer target(64, stream);
  fill(target.data(), 1, 64, stream);
  driver::GraphCapture capture(stream);
  EXPECT_TRUE(driver::is_capturing(driver::open_device(h200), stream));
  copy(target.data(), h200, source.data(), h200, 32, stream);
  fill(static_cast<char*>(target.data()) + 32, 9, 8, stream);
  const driver::Graph graph = capture.end();
  EXPECT_FALSE(driver::is_capturing(driver::open_device(h200), stream));
  EXPECT_EQ(download(target, 64, stream), std::vector<std::uint8_t>(64, 1));
  for (int replay = 0; replay < 3; ++replay) {
    auto sent = random_bytes(64);
    upload(source, sent, stream);
    graph.launch(stream);
    std::fill_n(sent.begin() + 32, 8, std::uint8_t{9});
    std::fill_n(sent.begin() + 40, 24, std::uint8_t{1});
    EXPECT_EQ(download(target, 64, stream), sent);
  }
}

TEST(EmulatedCapture, waiting_or_allocating_on_the_stream_invalidates) {
  const OwnedStream stream(h200);
  const driver::DriverApi& api = driver::driver_for(DeviceType::emulated).api();
  driver::GraphCapture capture(stream);
  EXPECT_THROW(synchronize(stream), Error);
  driver::cuda::CaptureStatus status{};
  const driver::ScopedContext current(driver::open_device(h200));
  EXPECT_EQ(api.cuStreamIsCapturing(driver::stream_handle(stream), &status),
            driver::cuda::Result::success);
  EXPECT_EQ(status, driver::cuda::CaptureStatus::invalidated);
  const Error error = error_of([&] { capture.end(); });
  EXPECT_NE(words(error).find("INVALIDATED"), std::string::npos) << error.what();
  EXPECT_NO_THROW(synchronize(stream));
}

TEST(EmulatedCapture, another_stream_joins_by_an_event) {
  const OwnedStream origin(h200);
  const OwnedStream side(h200);
  const Buffer buffer(16, origin);
  fill(buffer.data(), 1, 16, origin);
  const driver::Event fork(h200, driver::Event::Kind::ordering);
  const driver::Event join(h200, driver::Event::Kind::ordering);
  driver::GraphCapture capture(origin);
  fork.record(origin);
  fork.make_wait(side);
  fill(buffer.data(), 5, 16, side);
  join.record(side);
  join.make_wait(origin);
  const driver::Graph graph = capture.end();
  EXPECT_EQ(download(buffer, 16, origin), std::vector<std::uint8_t>(16, 1));
  graph.launch(side);
  EXPECT_EQ(download(buffer, 16, origin), std::vector<std::uint8_t>(16, 5));
}

TEST(EmulatedCapture, the_legacy_stream_depends_on_blocking_streams_only) {
  const driver::GpuDevice& device = driver::open_device(h200);
  const driver::DriverApi& api = device.api();
  const driver::ScopedContext current(device);
  const Stream legacy = Stream::of(nullptr, h200);
  for (const unsigned flags : {driver::cuda::stream_default, driver::cuda::stream_non_blocking}) {
    driver::cuda::Stream handle = nullptr;
    ASSERT_EQ(api.cuStreamCreate(&handle, flags), driver::cuda::Result::success);
    {
      const driver::GraphCapture capture(Stream::of(handle, h200));
      EXPECT_EQ(driver::is_capturing(device, legacy), flags == driver::cuda::stream_default);
    }
    EXPECT_FALSE(driver::is_capturing(device, legacy));
    api.cuStreamDestroy(handle);
  }
}

// --- handles that are no streams ----------------------------------------------------------------

// Invalid handles: a number, the address of another object, a destroyed stream.
std::vector<Stream> no_streams() {
  static int something_else = 0;
  std::vector<Stream> handles{Stream::of(reinterpret_cast<void*>(std::uintptr_t{12345}), h200),
                              Stream::of(&something_else, h200)};
  const OwnedStream gone(h200);
  handles.push_back(gone);
  return handles;
}

TEST(EmulatedStream, what_is_no_stream_is_an_invalid_argument_of_that_name_wherever_it_is_used) {
  const driver::GpuDevice& device = driver::open_device(h200);
  const OwnedStream sound(h200);
  const Buffer buffer(16, sound);
  const driver::Event event(h200, driver::Event::Kind::ordering);
  event.record(sound);
  std::array<std::uint8_t, 16> host{};
  for (const Stream stream : no_streams()) {
    const std::vector<std::function<void()>> uses{
        [&] { synchronize(stream); },
        [&] { fill(buffer.data(), 1, 16, stream); },
        [&] { copy(buffer.data(), h200, host.data(), Device::cpu(), 16, stream); },
        [&] { copy(host.data(), Device::cpu(), buffer.data(), h200, 16, stream); },
        [&] { const Buffer more(16, stream); },
        [&] { event.record(stream); },
        [&] { event.make_wait(stream); },
        [&] { driver::is_capturing(device, stream); }};
    for (std::size_t index = 0; index < uses.size(); ++index) {
      const Error error = error_of(uses[index]);
      EXPECT_EQ(error.kind(), ErrorKind::invalid_argument) << index << ": " << error.what();
      EXPECT_EQ(error.operand(), "stream") << index;
      EXPECT_EQ(error.expected(), "a stream of emulated:h200 that is alive") << index;
      EXPECT_NE(error.got().find("CUDA_ERROR_INVALID_HANDLE"), std::string::npos) << error.got();
    }
  }
}

TEST(EmulatedStream, one_is_destroyed_once_and_begins_no_capture_afterwards) {
  const driver::GpuDevice& device = driver::open_device(h200);
  const driver::DriverApi& api = device.api();
  const driver::ScopedContext current(device);
  for (const Stream stream : no_streams()) {
    const driver::cuda::Stream handle = driver::stream_handle(stream);
    driver::cuda::Graph graph = nullptr;
    EXPECT_EQ(api.cuStreamDestroy(handle), driver::cuda::Result::invalid_handle);
    EXPECT_EQ(api.cuStreamBeginCapture(handle, driver::cuda::CaptureMode::global),
              driver::cuda::Result::invalid_handle);
    EXPECT_EQ(api.cuStreamEndCapture(handle, &graph), driver::cuda::Result::invalid_handle);
  }
}

// --- events -------------------------------------------------------------------------------------

TEST(EmulatedEvent, time_is_the_hosts) {
  const OwnedStream stream(h200);
  const driver::Event start(h200, driver::Event::Kind::timing);
  const driver::Event end(h200, driver::Event::Kind::timing);
  EXPECT_THROW(driver::elapsed_ms(start, end), Error);
  start.record(stream);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  end.record(stream);
  EXPECT_GE(driver::elapsed_ms(start, end), 20);
}

// --- code ---------------------------------------------------------------------------------------

TEST(EmulatedCode, machine_code_is_refused_with_what_is_taken) {
  const driver::Driver& driver = driver::driver_for(DeviceType::emulated);
  const std::string cubin(
      "\x7f"
      "ELF and so on");
  const Error error =
      error_of([&] { driver::LoadedCode(driver, std::as_bytes(std::span(cubin)), "entry"); });
  EXPECT_NE(words(error).find("NO_BINARY_FOR_GPU"), std::string::npos) << error.what();
  EXPECT_NE(words(error).find("compute_90a"), std::string::npos) << error.what();
}

TEST(EmulatedCode, text_that_is_not_ptx_is_refused_with_its_line) {
  const driver::Driver& driver = driver::driver_for(DeviceType::emulated);
  const std::string text = ".version 9.0\n.target sm_90a\n.address_size 64\nnonsense here;\n";
  const Error error =
      error_of([&] { driver::LoadedCode(driver, std::as_bytes(std::span(text)), "entry"); });
  EXPECT_NE(words(error).find("INVALID_PTX"), std::string::npos) << error.what();
  EXPECT_NE(words(error).find("line 4"), std::string::npos) << error.what();
}

TEST(EmulatedCode, an_entry_that_is_not_there_is_named) {
  const driver::Driver& driver = driver::driver_for(DeviceType::emulated);
  const std::string text =
      ".version 9.0\n.target sm_90a\n.address_size 64\n.visible .entry nothing()\n{\nret;\n}\n";
  const Error error =
      error_of([&] { driver::LoadedCode(driver, std::as_bytes(std::span(text)), "something"); });
  EXPECT_NE(words(error).find("NOT_FOUND"), std::string::npos) << error.what();
  EXPECT_NE(words(error).find("something"), std::string::npos) << error.what();
}

TEST(EmulatedCode, tensor_maps_are_the_emulators_own) {
  const OwnedStream stream(h200);
  const Buffer memory(1 << 20, stream);
  const driver::TiledTensorMap view{.address = memory.data(),
                                    .dtype = DType::bfloat16,
                                    .rank = 2,
                                    .extents = {256, 512},
                                    .byte_strides = {512},
                                    .box = {64, 128},
                                    .swizzle = driver::cuda::TensorMapSwizzle::bytes128};
  const driver::cuda::TensorMap map =
      driver::encode(driver::driver_for(DeviceType::emulated).api(), view);
  emulator::TensorMapBytes bytes;
  std::copy_n(map.opaque, bytes.size(), bytes.begin());
  const emulator::TensorMapFields fields = emulator::decode(bytes);
  EXPECT_EQ(fields.address, reinterpret_cast<std::uintptr_t>(memory.data()));
  EXPECT_EQ(fields.element, emulator::MapElement::bf16);
  EXPECT_EQ(fields.extents[1], 512U);
  EXPECT_EQ(fields.byte_strides[0], 512U);
  EXPECT_EQ(fields.box[1], 128U);
  EXPECT_EQ(fields.swizzle, 3);
}

// --- threads and forks --------------------------------------------------------------------------

TEST(EmulatedDevice, threads_use_one_device_side_by_side) {
  std::vector<std::jthread> threads;
  for (int thread = 0; thread < 8; ++thread) {
    threads.emplace_back([] {
      for (int round = 0; round < 20; ++round) {
        const OwnedStream stream(h200);
        const std::vector<std::uint8_t> sent(1000, static_cast<std::uint8_t>(round));
        const Buffer buffer(sent.size(), stream);
        upload(buffer, sent, stream);
        driver::GraphCapture capture(stream);
        fill(buffer.data(), 0, 1, stream);
        capture.end();
        EXPECT_EQ(download(buffer, sent.size(), stream), sent);
      }
    });
  }
}

TEST(EmulatedDevice, a_forked_child_goes_on_with_it) {
  const OwnedStream stream(h200);
  const auto sent = random_bytes(1000);
  const Buffer buffer(sent.size(), stream);
  upload(buffer, sent, stream);
  std::atomic<bool> is_done = false;
  std::jthread busy([&] {
    const OwnedStream other(h200);
    while (!is_done) fill(buffer.data(), sent[0], 1, other);
  });
  for (int round = 0; round < 10; ++round) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(30);
      const Buffer own(sent.size(), stream);
      copy(own.data(), h200, buffer.data(), h200, sent.size(), stream);
      _exit(download(own, sent.size(), stream) == sent ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
  is_done = true;
}

}  // namespace
}  // namespace gemmery::tests
