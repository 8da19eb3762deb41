// SPDX-License-Identifier: Apache-2.0
// Chooses the devices when the library is loaded, before any of its functions is called.
#include <string>
#include <string_view>
#include <vector>

#include "drop_in/driver/call.hpp"
#include "drop_in/driver/finding_record.hpp"
#include "platform/environment.hpp"

namespace gemmery::drop_in {
namespace {

std::vector<std::string> split(std::string_view words) {
  std::vector<std::string> list;
  while (true) {
    const std::size_t comma = words.find(',');
    list.emplace_back(words.substr(0, comma));
    if (comma == std::string_view::npos) return list;
    words.remove_prefix(comma + 1);
  }
}

__attribute__((constructor)) void start() {
  answer("GEMMERY_EMULATED_DEVICES", [] {
    emulator::choose_devices(
        split(platform::read_environment("GEMMERY_EMULATED_DEVICES").value_or("h200")));
  });
  answer("GEMMERY_EMULATION_RECORD", [] { record_findings(); });
}

}  // namespace
}  // namespace gemmery::drop_in
