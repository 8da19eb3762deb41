// SPDX-License-Identifier: Apache-2.0
// The program `gemmery`, for the command of that name that a wheel installs.
#ifdef GEMMERY_HAS_PROGRAM
#include "cli/program.hpp"
#endif

#include "bindings.hpp"
#include "docs.hpp"

namespace gemmery::python {
namespace {

#ifdef GEMMERY_HAS_PROGRAM
int run_program(std::vector<std::string> words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  const WithoutGil released;
  return cli::run_program(static_cast<int>(words.size()), pointers.data());
}
#else
int run_program(const std::vector<std::string>&) {
  refuse("the program gemmery", "a package with it", "one that was built without",
         "install nlohmann-json3-dev and libcli11-dev, and the package again",
         ErrorKind::unavailable);
}
#endif

}  // namespace

void bind_program(nb::module_& module) {
  module.def("run_program", &run_program, nb::arg("words"), doc("run_program"));
}

}  // namespace gemmery::python
