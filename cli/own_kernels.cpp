// SPDX-License-Identifier: Apache-2.0
// Opens libraries by path; the loader's search path is not used.
#include "cli/own_kernels.hpp"

#include <dlfcn.h>

#include <filesystem>

#include <gemmery/error.hpp>

namespace gemmery::cli {
namespace {

constexpr const char* function_name = "gemmery_register_kernels";

void load_one(const std::string& file) {
  const std::string path = std::filesystem::absolute(file).string();
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const words = dlerror();
    throw Error({.kind = ErrorKind::unavailable,
                 .operand = "--load " + file,
                 .expected = "a shared library",
                 .got = words == nullptr ? "what the loader does not take" : words});
  }
  using Register = void (*)();
  const auto register_kernels = reinterpret_cast<Register>(dlsym(library, function_name));
  if (register_kernels == nullptr) {
    throw Error({.kind = ErrorKind::invalid_argument,
                 .operand = "--load " + file,
                 .expected = std::string("a library that defines ") + function_name + "()",
                 .got = "one without it",
                 .hint = "declare it extern \"C\", as gemmery/user_kernel.hpp does"});
  }
  register_kernels();
}

}  // namespace

void load_own_kernels(const std::vector<std::string>& files) {
  for (const std::string& file : files) load_one(file);
}

}  // namespace gemmery::cli
