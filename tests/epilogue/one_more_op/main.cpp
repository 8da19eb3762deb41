// SPDX-License-Identifier: Apache-2.0
// Uses the operation of an added row in all features for programs.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include <gemmery/epilogue.hpp>

#include "epilogue/emit_cuda.hpp"
#include "epilogue/evaluate.hpp"

namespace {

void expect(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "an operation of one more row: %s\n", what);
  std::exit(1);
}

}  // namespace

int main() {
  using namespace gemmery;
  using namespace gemmery::epilogue;
  const Program program(std::string_view("D = cube(accum + bias) + cube(2)"));
  expect(program.text() == "D = cube(accum + bias) + 8", "text");
  expect(program == Program{{"D", cube(accum() + operand("bias")) + 8}}, "C++");
  Machine<double> machine(program.graph(), DType::float64);
  *machine.accumulator() = 2;
  *machine.input(0) = 1;
  machine.run(1);
  expect(*machine.output(0) == 35, "the host's evaluation");
  const EpilogueId id = intern({program, {{.name = "bias", .varies_n = true}}});
  expect(emit_struct(id, false).find("op::cube(v0)") != std::string::npos, "emission");
  return 0;
}
