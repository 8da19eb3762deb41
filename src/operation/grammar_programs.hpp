// SPDX-License-Identifier: Apache-2.0
// Programs of A and B in the line of a problem: program_a="A = relu(a) * gate" gate=f16[m,k]
#pragma once

#include <gemmery/epilogue.hpp>
#include <gemmery/problem.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "operation/grammar_words.hpp"

namespace gemmery::grammar {

// A name of a program and the word that binds it.
struct BoundName {
  std::string name;
  Word word;
  std::string value;
};

// The program of one operand as text.
struct ProgramWords {
  std::optional<Word> word;
  std::optional<epilogue::Program> program;
  std::vector<BoundName> bindings;
};
struct ProgramsWords {
  ProgramWords a, b;
};

bool is_program_field(std::string_view key) noexcept;

// Reads the fields program_a= and program_b=, before other fields: they decide what names mean.
ProgramsWords read_operand_programs(const std::vector<Word>& words);

// Takes a word that binds a name of one of the programs: "a.gate=f16[m,k]"; "gate=…", if the name
// is no field of the line. `epilogue` is the line's program, which may have the same name: then the
// word is refused.
bool take_operand_binding(const Word& word, const epilogue::Program* epilogue,
                          ProgramsWords& programs);

// Binds the programs' names. `kind`: the line's first word, for errors about missing fields.
void apply_programs(const Word& kind, const ProgramsWords& words, ProblemLine& line);

std::string programs_text(const ProblemLine& line);

// True if the program of A or B has an operand of this name.
bool is_program_operand(const GemmProblem& problem, std::string_view name);

// A binding to a number: "0.5", or "f32:scalar" for one that is given later.
std::optional<double> read_scalar(const Word& word, std::string_view value);
double read_number(const Word& word, std::string_view text);
// The text of a number that reads back.
std::string number_text(const GemmProblem& problem, double value);

}  // namespace gemmery::grammar
