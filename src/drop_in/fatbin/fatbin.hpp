// SPDX-License-Identifier: Apache-2.0
// Fat binaries: containers in which nvcc puts a program's PTX and machine code, for several
// architectures. No manual describes the format; what is known of it was read off nvcc's output.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace gemmery::drop_in {

struct FatbinContent {
  std::vector<std::string> ptx;   // texts, in the order of the container
  std::vector<int> machine_code;  // architectures of machine code: 90, 80
};

// True for the container, and for the structure that points to one (what a program registers).
bool is_fatbin(const void* code) noexcept;

// Reads every part. Throws Error: invalid_argument for a format that is not known, unavailable for
// compressed parts if the library for them is not on this machine.
FatbinContent read_fatbin(const void* code);

}  // namespace gemmery::drop_in
