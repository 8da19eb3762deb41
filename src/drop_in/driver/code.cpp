// SPDX-License-Identifier: Apache-2.0
// Modules and libraries: the same here. Kernels and their attributes, variables.
#include "drop_in/driver/code.hpp"
#include "drop_in/driver/exports.hpp"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>

#include <fmt/format.h>
#include <gemmery/error.hpp>

#include "drop_in/driver/limits.hpp"
#include "drop_in/fatbin/fatbin.hpp"
#include "emulator/table.hpp"

namespace gemmery::drop_in {
namespace {

// --- loading ------------------------------------------------------------------------------------

// "sm_90a" of "…\n.target sm_90a, debug\n…".
std::string_view target_of(std::string_view ptx) noexcept {
  constexpr std::string_view word = ".target";
  const std::size_t at = ptx.find(word);
  if (at == std::string_view::npos) return {};
  const std::size_t begin = ptx.find_first_not_of(" \t", at + word.size());
  const std::size_t end = ptx.find_first_of(", \t\r\n", begin);
  return begin == std::string_view::npos ? std::string_view() : ptx.substr(begin, end - begin);
}

int architecture_of(std::string_view target) noexcept {
  int number = 0;
  for (const char c : target) {
    if (c >= '0' && c <= '9') number = 10 * number + (c - '0');
  }
  return number;
}

// The text for the latest architecture among those that most devices run, the current one among
// them; nullptr if there is none.
const std::string* choose_ptx(const FatbinContent& content) {
  const DeviceInfo& current = emulator::current_device().info;
  const std::string* best = nullptr;
  std::pair<int, int> best_rank;
  for (const std::string& ptx : content.ptx) {
    const std::string_view target = target_of(ptx);
    if (!emulator::ptx_runs_on(target, current)) continue;
    std::pair<int, int> rank{0, architecture_of(target)};
    for (int device = 0; device < emulator::device_count(); ++device)
      rank.first += emulator::ptx_runs_on(target, emulator::device_at(device).info) ? 1 : 0;
    if (best != nullptr && rank <= best_rank) continue;
    best = &ptx;
    best_rank = rank;
  }
  return best;
}

[[noreturn]] void refuse_content(const FatbinContent& content) {
  std::string found;
  for (const std::string& ptx : content.ptx)
    found += fmt::format("{}PTX for {}", found.empty() ? "" : ", ", target_of(ptx));
  for (const int architecture : content.machine_code)
    found += fmt::format("{}machine code for sm_{}", found.empty() ? "" : ", ", architecture);
  const std::string target = to_string(emulator::current_device().info.target);
  throw Refusal{cuda::Result::no_binary_for_gpu,
                fmt::format("the program has {}; expected PTX that {} runs: compile with "
                            "-gencode arch=compute_{},code=compute_{}",
                            found.empty() ? "no device code" : found, target,
                            architecture_of(target), architecture_of(target))};
}

cuda::Library load_fatbin(const void* code) {
  const FatbinContent content = [code] {
    try {
      return read_fatbin(code);
    } catch (const Error& error) {
      throw Refusal{cuda::Result::invalid_image, error.what()};
    }
  }();
  const std::string* const ptx = choose_ptx(content);
  if (ptx == nullptr) refuse_content(content);
  return emulator::load_library(*ptx);
}

cuda::Library load_file(const char* file) {
  std::ifstream stream(&require(file), std::ios::binary);
  const std::string code{std::istreambuf_iterator<char>(stream), {}};
  if (!stream.is_open() || code.empty())
    throw Refusal{cuda::Result::file_not_found, std::string(file) + " cannot be read"};
  return load_code(code.c_str());
}

// --- variables ----------------------------------------------------------------------------------

void find_variable(cuda::Library library, const char* name, bool is_managed,
                   cuda::DevicePointer* pointer, std::size_t* bytes) {
  emulator::Module& module = require(library).module;
  const auto& variables = module.program().variables;
  const auto found =
      std::ranges::find(variables, std::string_view(&require(name)), &emulator::Variable::name);
  if (found == variables.end() || (is_managed && !found->is_managed))
    throw Refusal{cuda::Result::not_found, fmt::format("the module has no variable \"{}\"", name)};
  const emulator::ModuleVariables placed = module.variables(emulator::current_device());
  if (pointer != nullptr) *pointer = placed.addresses.at(found->name);
  if (bytes != nullptr) *bytes = found->bytes;
}

// --- kernels ------------------------------------------------------------------------------------

// CUfunction_attribute
enum KernelAttribute : int {
  attribute_max_threads = 0,
  attribute_constant_bytes = 2,
  attribute_ptx_version = 5,
  attribute_binary_version = 6,
  attribute_cache_mode = 7,
  attribute_carveout = 9,
  attribute_cluster_must_be_set = 10,
  attribute_cluster_x = 11,
  attribute_cluster_z = 13,
  attribute_scheduling_policy = 15,
};

std::vector<std::string> entries_of(const cuda::LibraryHandle& library) {
  std::vector<std::string> names;
  for (const emulator::Function& function : library.module.program().functions) {
    if (function.is_entry) names.push_back(function.name);
  }
  return names;
}

void read_parameter(const emulator::KernelImage& image, std::size_t index, std::size_t* offset,
                    std::size_t* bytes) {
  if (index >= image.parameter_offset.size()) throw Refusal{cuda::Result::invalid_value, {}};
  if (offset != nullptr) *offset = image.parameter_offset[index];
  if (bytes != nullptr) *bytes = image.parameter_size[index];
}

cuda::Function handle_of(cuda::Kernel kernel) noexcept {
  return reinterpret_cast<cuda::Function>(kernel);
}

}  // namespace

cuda::Library load_code(const void* code) {
  emulator::current_device();  // a context is needed
  if (code != nullptr && is_fatbin(code)) return load_fatbin(code);
  const std::string_view text = static_cast<const char*>(&require(static_cast<const char*>(code)));
  if (text.starts_with("\177ELF"))
    throw Refusal{cuda::Result::no_binary_for_gpu,
                  "machine code (cubin) was given; expected PTX or a fat binary with PTX"};
  return emulator::load_library(text);
}

cuda::FunctionHandle& function_of(cuda::Function handle) {
  if (handle == nullptr) throw Refusal{cuda::Result::invalid_handle, {}};
  bool is_kernel = false;
  {
    const std::lock_guard lock(emulator::handles().mutex);
    is_kernel = emulator::handles().kernels.contains(handle);
  }
  if (!is_kernel) return *handle;
  return emulator::function_on(*reinterpret_cast<cuda::Kernel>(handle), emulator::current_device());
}

int kernel_attribute(const cuda::FunctionHandle& function, int attribute) {
  const auto& cluster = function.image->entry->required_cluster;
  switch (attribute) {
    case attribute_max_threads:
      return most_threads_of(*function.image);
    case attribute_ptx_version:
    case attribute_binary_version:
      return function.device->info.target.architecture;
    case attribute_carveout:
      return -1;
    case attribute_cluster_must_be_set:
      return cluster[0] != 0 ? 1 : 0;
    case attribute_constant_bytes:
    case attribute_cache_mode:
    case attribute_scheduling_policy:
      return 0;
    default:
      break;
  }
  if (attribute >= attribute_cluster_x && attribute <= attribute_cluster_z)
    return static_cast<int>(cluster[static_cast<std::size_t>(attribute - attribute_cluster_x)]);
  return emulator::attribute_of(function, static_cast<cuda::FunctionAttribute>(attribute));
}

void set_kernel_attribute(cuda::FunctionHandle& function, int attribute, int value) {
  // Hints for caches and schedulers, which the emulator has not.
  if (attribute == attribute_carveout || attribute == attribute_scheduling_policy) return;
  emulator::set_attribute(function, static_cast<cuda::FunctionAttribute>(attribute), value);
}

}  // namespace gemmery::drop_in

