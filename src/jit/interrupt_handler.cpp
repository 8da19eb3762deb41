// SPDX-License-Identifier: Apache-2.0
// Watches the handler of SIGINT while NVRTC's front end runs for the first time.
#include "jit/interrupt_handler.hpp"

#include <dlfcn.h>
#include <signal.h>

#include <atomic>
#include <chrono>
#include <stop_token>
#include <system_error>

namespace gemmery::jit {
namespace {

constexpr std::chrono::microseconds look_every{100};

std::atomic<bool> is_settled{false};

struct sigaction interrupt_action() {
  struct sigaction action {};
  ::sigaction(SIGINT, nullptr, &action);
  return action;
}

// Handlers with one argument and with three share their place.
const void* handler_of(const struct sigaction& action) {
  return reinterpret_cast<const void*>(action.sa_handler);
}

// Where the library is mapped that holds an address; nullptr for SIG_DFL and whatever is in none.
const void* library_of(const void* address) {
  Dl_info place{};
  return address != nullptr && ::dladdr(address, &place) != 0 ? place.dli_fbase : nullptr;
}

bool is_of(const void* library, const struct sigaction& action) {
  return library != nullptr && library_of(handler_of(action)) == library;
}

void put_back(const struct sigaction& before, const void* library) {
  struct sigaction replaced {};
  ::sigaction(SIGINT, &before, &replaced);
  // The process itself was faster: its newer handler stands.
  if (!is_of(library, replaced)) ::sigaction(SIGINT, &replaced, nullptr);
}

void watch(const std::stop_token& stop, const struct sigaction& before, const void* library) {
  while (!stop.stop_requested() && !is_settled.load(std::memory_order_relaxed)) {
    if (is_of(library, interrupt_action())) {
      put_back(before, library);
      is_settled.store(true, std::memory_order_relaxed);
    }
    std::this_thread::sleep_for(look_every);
  }
}

// The watcher takes no signal of the process.
std::jthread start_watching(const struct sigaction& before, const void* library) {
  sigset_t all;
  sigset_t mask;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &mask);
  std::jthread watcher;
  try {
    watcher = std::jthread(
        [before, library](const std::stop_token& stop) { watch(stop, before, library); });
  } catch (const std::system_error&) {
    // No thread is to be had: then the handler is NVRTC's until its front end is done.
  }
  pthread_sigmask(SIG_SETMASK, &mask, nullptr);
  return watcher;
}

}  // namespace

KeptInterruptHandler::KeptInterruptHandler(const void* nvrtc_function) {
  if (is_settled.load(std::memory_order_relaxed)) return;
  const void* const library = library_of(nvrtc_function);
  const struct sigaction before = interrupt_action();
  // Another compilation has just begun and is being watched.
  if (is_of(library, before)) return;
  if (before.sa_handler != SIG_IGN) watcher_ = start_watching(before, library);
}

void KeptInterruptHandler::note_compilation() noexcept {
  is_settled.store(true, std::memory_order_relaxed);
}

}  // namespace gemmery::jit
