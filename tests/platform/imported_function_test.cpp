// SPDX-License-Identifier: Apache-2.0
// Redirects imports of the test program, whose tables are read-only as in other programs. Runs in
// child processes, since a redirection is permanent.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>

#include "platform/imported_function.hpp"

namespace gemmery::platform {
namespace {

pid_t nobody() { return 4242; }
const void* const in_this_program = reinterpret_cast<const void*>(&nobody);

// The exit status of a child that checks something.
template <class Look>
int status_of_child(Look look) {
  const pid_t child = fork();
  if (child == 0) _exit(look() ? 0 : 1);
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

TEST(ImportedFunction, is_replaced_for_the_library_that_imports_it) {
  EXPECT_EQ(status_of_child([] {
              const pid_t parent = getppid();
              return parent != nobody() &&
                     redirect_import(in_this_program, "getppid",
                                     reinterpret_cast<const void*>(&nobody)) &&
                     getppid() == nobody() && getppid() == nobody();
            }),
            0);
}

TEST(ImportedFunction, stays_what_it_was_for_other_libraries) {
  // The C library's own calls of `getenv` are not redirected.
  EXPECT_EQ(status_of_child([] {
              setenv("GEMMERY_TEST_VARIABLE", "here", 1);
              static const auto nothing = +[](const char*) -> char* { return nullptr; };
              const auto through_the_loader = secure_getenv;
              return redirect_import(in_this_program, "getenv",
                                     reinterpret_cast<const void*>(nothing)) &&
                     std::getenv("GEMMERY_TEST_VARIABLE") == nullptr &&
                     through_the_loader("GEMMERY_TEST_VARIABLE") != nullptr;
            }),
            0);
}

TEST(ImportedFunction, that_a_library_does_not_import_is_not_replaced) {
  const void* const replacement = reinterpret_cast<const void*>(&nobody);
  EXPECT_FALSE(redirect_import(in_this_program, "a_function_of_no_library", replacement));
  EXPECT_FALSE(redirect_import(in_this_program, "", replacement));
  // The C library calls its own functions without a table.
  const void* const in_libm =
      reinterpret_cast<const void*>(static_cast<double (*)(double)>(std::cos));
  EXPECT_FALSE(redirect_import(in_libm, "getppid", replacement));
}

TEST(ImportedFunction, of_no_library_is_not_replaced) {
  int here = 0;
  EXPECT_FALSE(redirect_import(&here, "getppid", reinterpret_cast<const void*>(&nobody)));
  EXPECT_FALSE(redirect_import(nullptr, "getppid", reinterpret_cast<const void*>(&nobody)));
}

}  // namespace
}  // namespace gemmery::platform
