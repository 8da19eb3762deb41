// SPDX-License-Identifier: Apache-2.0
// Problem lists in files: valid ones, and error messages for others.
#include "cli/problem_table.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include <gemmery/error.hpp>

namespace gemmery::cli {
namespace {

class ProblemTable : public ::testing::Test {
 protected:
  std::string write(const std::string& text) {
    std::ofstream(path_) << text;
    return path_.string();
  }
  void TearDown() override { std::filesystem::remove(path_); }

 private:
  std::filesystem::path path_ =
      std::filesystem::path(::testing::TempDir()) / "gemmery_problem_table_test.csv";
};

TEST_F(ProblemTable, gives_a_problem_line_for_every_row_and_type) {
  const std::string path = write(
      "id,m,n,k,a_layout,b_layout,source\nP01,256,128,64,r,c,square\r\n\nP02,1,2,3,c,r,thin\n");
  const std::vector<NamedProblem> problems =
      read_problem_table(path, std::vector<std::string>{"f32", "bf16"});
  ASSERT_EQ(problems.size(), 4U);
  EXPECT_EQ(problems[0].id, "P01");
  EXPECT_EQ(problems[0].line, "gemm 256x128x64 a=f32 b=f32:c");
  EXPECT_EQ(problems[1].line, "gemm 256x128x64 a=bf16 b=bf16:c");
  EXPECT_EQ(problems[3].line, "gemm 1x2x3 a=bf16:c b=bf16");
}

TEST_F(ProblemTable, takes_columns_in_any_order_and_a_batch) {
  const std::string path = write("l,k,n,m,b_layout,a_layout,id\n5,3,2,1,r,r,x\n");
  EXPECT_EQ(read_problem_table(path, {}).at(0).line, "gemm 1x2x3x5 a=f32 b=f32");
}

TEST_F(ProblemTable, refuses_what_it_cannot_read_by_line_and_column) {
  const std::string header = "id,m,n,k,a_layout,b_layout\n";
  // The file, and text that the error must contain.
  const std::vector<std::pair<std::string, std::string>> rows{
      {"", "header line"},
      {header, "at least one row"},
      {header + "P,1,2,3,r\n", "line 2: expected 6 fields"},
      {header + "P,1,2,3,r,r,r\n", "line 2: expected 6 fields"},
      {header + "P,1,2,x,r,r\n", "line 2, column k: expected a whole number, got 'x'"},
      {header + "P,1,-2,3,r,r\n", "column n"},
      {header + "P,,2,3,r,r\n", "column m"},
      {header + "P,1,2,3,row,r\n", "column a_layout: expected r or c, got 'row'"},
      {header + "P,1,2,3,r,\n", "column b_layout: expected r or c"},
      {"id,m,n,k,a_layout\nP,1,2,3,r\n", "a column b_layout"},
      {"m,n,k,a_layout,b_layout\n1,2,3,r,r\n", "a column id"},
  };
  for (const auto& [text, words] : rows) {
    try {
      read_problem_table(write(text), {});
      ADD_FAILURE() << "accepted: " << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::invalid_argument);
      EXPECT_NE(std::string(error.what()).find(words), std::string::npos)
          << error.what() << "\nexpected: " << words;
    }
  }
}

TEST_F(ProblemTable, refuses_a_file_that_is_not_there_and_an_unknown_type) {
  EXPECT_THROW(read_problem_table("/nowhere/problems.csv", {}), Error);
  const std::string path = write("id,m,n,k,a_layout,b_layout\nP,1,2,3,r,r\n");
  EXPECT_THROW(read_problem_table(path, std::vector<std::string>{"f33"}), Error);
}

}  // namespace
}  // namespace gemmery::cli
