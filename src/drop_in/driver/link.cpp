// SPDX-License-Identifier: Apache-2.0
// The linker of the driver (cuLink…), for one input of PTX: it gives that PTX back.
#include <fstream>
#include <iterator>

#include <fmt/format.h>

#include "drop_in/driver/call.hpp"
#include "drop_in/driver/exports.hpp"

namespace gemmery::driver::cuda {

struct LinkHandle {
  std::string ptx;
};

}  // namespace gemmery::driver::cuda

namespace gemmery::drop_in {
namespace {

// CUjit_option and CUjitInputType
constexpr int info_log = 3, error_log = 5;
constexpr int ptx_input = 1;

// The logs of options, whose sizes follow them as options of their own, are empty.
void clear_logs(unsigned count, const int* options, void* const* values) {
  for (unsigned index = 0; index < count; ++index) {
    if ((options[index] == info_log || options[index] == error_log) && values[index] != nullptr)
      *static_cast<char*>(values[index]) = '\0';
  }
}

void add_input(cuda::LinkHandle& link, int type, std::string text) {
  if (type != ptx_input)
    throw Refusal{cuda::Result::not_supported,
                  fmt::format("an input of type {}; expected PTX (CU_JIT_INPUT_PTX), as machine "
                              "code is not emulated",
                              type)};
  if (!link.ptx.empty())
    throw Refusal{cuda::Result::not_supported,
                  "several inputs; expected one, as modules are not linked with one another"};
  text.resize(text.find_last_not_of('\0') + 1);
  link.ptx = std::move(text);
}

std::string read_file(const char* path) {
  std::ifstream stream(&require(path), std::ios::binary);
  if (!stream.is_open())
    throw Refusal{cuda::Result::file_not_found, std::string(path) + " cannot be read"};
  return {std::istreambuf_iterator<char>(stream), {}};
}

}  // namespace
}  // namespace gemmery::drop_in

namespace gemmery::driver {

using drop_in::answer;
using drop_in::require;

extern "C" {

cuda::Result cuLinkCreate_v2(unsigned count, int* options, void** values, cuda::LinkState* link) {
  return answer("cuLinkCreate", [&] {
    drop_in::clear_logs(count, options, values);
    require(link) = new cuda::LinkHandle;
  });
}

cuda::Result cuLinkAddData_v2(cuda::LinkState link, int type, void* data, std::size_t bytes,
                              const char*, unsigned, int*, void**) {
  return answer("cuLinkAddData", [&] {
    const char* const text = &require(static_cast<const char*>(data));
    drop_in::add_input(require(link), type, {text, bytes});
  });
}

cuda::Result cuLinkAddFile_v2(cuda::LinkState link, int type, const char* path, unsigned, int*,
                              void**) {
  return answer("cuLinkAddFile",
                [&] { drop_in::add_input(require(link), type, drop_in::read_file(path)); });
}

// The image lives as long as `link`.
cuda::Result cuLinkComplete(cuda::LinkState link, void** image, std::size_t* bytes) {
  return answer("cuLinkComplete", [&] {
    std::string& ptx = require(link).ptx;
    if (ptx.empty()) throw drop_in::Refusal{cuda::Result::invalid_value, "nothing was added"};
    require(image) = ptx.data();
    if (bytes != nullptr) *bytes = ptx.size() + 1;
  });
}

cuda::Result cuLinkDestroy(cuda::LinkState link) {
  return answer("cuLinkDestroy", [&] { delete &require(link); });
}

}  // extern "C"
}  // namespace gemmery::driver
