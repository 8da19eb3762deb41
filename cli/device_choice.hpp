// SPDX-License-Identifier: Apache-2.0
// The device of a command: one of this machine, or only the facts of a known device.
#pragma once

#include <optional>
#include <string>

#include <gemmery/device.hpp>

#include "cli/command_line.hpp"

namespace gemmery::cli {

struct ChosenDevice {
  std::optional<Device> device;  // empty: facts only
  DeviceInfo info;

  // "cpu", "cuda:0", "emulated:h200", or the name in the table.
  std::string label;
};

// Chooses by --device; else by --target, from the table of known devices; else GPU 0 if there is
// one, else the CPU. Reports a default choice on standard error. Throws Error: invalid_argument for
// an unknown name, unavailable for a device that this machine lacks.
ChosenDevice choose_device(const Options& options);

// The same for commands that run kernels: throws Error (unavailable) also for a known device that
// this machine lacks.
ChosenDevice choose_present_device(const Options& options);

// The same for commands that compile: throws Error (invalid_argument) also for the CPU, whose
// kernels are part of the library.
ChosenDevice choose_gpu(const Options& options);

}  // namespace gemmery::cli
