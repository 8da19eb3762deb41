// SPDX-License-Identifier: Apache-2.0
// Opens libraries by path; the loader's search path is not used.
#include "cli/own_kernels.hpp"

#include <dlfcn.h>

#include <cstdint>
#include <filesystem>
#include <utility>

#include <gemmery/gemmery.h>
#include <gemmery/error.hpp>
#include <gemmery/user_kernel.hpp>
#include <gemmery/version.hpp>

namespace gemmery::cli {
namespace {

constexpr const char* function_name = "gemmery_register_kernels";

// Where the file that holds an address is in memory, and its path.
Dl_info file_of(const void* address) {
  Dl_info info{};
  dladdr(address, &info);
  return info;
}

bool is_built_with_these_headers(void* library, void* function) {
  void* const layout = dlsym(library, "gemmery_header_layout");
  // A library without it finds that of libgemmery.so.
  return layout != nullptr && file_of(layout).dli_fbase == file_of(function).dli_fbase &&
         reinterpret_cast<std::uint64_t (*)()>(layout)() == header_layout();
}

// The path of the gemmery that a library brings with it in place of this program's; empty if it
// uses this program's.
std::string other_gemmery(void* library) {
  const void* const theirs = dlsym(library, "gemmery_library_version");
  if (theirs == nullptr) return {};
  const Dl_info own = file_of(reinterpret_cast<const void*>(&gemmery_library_version));
  const Dl_info other = file_of(theirs);
  return own.dli_fbase == other.dli_fbase ? "" : other.dli_fname;
}

[[noreturn]] void refuse_library(const std::string& file, std::string expected, std::string got,
                                 std::string hint = {},
                                 ErrorKind kind = ErrorKind::invalid_argument) {
  throw Error({.kind = kind,
               .operand = "--load " + file,
               .expected = std::move(expected),
               .got = std::move(got),
               .hint = std::move(hint)});
}

void load_one(const std::string& file) {
  const std::string path = std::filesystem::absolute(file).string();
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const words = dlerror();
    refuse_library(file, "a shared library",
                   words == nullptr ? "what the loader does not take" : words, {},
                   ErrorKind::unavailable);
  }
  void* const function = dlsym(library, function_name);
  if (function == nullptr)
    refuse_library(file, std::string("a library that defines ") + function_name + "()",
                   "one without it", "declare it extern \"C\", as gemmery/user_kernel.hpp does");
  if (!is_built_with_these_headers(library, function))
    refuse_library(file,
                   std::string("a library built with the headers of this gemmery, ") + version(),
                   "one built with others",
                   "build it again, with <gemmery/user_kernel.hpp> of this installation");
  if (const std::string other = other_gemmery(library); !other.empty())
    refuse_library(
        file, "a library that registers its kernels with this program's gemmery",
        "one that loads " + other,
        "the program of a Python package has its library inside: there, gemmery.own_kernels "
        "registers kernels");
  reinterpret_cast<void (*)()>(function)();
}

}  // namespace

void load_own_kernels(const std::vector<std::string>& files) {
  for (const std::string& file : files) load_one(file);
}

}  // namespace gemmery::cli
