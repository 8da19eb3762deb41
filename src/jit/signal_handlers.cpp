// SPDX-License-Identifier: Apache-2.0
// The function that NVRTC calls instead of `signal`.
#include "jit/signal_handlers.hpp"

#include <dlfcn.h>
#include <signal.h>

#include <atomic>

#include "platform/imported_function.hpp"

namespace gemmery::jit {
namespace {

// Where NVRTC is mapped.
std::atomic<const void*> nvrtc_base{nullptr};

const void* base_of(const void* address) {
  Dl_info place{};
  return address != nullptr && ::dladdr(address, &place) != 0 ? place.dli_fbase : nullptr;
}

// SIG_DFL and SIG_IGN belong to no library.
bool is_of_nvrtc(sighandler_t handler) {
  const void* const base = base_of(reinterpret_cast<const void*>(handler));
  return base != nullptr && base == nvrtc_base.load(std::memory_order_relaxed);
}

bool is_put_in_place_by_nvrtc(sighandler_t handler) {
  return handler == SIG_IGN || is_of_nvrtc(handler);
}

// Handlers that it installed earlier, in another caller's compilation that still runs, are removed
// as usual.
sighandler_t signal_of_nvrtc(int number, sighandler_t handler) {
  struct sigaction now {};
  if (::sigaction(number, nullptr, &now) != 0) return SIG_ERR;
  if (is_put_in_place_by_nvrtc(now.sa_handler) && !is_put_in_place_by_nvrtc(handler))
    return ::signal(number, handler);
  return now.sa_handler;
}

}  // namespace

bool keep_signal_handlers(const void* nvrtc_function) {
  nvrtc_base.store(base_of(nvrtc_function), std::memory_order_relaxed);
  return platform::redirect_import(nvrtc_function, "signal",
                                   reinterpret_cast<const void*>(&signal_of_nvrtc));
}

}  // namespace gemmery::jit
