// SPDX-License-Identifier: Apache-2.0
// The files that `gemmery new kernel` writes. Their templates are in cli/new_kernel.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace gemmery::cli {

// A file's name and text, both with NAME in place of the kernel's name.
struct TemplateFile {
  std::string_view name;
  std::string_view text;
};

std::span<const TemplateFile> kernel_template();

// Throws Error (invalid_argument) unless the name is an identifier in both CUDA C++ and Python.
void check_kernel_name(const std::string& name);

// The text with the kernel's name in place of NAME.
std::string with_name(std::string_view text, std::string_view name);

}  // namespace gemmery::cli
