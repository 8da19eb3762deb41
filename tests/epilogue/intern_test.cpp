// SPDX-License-Identifier: Apache-2.0
// Ids and digests: equal for equal epilogues, in any thread and process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <gemmery/epilogue.hpp>
#include <gemmery/error.hpp>

namespace gemmery {
namespace {

using epilogue::Program;
using testing::HasSubstr;

Program read(std::string_view text) { return Program(text); }

EpilogueOperandRule row_vector(std::string name) {
  return {.name = std::move(name),
          .dtype = DType::bfloat16,
          .varies_n = true,
          .adjacent = Adjacent::along_n,
          .alignment = 16};
}

EpilogueOperandRule result(std::string name) {
  return {.name = std::move(name), .is_output = true, .varies_m = true, .varies_n = true};
}

EpilogueOperandRule number(std::string name) {
  return {.name = std::move(name), .is_number = true};
}

TEST(Intern, gives_one_id_to_programs_that_are_equal) {
  const EpilogueId one = intern({read("D = gelu(accum + bias)"), {row_vector("bias")}});
  EXPECT_EQ(intern({read("t = bias + accum * 1; D = gelu(t)"), {row_vector("bias")}}), one);
  EXPECT_NE(one, default_epilogue);
  EXPECT_EQ(text(one), "D = gelu(accum + bias)");
}

TEST(Intern, tells_operands_apart_that_kernels_tell_apart) {
  const Program program = read("D = accum + bias");
  const EpilogueOperandRule rule = row_vector("bias");
  std::vector<EpilogueOperandRule> rules(8, rule);
  rules[1].dtype = DType::float16;
  rules[2].varies_l = true;
  rules[3].varies_m = true;
  rules[4].varies_n = false;
  rules[5].adjacent = Adjacent::none;
  rules[6].alignment = 8;
  rules[7].is_number = true;
  std::vector<EpilogueId> ids;
  for (const EpilogueOperandRule& other : rules) ids.push_back(intern({program, {other}}));
  for (std::size_t a = 0; a < ids.size(); ++a)
    for (std::size_t b = 0; b < a; ++b) {
      EXPECT_NE(ids[a], ids[b]);
      EXPECT_NE(digest(ids[a]), digest(ids[b]));
    }
}

TEST(Intern, of_a_number_only_the_name_counts) {
  EpilogueOperandRule odd = number("s");
  odd.dtype = DType::int8;
  odd.varies_m = true;
  EXPECT_EQ(intern({read("D = accum * s"), {odd}}), intern({read("D = accum * s"), {number("s")}}));
}

TEST(Intern, the_order_of_rules_does_not_count) {
  const Program program = read("D = accum + a * b; c = D * D");
  const EpilogueId id = intern({program, {row_vector("a"), number("b"), result("c")}});
  EXPECT_EQ(intern({program, {result("c"), number("b"), row_vector("a")}}), id);
  ASSERT_EQ(rules_of(id).operands.size(), 3U);
  EXPECT_EQ(rules_of(id).operands[0].name, "a");
  EXPECT_EQ(rules_of(id).operands[2].name, "c");
}

TEST(Intern, leaves_out_what_is_not_stored_and_what_only_that_reads) {
  const EpilogueId id = intern({read("t = accum * w; D = relu(accum)"), {row_vector("w")}});
  EXPECT_EQ(rules_of(id).operands.size(), 0U);
  EXPECT_EQ(text(id), "D = relu(accum)");
}

TEST(Intern, digests_are_known_from_one_version_to_the_next) {
  const EpilogueId id = intern({read("D = gelu(accum + bias); amax = amax(D)"),
                                {row_vector("bias"), {.name = "amax", .is_output = true}}});
  EXPECT_EQ(digest(id), "29b6cd2cbc5a");  // a key of cached code, must not change
  EXPECT_EQ(find_epilogue(digest(id)), id);
  EXPECT_EQ(find_epilogue("0123456789ab"), default_epilogue);
  EXPECT_EQ(digest(default_epilogue), "");
  EXPECT_EQ(find_epilogue(""), default_epilogue);
}

TEST(Intern, the_default_program_has_its_text_and_no_operands) {
  EXPECT_EQ(text(default_epilogue), "D = alpha * accum + beta * C");
  EXPECT_EQ(text(default_epilogue), rules_of(default_epilogue).program.text());
  EXPECT_TRUE(rules_of(default_epilogue).operands.empty());
  EXPECT_EQ(parse_epilogue(" D=accum*alpha+C*beta"), default_epilogue);
  EXPECT_THROW((void)parse_epilogue("D = accum"), Error);
}

TEST(Intern, refuses_rules_that_do_not_fit_the_program) {
  const auto message = [](const EpilogueRules& rules) {
    try {
      (void)intern(rules);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_THAT(message({read("D = accum + bias"), {}}), HasSubstr("bias"));
  EXPECT_THAT(message({read("D = accum"), {result("t")}}), HasSubstr("one of t"));
  EXPECT_THAT(message({read("D = accum + bias"), {result("bias")}}), HasSubstr("bias"));
}

TEST(Intern, threads_agree) {
  constexpr std::size_t programs = 50;
  std::array<std::vector<EpilogueId>, 4> ids;
  std::vector<std::thread> threads;
  for (std::vector<EpilogueId>& mine : ids)
    threads.emplace_back([&mine] {
      for (std::size_t number = 0; number < programs; ++number) {
        const std::string text = "D = accum + " + std::to_string(number + 1000);
        mine.push_back(intern({Program(std::string_view(text)), {}}));
        EXPECT_EQ(gemmery::text(mine.back()), text);
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::vector<EpilogueId>& other : ids) EXPECT_EQ(other, ids[0]);
}

}  // namespace
}  // namespace gemmery
