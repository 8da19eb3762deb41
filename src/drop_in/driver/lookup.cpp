// SPDX-License-Identifier: Apache-2.0
// Functions by name (cuGetProcAddress), as programs find them that open the library at run time.
#include <array>
#include <map>
#include <string>
#include <string_view>

#include "drop_in/driver/call.hpp"
#include "drop_in/driver/exports.hpp"

namespace gemmery::drop_in {
namespace {

using Function = void*;
using FunctionTable = std::map<std::string, Function, std::less<>>;

const FunctionTable& functions() {
  static const auto* const table = new FunctionTable{
#define GEMMERY_ROW(name, unused) {#name, reinterpret_cast<Function>(&driver::name)},
      GEMMERY_EXPORTS(GEMMERY_ROW) GEMMERY_DROP_IN_DRIVER_CALLS(GEMMERY_ROW)
          GEMMERY_OVERRIDES(GEMMERY_ROW)
#undef GEMMERY_ROW
  };
  return *table;
}

Function find(std::string_view name) {
  const auto found = functions().find(name);
  return found == functions().end() ? nullptr : found->second;
}

// Names that stand for different functions from some version of the API on.
struct VersionedName {
  std::string_view name;
  int since;
  std::string_view then;  // empty: a form that is not emulated
  std::string_view before;
};
constexpr std::array versioned_names{
    VersionedName{"cuStreamGetCaptureInfo", 12030, "cuStreamGetCaptureInfo_v3",
                  "cuStreamGetCaptureInfo_v2"},
    VersionedName{"cuMemPrefetchAsync", 12020, "cuMemPrefetchAsync_v2", "cuMemPrefetchAsync"},
    VersionedName{"cuMemAdvise", 12020, "cuMemAdvise_v2", "cuMemAdvise"},
    VersionedName{"cuGetProcAddress", 12000, "cuGetProcAddress_v2", "cuGetProcAddress"},
    VersionedName{"cuGraphInstantiate", 11040, "cuGraphInstantiateWithFlags", ""},
    VersionedName{"cuCtxCreate", 12050, "cuCtxCreate_v4", "cuCtxCreate_v2"},
    VersionedName{"cuGraphGetEdges", 12030, "", "cuGraphGetEdges"},
    VersionedName{"cuGraphNodeGetDependencies", 12030, "", "cuGraphNodeGetDependencies"},
    VersionedName{"cuGraphNodeGetDependentNodes", 12030, "", "cuGraphNodeGetDependentNodes"},
    VersionedName{"cuGraphAddDependencies", 12030, "", "cuGraphAddDependencies"},
    VersionedName{"cuGraphRemoveDependencies", 12030, "", "cuGraphRemoveDependencies"},
};

Function find_version(std::string_view name, int version) {
  for (const VersionedName& row : versioned_names) {
    if (row.name == name) return find(version >= row.since ? row.then : row.before);
  }
  const std::string base(name);
  for (const char* const suffix : {"_v4", "_v3", "_v2", ""}) {
    if (Function const function = find(base + suffix)) return function;
  }
  return nullptr;
}

}  // namespace
}  // namespace gemmery::drop_in

namespace gemmery::driver {

using drop_in::answer;
using drop_in::require;
using emulator::Refusal;

extern "C" {

cuda::Result cuGetProcAddress_v2(const char* name, void** function, int version, std::uint64_t,
                                 int* status) {
  return answer("cuGetProcAddress", [&] {
    require(function) = drop_in::find_version(&require(name), version);
    if (status != nullptr) *status = *function == nullptr ? cuda::not_found_as_symbol : 0;
  });
}

cuda::Result cuGetProcAddress(const char* name, void** function, int version, std::uint64_t flags) {
  int status = 0;
  const cuda::Result result = cuGetProcAddress_v2(name, function, version, flags, &status);
  return status == 0 ? result : cuda::Result::not_found;
}

cuda::Result cuGetExportTable(const void** table, const cuda::Uuid*) {
  return answer("cuGetExportTable", [&] {
    require(table) = nullptr;
    throw Refusal{cuda::Result::not_supported,
                  "a CUDA runtime of NVIDIA's asks for tables of the driver that no manual "
                  "describes; link the program with nvcc's -cudart shared, so that ours is used"};
  });
}

cuda::Result cuProfilerStart() { return cuda::Result::success; }
cuda::Result cuProfilerStop() { return cuda::Result::success; }

}  // extern "C"
}  // namespace gemmery::driver
