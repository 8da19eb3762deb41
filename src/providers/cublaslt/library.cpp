// SPDX-License-Identifier: Apache-2.0
// Searches for cuBLASLt, resolves its functions and refuses versions that are too old.
#include "providers/cublaslt/library.hpp"

#include <gemmery/error.hpp>

#include <unistd.h>

#include <array>
#include <exception>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "jit/toolkit_places.hpp"
#include "platform/environment.hpp"
#include "platform/library.hpp"

namespace gemmery::cublaslt {
namespace {

constexpr std::array<const char*, 2> sonames{"libcublasLt.so.13", "libcublasLt.so.12"};

// Earlier versions have known faults in what is used here: products of int8 were wrong since
// 12.1.3 (pytorch's issue 107671), GELU after float8 failed before 12.3.2 (tensorflow's 64245).
constexpr Version oldest_version{12, 4, 0};

FoundLibrary refuse(std::string reason) {
  return {nullptr, "unavailable: cuBLASLt: " + std::move(reason)};
}

// The name of the first function that the file does not have; empty if it has all.
std::string resolve(const platform::SharedLibrary& file, Api& api) {
  std::string missing;
  const auto find = [&](auto*& function, const char* name) {
    function =
        file.find_function<std::remove_pointer_t<std::remove_reference_t<decltype(function)>>>(
            name);
    if (function == nullptr && missing.empty()) missing = name;
  };
#define GEMMERY_RESOLVE(name, result, parameters) find(api.name, #name);
  GEMMERY_CUBLASLT_FUNCTIONS(GEMMERY_RESOLVE)
#undef GEMMERY_RESOLVE
  return missing;
}

FoundLibrary take(const platform::SharedLibrary& file) {
  Api api;
  if (const std::string missing = resolve(file, api); !missing.empty())
    return refuse(file.path() + " has no function " + missing);
  const Version version = version_of(api.cublasLtGetVersion());
  if (version < oldest_version)
    return refuse(fmt::format("{} has version {}, {} or later is needed", file.path(),
                              to_string(version), to_string(oldest_version)));
  return {std::make_unique<const Library>(Library{api, version, file.path()}), {}};
}

// Where NVIDIA's wheels put it, below a folder of packages.
constexpr std::array<const char*, 2> wheel_places{"/nvidia/cu13/lib/libcublasLt.so.13",
                                                  "/nvidia/cublas/lib/libcublasLt.so.12"};

std::vector<std::string> places_of_wheels() {
  std::vector<std::string> places;
  for (const std::string& packages : jit::python_folders())
    for (const char* const place : wheel_places)
      if (::access((packages + place).c_str(), R_OK) == 0) places.push_back(packages + place);
  return places;
}

// In this order: wheels, toolkits, the system's loader.
std::vector<std::string> usual_places() {
  std::vector<std::string> folders;
  for (const std::string& root : jit::named_toolkits()) folders.push_back(root + "/lib64/");
  folders.push_back(jit::usual_toolkit + std::string("/lib64/"));
  folders.emplace_back();
  std::vector<std::string> places = places_of_wheels();
  for (const std::string& folder : folders)
    for (const char* const soname : sonames) places.push_back(folder + soname);
  return places;
}

FoundLibrary search() {
  if (!platform::read_environment_flag("GEMMERY_CUBLASLT", true))
    return refuse("switched off by GEMMERY_CUBLASLT");
  std::vector<std::string> places;
  if (const auto named = platform::read_environment_path("GEMMERY_CUBLASLT_LIBRARY")) {
    places = {*named};
  } else if (platform::read_environment_flag("GEMMERY_HIDE_CUDA")) {
    return refuse("not looked for, as GEMMERY_HIDE_CUDA asks");
  } else {
    const std::vector<std::string> names(sonames.begin(), sonames.end());
    const auto loaded = platform::LibrarySearch::find_loaded(names);
    if (loaded.library) return take(*loaded.library);
    places = usual_places();
  }
  const auto result = platform::LibrarySearch::open_first(places);
  if (!result.library) return refuse("not found, looked in " + result.report());
  return take(*result.library);
}

// Of cublasStatus_t.
const char* name_of(Result result) {
  switch (result) {
    case Result::success:
      return "CUBLAS_STATUS_SUCCESS";
    case Result::not_initialized:
      return "CUBLAS_STATUS_NOT_INITIALIZED";
    case Result::alloc_failed:
      return "CUBLAS_STATUS_ALLOC_FAILED";
    case Result::invalid_value:
      return "CUBLAS_STATUS_INVALID_VALUE";
    case Result::arch_mismatch:
      return "CUBLAS_STATUS_ARCH_MISMATCH";
    case Result::mapping_error:
      return "CUBLAS_STATUS_MAPPING_ERROR";
    case Result::execution_failed:
      return "CUBLAS_STATUS_EXECUTION_FAILED";
    case Result::internal_error:
      return "CUBLAS_STATUS_INTERNAL_ERROR";
    case Result::not_supported:
      return "CUBLAS_STATUS_NOT_SUPPORTED";
    case Result::license_error:
      return "CUBLAS_STATUS_LICENSE_ERROR";
  }
  return "an unknown status";
}

ErrorKind kind_of(Result result) {
  switch (result) {
    case Result::alloc_failed:
      return ErrorKind::out_of_memory;
    case Result::not_initialized:
      return ErrorKind::unavailable;
    case Result::invalid_value:
    case Result::arch_mismatch:
    case Result::not_supported:
      return ErrorKind::unsupported;
    default:
      return ErrorKind::launch;
  }
}

}  // namespace

std::string to_string(Version version) {
  return fmt::format("{}.{}.{}", version.major, version.minor, version.patch);
}

Version version_of(std::size_t number) noexcept {
  const auto digits = static_cast<int>(number);
  return {digits / 10000, digits / 100 % 100, digits % 100};
}

FoundLibrary find_library() noexcept {
  try {
    return search();
  } catch (const std::exception& error) {
    return {nullptr, std::string("unavailable: cuBLASLt: ") + error.what()};
  }
}

// Leaked on purpose: discovery may be called while static objects are being destroyed.
const FoundLibrary& process_library() {
  static const auto* const found = new FoundLibrary(find_library());
  return *found;
}

std::string describe(const Library& library, Result result) {
  const char* const text = library.api.cublasLtGetStatusString(result);
  return fmt::format("{} ({}){}{}", name_of(result), static_cast<int>(result),
                     text == nullptr ? "" : ": ", text == nullptr ? "" : text);
}

void fail(const Library& library, Result result, const char* function) {
  throw Error({.kind = kind_of(result),
               .operand = "cuBLASLt " + to_string(library.version),
               .expected = std::string("success of ") + function,
               .got = describe(library, result),
               .hint = "other kernels may serve the problem: explain(args) says which"});
}

}  // namespace gemmery::cublaslt
