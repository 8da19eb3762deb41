// SPDX-License-Identifier: Apache-2.0
// The message of a conflict: the access, the access that it is not ordered after, and a hint.
#include <array>
#include <charconv>
#include <string_view>

#include "emulator/check/shadow.hpp"

namespace gemmery::emulator {
namespace {

std::string hexadecimal(std::uint64_t value) {
  std::array<char, 16> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value, 16).ptr;
  return "0x" + std::string(digits.data(), end);
}

std::string describe(const Conflict& conflict, bool is_write, const char* space,
                     std::uint64_t address) {
  const bool is_async = conflict.other_proxy == Proxy::async;
  const std::string what =
      std::string(is_write ? "a write of " : "a read of ") + space + " " + hexadecimal(address);
  const std::string other = std::string(is_async ? "an asynchronous " : "a ") +
                            (conflict.other_was_write ? "write" : "read");
  if (!conflict.is_race && conflict.proxy == Proxy::tensor_map) {
    return "a use of the tensor map in " + std::string(space) + " at " + hexadecimal(address) +
           " follows " + other +
           " of it that was not handed to the tensor-map proxy; publish the map by "
           "tensormap.cp_fenceproxy or fence.proxy.tensormap::generic.release.gpu, and let the "
           "thread that uses it execute fence.proxy.tensormap::generic.acquire.gpu [map], 128 "
           "before";
  }
  if (!conflict.is_race) {
    return what + " by the async proxy follows " + other +
           " by the generic proxy without a fence between them; let each thread that writes "
           "execute "
           "fence.proxy.async before the barrier that the issuing thread waits for";
  }
  // Different blocks have no barrier in common, so the hint does not name one.
  const bool may_be_of_another_block = std::string_view(space) == "global memory";
  return what + " is not ordered after " + other +
         " of the same bytes; it needs a barrier, or a wait for the mbarrier phase or group on "
         "which the other completes, between the two" +
         (may_be_of_another_block ? "; from block to block a flag or an atomic, with "
                                    "__threadfence() before it on the one side and behind it on "
                                    "the other"
                                  : "");
}

}  // namespace

ConflictFault::ConflictFault(const Conflict& found, bool is_write, const char* space,
                             std::uint64_t address)
    : Fault(found.is_race ? FaultKind::race : FaultKind::missing_proxy_fence,
            describe(found, is_write, space, address)),
      conflict(found) {}

}  // namespace gemmery::emulator