namespace gemmery::driver {

using drop_in::answer;
using drop_in::function_of;
using drop_in::load_code;
using drop_in::require;

extern "C" {

// --- modules and libraries ----------------------------------------------------------------------

cuda::Result cuModuleLoad(cuda::Module* module, const char* file) {
  return answer("cuModuleLoad", [&] { require(module) = drop_in::load_file(file); });
}

cuda::Result cuModuleLoadData(cuda::Module* module, const void* code) {
  return answer("cuModuleLoadData", [&] { require(module) = load_code(code); });
}

cuda::Result cuModuleLoadDataEx(cuda::Module* module, const void* code, unsigned, int*, void**) {
  return answer("cuModuleLoadDataEx", [&] { require(module) = load_code(code); });
}

cuda::Result cuModuleLoadFatBinary(cuda::Module* module, const void* code) {
  return answer("cuModuleLoadFatBinary", [&] { require(module) = load_code(code); });
}

cuda::Result cuModuleUnload(cuda::Module module) {
  return answer("cuModuleUnload", [&] { emulator::unload_library(module); });
}

cuda::Result cuModuleGetFunction(cuda::Function* function, cuda::Module module, const char* name) {
  return answer("cuModuleGetFunction", [&] {
    require(function) = &emulator::function_on(
        *emulator::find_kernel(require(module), &require(name)), emulator::current_device());
  });
}

cuda::Result cuModuleGetGlobal_v2(cuda::DevicePointer* pointer, std::size_t* bytes,
                                  cuda::Module module, const char* name) {
  return answer("cuModuleGetGlobal",
                [&] { drop_in::find_variable(module, name, false, pointer, bytes); });
}

cuda::Result cuModuleGetLoadingMode(int* mode) {
  return answer("cuModuleGetLoadingMode", [&] { require(mode) = 2; });  // lazy
}

cuda::Result cuLibraryLoadData(cuda::Library* library, const void* code, int*, void**, unsigned,
                               int*, void**, unsigned) {
  return answer("cuLibraryLoadData", [&] { require(library) = load_code(code); });
}

cuda::Result cuLibraryLoadFromFile(cuda::Library* library, const char* file, int*, void**, unsigned,
                                   int*, void**, unsigned) {
  return answer("cuLibraryLoadFromFile", [&] { require(library) = drop_in::load_file(file); });
}

cuda::Result cuLibraryGetModule(cuda::Module* module, cuda::Library library) {
  return answer("cuLibraryGetModule", [&] { require(module) = &require(library); });
}

cuda::Result cuLibraryGetKernelCount(unsigned* count, cuda::Library library) {
  return answer("cuLibraryGetKernelCount", [&] {
    require(count) = static_cast<unsigned>(drop_in::entries_of(require(library)).size());
  });
}

cuda::Result cuLibraryEnumerateKernels(cuda::Kernel* kernels, unsigned count,
                                       cuda::Library library) {
  return answer("cuLibraryEnumerateKernels", [&] {
    const std::vector<std::string> names = drop_in::entries_of(require(library));
    for (std::size_t index = 0; index < std::min<std::size_t>(count, names.size()); ++index)
      kernels[index] = emulator::find_kernel(*library, names[index]);
  });
}

cuda::Result cuLibraryGetGlobal(cuda::DevicePointer* pointer, std::size_t* bytes,
                                cuda::Library library, const char* name) {
  return answer("cuLibraryGetGlobal",
                [&] { drop_in::find_variable(library, name, false, pointer, bytes); });
}

cuda::Result cuLibraryGetManaged(cuda::DevicePointer* pointer, std::size_t* bytes,
                                 cuda::Library library, const char* name) {
  return answer("cuLibraryGetManaged",
                [&] { drop_in::find_variable(library, name, true, pointer, bytes); });
}

// --- kernels ------------------------------------------------------------------------------------

cuda::Result cuKernelGetName(const char** name, cuda::Kernel kernel) {
  return answer("cuKernelGetName", [&] { require(name) = require(kernel).entry.c_str(); });
}

cuda::Result cuKernelGetLibrary(cuda::Library* library, cuda::Kernel kernel) {
  return answer("cuKernelGetLibrary", [&] { require(library) = require(kernel).library; });
}

cuda::Result cuKernelGetParamInfo(cuda::Kernel kernel, std::size_t index, std::size_t* offset,
                                  std::size_t* bytes) {
  return cuFuncGetParamInfo(drop_in::handle_of(kernel), index, offset, bytes);
}

cuda::Result cuKernelSetCacheConfig(cuda::Kernel, int, cuda::DeviceOrdinal) {
  return cuda::Result::success;
}

cuda::Result cuKernelGetAttribute(int* value, cuda::FunctionAttribute attribute,
                                  cuda::Kernel kernel, cuda::DeviceOrdinal device) {
  return answer("cuKernelGetAttribute", [&] {
    require(value) = drop_in::kernel_attribute(
        emulator::function_on(require(kernel), emulator::device_of(device)),
        static_cast<int>(attribute));
  });
}

cuda::Result cuKernelSetAttribute(cuda::FunctionAttribute attribute, int value, cuda::Kernel kernel,
                                  cuda::DeviceOrdinal device) {
  return answer("cuKernelSetAttribute", [&] {
    drop_in::set_kernel_attribute(
        emulator::function_on(require(kernel), emulator::device_of(device)),
        static_cast<int>(attribute), value);
  });
}

cuda::Result cuFuncGetName(const char** name, cuda::Function function) {
  return answer("cuFuncGetName",
                [&] { require(name) = function_of(function).kernel->entry.c_str(); });
}

cuda::Result cuFuncGetModule(cuda::Module* module, cuda::Function function) {
  return answer("cuFuncGetModule",
                [&] { require(module) = function_of(function).kernel->library; });
}

cuda::Result cuFuncGetParamInfo(cuda::Function function, std::size_t index, std::size_t* offset,
                                std::size_t* bytes) {
  return answer("cuFuncGetParamInfo", [&] {
    drop_in::read_parameter(*function_of(function).image, index, offset, bytes);
  });
}

cuda::Result cuFuncGetAttribute(int* value, cuda::FunctionAttribute attribute,
                                cuda::Function function) {
  return answer("cuFuncGetAttribute", [&] {
    require(value) = drop_in::kernel_attribute(function_of(function), static_cast<int>(attribute));
  });
}

cuda::Result cuFuncSetAttribute(cuda::Function function, cuda::FunctionAttribute attribute,
                                int value) {
  return answer("cuFuncSetAttribute", [&] {
    drop_in::set_kernel_attribute(function_of(function), static_cast<int>(attribute), value);
  });
}

cuda::Result cuFuncSetCacheConfig(cuda::Function, int) { return cuda::Result::success; }

cuda::Result cuFuncIsLoaded(int* state, cuda::Function function) {
  return answer("cuFuncIsLoaded", [&] {
    function_of(function);
    require(state) = 1;
  });
}

cuda::Result cuFuncLoad(cuda::Function function) {
  return answer("cuFuncLoad", [&] { function_of(function); });
}

}  // extern "C"
}  // namespace gemmery::driver
