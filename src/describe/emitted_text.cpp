// SPDX-License-Identifier: Apache-2.0
#include "describe/emitted_text.hpp"

#include "core/invariant.hpp"
#include "runtime/device_family.hpp"

namespace gemmery::describe {

std::string emitted_text(const Kernel& kernel, Target target) {
  const auto* const emitter = dynamic_cast<const runtime::DeviceFamily*>(&kernel.family());
  require(emitter != nullptr, "a described kernel is of a family that emits no source");
  return emitter->emit(kernel, target).text;
}

}  // namespace gemmery::describe
