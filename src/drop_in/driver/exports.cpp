// SPDX-License-Identifier: Apache-2.0
// The emulator's own driver functions under the names that the library of the driver exports. A
// name is resolved once, by the loader, to the function of that name.
#include "drop_in/driver/exports.hpp"
#include "emulator/table.hpp"

namespace gemmery::driver {

extern "C" {
#define GEMMERY_EXPORT(exported, function)                                                      \
  static DriverCallTypes::function* resolve_##exported() { return &emulator::calls::function; } \
  __attribute__((visibility("default"))) DriverCallTypes::function exported                     \
      __attribute__((ifunc("resolve_" #exported)));
GEMMERY_EXPORTS(GEMMERY_EXPORT)
#undef GEMMERY_EXPORT
}

}  // namespace gemmery::driver
