// SPDX-License-Identifier: Apache-2.0
// The emulator's own driver functions under the names that the library of the driver exports. A
// name is resolved once, by the loader, to the function of that name.
#include <string>
#include <type_traits>

#include "drop_in/driver/call.hpp"
#include "drop_in/driver/exports.hpp"
#include "drop_in/driver/finding_record.hpp"
#include "emulator/table.hpp"

namespace gemmery::driver {
namespace {

// Streams and contexts have a default; what is only read may be left out.
template <class T>
constexpr bool may_be_null = !std::is_pointer_v<T> || std::is_const_v<std::remove_pointer_t<T>> ||
                             std::is_same_v<T, void*> || std::is_same_v<T, cuda::Stream> ||
                             std::is_same_v<T, cuda::Context> || std::is_same_v<T, cuda::Context*>;

template <class T>
cuda::Result check(T value) noexcept {
  if constexpr (may_be_null<T>)
    return cuda::Result::success;
  else if (value != nullptr)
    return cuda::Result::success;
  return std::is_same_v<T, cuda::Event> ? cuda::Result::invalid_handle
                                        : cuda::Result::invalid_value;
}

// Says why a function of the emulator refused (an instruction that it does not know, with its
// line).
void tell_refusal(const char* name) noexcept {
  const char* reason = nullptr;
  emulator::calls::cuGetErrorString(cuda::Result::not_supported, &reason);
  if (reason == nullptr) return;
  const std::string words = std::string(name) + ": " + reason;
  drop_in::say(words);
  drop_in::record_refusal(words);
}

// The function, which refuses null pointers where it needs something.
template <auto function, const char* name>
struct Guarded;
template <class... Ts, cuda::Result (*function)(Ts...), const char* name>
struct Guarded<function, name> {
  static cuda::Result call(Ts... arguments) {
    cuda::Result result = cuda::Result::success;
    const bool is_complete = ((result = check(arguments), result == cuda::Result::success) && ...);
    if (is_complete) result = function(arguments...);
    if (result == cuda::Result::not_supported) tell_refusal(name);
    return result;
  }
};

}  // namespace

extern "C" {
#define GEMMERY_EXPORT(exported, function)                                  \
  static constexpr char name_of_##exported[] = #exported;                   \
  static DriverCallTypes::function* resolve_##exported() {                  \
    return &Guarded<&emulator::calls::function, name_of_##exported>::call;  \
  }                                                                         \
  __attribute__((visibility("default"))) DriverCallTypes::function exported \
      __attribute__((ifunc("resolve_" #exported)));
GEMMERY_EXPORTS(GEMMERY_EXPORT)
#undef GEMMERY_EXPORT
}

}  // namespace gemmery::driver
