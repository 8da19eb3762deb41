// SPDX-License-Identifier: Apache-2.0
// The files that `gemmery new kernel` writes; they lie in cli/new_kernel.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace gemmery::cli {

// A name and a text, both with NAME where the kernel's name belongs.
struct TemplateFile {
  std::string_view name;
  std::string_view text;
};

std::span<const TemplateFile> kernel_template();

// Throws Error (invalid_argument) for a name that is no identifier in both CUDA C++ and Python.
void check_kernel_name(const std::string& name);

// The text with the kernel's name in place of NAME.
std::string with_name(std::string_view text, std::string_view name);

}  // namespace gemmery::cli
