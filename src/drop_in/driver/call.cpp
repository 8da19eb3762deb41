// SPDX-License-Identifier: Apache-2.0
#include "drop_in/driver/call.hpp"

#include <unistd.h>

#include <array>
#include <atomic>
#include <mutex>
#include <set>
#include <string>

#include "drop_in/driver/finding_record.hpp"

namespace gemmery::drop_in {
namespace {

std::array<std::atomic<cuda::Result>, emulator::global_range_count> failures{};

// Remembers that the device failed. A fault that ended a block has been reported by then.
cuda::Result note_failure(const emulator::Fault& fault) noexcept {
  const bool is_assert =
      fault.kind == emulator::FaultKind::trap && fault.message.find("assert") != std::string::npos;
  const cuda::Result result = is_assert ? cuda::Result::assert_failed : cuda::Result::launch_failed;
  if (const cuda::Context context = emulator::current_context())
    failures[static_cast<std::size_t>(context->device->ordinal)] = result;
  return result;
}

}  // namespace

void say(std::string_view words) noexcept {
  try {
    std::string line = "gemmery: " + std::string(words) + "\n";
    [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line.data(), line.size());
  } catch (const std::exception&) {  // no memory for a message
  }
}

void say_refused(const char* function) noexcept {
  try {
    static std::mutex mutex;
    static std::set<std::string> told;
    const std::lock_guard lock(mutex);
    if (!told.insert(function).second) return;
    say(std::string(function) + " is not emulated");
    record_refusal(std::string(function) + " is not emulated");
  } catch (const std::exception&) {  // no memory for a message
  }
}

cuda::Result failure_of(const EmulatedDevice& device) noexcept {
  return failures[static_cast<std::size_t>(device.ordinal)];
}

void forget_failure(const EmulatedDevice& device) noexcept {
  failures[static_cast<std::size_t>(device.ordinal)] = cuda::Result::success;
}

cuda::Result refuse_call(const char* function) noexcept {
  try {
    throw;
  } catch (const emulator::Fault& fault) {
    return note_failure(fault);
  } catch (const Refusal& refusal) {
    if (!refusal.words.empty()) say(std::string(function) + ": " + refusal.words);
    return emulator::note_exception();
  } catch (const std::exception& error) {
    const std::string words = std::string(function) + ": " + error.what();
    say(words);
    record_refusal(words);
    return emulator::note_exception();
  } catch (...) {
    return emulator::note_exception();
  }
}

}  // namespace gemmery::drop_in
