// SPDX-License-Identifier: Apache-2.0
// Branches, calls, returns and exits in kernels.
#include <gtest/gtest.h>

#include <random>

#include <gemmery/error.hpp>

#include "tests/emulator/instruction/ptx_runner.hpp"
#include "tests/support/random_seed.hpp"

namespace gemmery::emulator {
namespace {

// %rd1: out + 4 * thread, %r1: thread; %rd2: in + 4 * thread, %r2 its value
std::string kernel_of(const std::string& body, const std::string& functions = {}) {
  return ".version 9.0\n.target sm_90a\n.address_size 64\n" + functions +
         ".visible .entry run(.param .u64 out, .param .u64 in) {\n"
         ".reg .pred %p<9>; .reg .b32 %r<40>; .reg .b64 %rd<9>;\n"
         "mov.u32 %r1, %tid.x; ld.param.u64 %rd1, [out]; ld.param.u64 %rd2, [in];\n"
         "mul.wide.u32 %rd3, %r1, 4; add.s64 %rd1, %rd1, %rd3; add.s64 %rd2, %rd2, %rd3;\n"
         "ld.global.u32 %r2, [%rd2];\n" +
         body + "\n}\n";
}

constexpr std::uint32_t threads = 64;

std::vector<std::uint32_t> random_values(std::uint32_t limit) {
  std::mt19937_64 random(tests::random_seed());
  std::vector<std::uint32_t> values(threads);
  for (std::uint32_t& value : values) value = static_cast<std::uint32_t>(random() % limit);
  return values;
}

// The results that a kernel stores.
std::vector<std::uint32_t> results_of(const std::string& text,
                                      const std::vector<std::uint32_t>& values) {
  PtxRunner runner(text);
  runner.request.block = {threads, 1, 1};
  const std::uint64_t in = runner.put(values);
  const std::uint64_t out = runner.reserve(threads * 4);
  const auto fault = runner.launch({out, in});
  EXPECT_FALSE(fault) << fault->report();
  return runner.get<std::uint32_t>(out, threads);
}

Fault fault_of(const std::string& text, const std::vector<std::uint32_t>& values) {
  PtxRunner runner(text);
  runner.request.block = {threads, 1, 1};
  const std::uint64_t in = runner.put(values);
  const auto fault = runner.launch({runner.reserve(threads * 4), in});
  return fault ? *fault : Fault(FaultKind::timeout, "no fault");
}

template <class Expected>
void expect_results(const std::string& text, std::uint32_t limit, Expected expected) {
  const std::vector<std::uint32_t> values = random_values(limit);
  const std::vector<std::uint32_t> results = results_of(text, values);
  for (std::uint32_t thread = 0; thread < threads; ++thread)
    EXPECT_EQ(results[thread], expected(values[thread])) << "thread " << thread;
}

TEST(Control, lanes_part_and_meet_at_a_branch) {
  expect_results(kernel_of("setp.lt.u32 %p1, %r2, 50;\n@%p1 bra SMALL;\nadd.u32 %r2, %r2, 1000;\n"
                           "bra.uni DONE;\nSMALL: mul.lo.u32 %r2, %r2, 3;\nDONE: st.global.u32 "
                           "[%rd1], %r2; ret;"),
                 100, [](std::uint32_t value) { return value < 50 ? value * 3 : value + 1000; });
}

TEST(Control, loops_end_lane_by_lane) {
  expect_results(
      kernel_of("mov.u32 %r3, 0;\nLOOP: setp.eq.u32 %p1, %r2, 0;\n@%p1 bra DONE;\nadd.u32 "
                "%r3, %r3, %r2;\nsub.u32 %r2, %r2, 1;\nbra LOOP;\nDONE: st.global.u32 "
                "[%rd1], %r3;"),
      20, [](std::uint32_t value) { return value * (value + 1) / 2; });
}

TEST(Control, an_entry_ends_where_its_text_ends) {
  expect_results(kernel_of("st.global.u32 [%rd1], %r2; setp.lt.u32 %p1, %r2, 7;\n@%p1 bra END;\n"
                           "st.global.u32 [%rd1], 1;\nEND:"),
                 14, [](std::uint32_t value) { return value < 7 ? value : 1; });
}

TEST(Control, a_guarded_exit_takes_only_its_lanes) {
  expect_results(kernel_of("st.global.u32 [%rd1], 5; setp.lt.u32 %p1, %r2, 7;\n@!%p1 exit;\n"
                           "st.global.u32 [%rd1], 6;"),
                 14, [](std::uint32_t value) { return value < 7 ? 6u : 5u; });
}

constexpr const char* table_of_three =
    "T: .branchtargets A, B, C;\nbrx.idx %r2, T;\nA: mov.u32 %r3, 10; bra DONE;\nB: mov.u32 %r3, "
    "20; "
    "bra DONE;\nC: mov.u32 %r3, 30;\nDONE: st.global.u32 [%rd1], %r3;";

TEST(Control, an_indexed_branch_sends_each_lane_to_its_target) {
  expect_results(kernel_of(table_of_three), 3,
                 [](std::uint32_t value) { return (value + 1) * 10; });
}

TEST(Control, an_index_beyond_the_table_is_a_fault) {
  std::vector<std::uint32_t> values(threads, 1);
  values[37] = 3;
  const Fault fault = fault_of(kernel_of(table_of_three), values);
  EXPECT_EQ(fault.kind, FaultKind::illegal_instruction);
  EXPECT_EQ(fault.place.warp, 1);
  EXPECT_EQ(fault.place.lane, 5);
  EXPECT_EQ(fault.place.ptx_line, 10u);
}

TEST(Control, a_branch_on_an_undefined_predicate_is_a_fault) {
  const Fault fault =
      fault_of(kernel_of("@%p3 bra L;\nst.global.u32 [%rd1], 1;\nL:"), random_values(3));
  EXPECT_EQ(fault.kind, FaultKind::unwritten_register);
  EXPECT_NE(fault.message.find("%p3"), std::string::npos) << fault.message;
  EXPECT_EQ(fault.place.ptx_line, 9u);
}

TEST(Control, an_undefined_index_is_a_fault) {
  EXPECT_EQ(fault_of(kernel_of("T: .branchtargets A;\nbrx.idx %r9, T;\nA:"), random_values(3)).kind,
            FaultKind::unwritten_register);
}

TEST(Control, trap_is_a_fault_with_its_line) {
  std::vector<std::uint32_t> values(threads, 0);
  values[33] = 1;
  const Fault fault = fault_of(kernel_of("setp.ne.u32 %p1, %r2, 0;\n\n@%p1 trap;"), values);
  EXPECT_EQ(fault.kind, FaultKind::trap);
  EXPECT_EQ(fault.place.ptx_line, 11u);
  EXPECT_EQ(fault.place.lane, 1);
}

// --- calls --------------------------------------------------------------------------------------

// f(x) = x < 10 ? x + 1 : g(x) * 2, g(x) = x - 5
constexpr const char* two_functions =
    ".func (.param .b32 r) g(.param .b32 x) { .reg .b32 %r<3>; ld.param.u32 %r1, [x]; sub.u32 %r2, "
    "%r1, 5; st.param.b32 [r], %r2; ret; }\n"
    ".func (.param .b32 r) f(.param .b32 x) { .reg .b32 %r<4>; .reg .pred %p<2>; ld.param.u32 %r1, "
    "[x+0]; setp.lt.u32 %p1, %r1, 10; @%p1 bra SMALL;\n"
    "{ .param .b32 a; st.param.b32 [a], %r1; .param .b32 b; call.uni (b), g, (a); ld.param.b32 "
    "%r2, "
    "[b+0]; }\nshl.b32 %r3, %r2, 1; st.param.b32 [r], %r3; ret;\n"
    "SMALL: add.u32 %r3, %r1, 1; st.param.b32 [r+0], %r3; }\n";  // falls off its end: returns

TEST(Control, calls_return_to_where_each_lane_came_from) {
  // Diverged lanes call f from two places.
  const std::string call =
      "{ .param .b32 a; .param .b32 b; st.param.b32 [a], %r2; call (b), f, (a); ld.param.b32 %r3, "
      "[b]; }\n";
  expect_results(kernel_of("and.b32 %r4, %r2, 1; setp.eq.u32 %p1, %r4, 0;\n@%p1 bra EVEN;\n" +
                               call + "add.u32 %r3, %r3, 100;\nbra DONE;\nEVEN:\n" + call +
                               "DONE: st.global.u32 [%rd1], %r3;",
                           two_functions),
                 20, [](std::uint32_t value) {
                   const std::uint32_t f = value < 10 ? value + 1 : (value - 5) * 2;
                   return f + (value % 2 != 0 ? 100 : 0);
                 });
}

TEST(Control, unwritten_results_stay_unwritten) {
  const Fault fault = fault_of(
      kernel_of(
          "{ .param .b32 b; call (b), nothing; ld.param.b32 %r3, [b]; }\nsetp.eq.u32 %p1, %r3, "
          "0;\n@%p1 bra L;\nL:",
          ".func (.param .b32 r) nothing() { ret; }\n"),
      random_values(3));
  EXPECT_EQ(fault.kind, FaultKind::unwritten_register);
}

TEST(Control, arrays_travel_as_parameters) {
  expect_results(
      kernel_of(
          "{ .param .align 16 .b8 a[32]; .param .b32 b; st.param.v4.b32 [a+16], {%r2, %r1, %r2, "
          "%r2}; call (b), third, (a); ld.param.b32 %r3, [b]; }\nst.global.u32 [%rd1], %r3;",
          ".func (.param .b32 r) third(.param .align 16 .b8 x[32]) { .reg .b32 %r<3>; "
          "ld.param.u32 %r1, [x+24]; st.param.b32 [r], %r1; ret; }\n"),
      1000, [](std::uint32_t value) { return value; });
}

void expect_refusal(const std::string& text, const std::string& words) {
  try {
    PtxRunner runner(text);
    ADD_FAILURE() << text;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::unsupported);
    EXPECT_EQ(error.operand().rfind("PTX line ", 0), 0u) << error.what();
    EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
  }
}

TEST(Control, calls_through_registers_need_functions_that_fit) {
  expect_refusal(kernel_of("P: .callprototype _ ();\ncall %rd1, P;"), "through a register");
  expect_refusal(kernel_of("mov.u64 %rd4, f;\nP: .callprototype _ ();\ncall %rd4, P;",
                           ".func f(.param .b32 x) { ret; }\n"),
                 "through a register");
}

TEST(Control, functions_without_a_body_are_refused) {
  expect_refusal(kernel_of("call elsewhere;", ".extern .func elsewhere();\n"),
                 "elsewhere has no body");
}

// --- recursion ----------------------------------------------------------------------------------

// f(n, p): a = *p + n lies in local memory, and its address goes down. The sum of all a.
constexpr const char* recursive_function =
    ".func (.param .b32 r) f(.param .b32 n, .param .b64 p) { .local .align 8 .b8 depot[8]; .reg "
    ".b32 %r<9>; .reg .b64 %rd<6>; .reg .pred %p<2>;\n"
    "mov.u64 %rd1, depot; cvta.local.u64 %rd2, %rd1; ld.param.u32 %r1, [n]; ld.param.u64 %rd3, "
    "[p]; ld.u32 %r2, [%rd3]; add.u32 %r3, %r1, %r2; st.u32 [%rd2], %r3;\n"
    "setp.eq.u32 %p1, %r1, 0; @%p1 bra END;\n"
    "{ .param .b32 a; .param .b64 b; .param .b32 c; sub.u32 %r4, %r1, 1; st.param.b32 [a], %r4; "
    "st.param.b64 [b], %rd2; call.uni (c), f, (a, b); ld.param.b32 %r5, [c]; }\n"
    "ld.local.u32 %r6, [depot+0]; add.u32 %r3, %r5, %r6;\nEND: st.param.b32 [r], %r3; ret; }\n";

constexpr const char* recursive_call =
    ".local .align 8 .b8 zero[8]; mov.u64 %rd4, zero; cvta.local.u64 %rd5, %rd4; st.u32 [%rd5], "
    "0;\n"
    "{ .param .b32 a; .param .b64 b; .param .b32 c; st.param.b32 [a], %r2; st.param.b64 [b], %rd5; "
    "call (c), f, (a, b); ld.param.b32 %r3, [c]; }\nst.global.u32 [%rd1], %r3;";

TEST(Control, each_activation_of_a_recursive_function_has_its_own_variables) {
  expect_results(kernel_of(recursive_call, recursive_function), 12, [](std::uint32_t n) {
    std::uint32_t a = 0;
    std::uint32_t sum = 0;
    for (std::uint32_t left = n + 1; left-- > 0;) sum += a += left;
    return sum;
  });
}

TEST(Control, a_recursion_without_an_end_is_a_fault) {
  const Fault fault =
      fault_of(kernel_of("call f;", ".func g();\n.func f() { call g; }\n.func g() { call f; }\n"),
               random_values(3));
  EXPECT_EQ(fault.kind, FaultKind::trap);
  EXPECT_NE(fault.message.find("recursion that does not end"), std::string::npos) << fault.message;
}

TEST(Control, local_arrays_of_a_deep_recursion_do_not_overrun_the_stack) {
  const Fault fault = fault_of(
      kernel_of(
          "add.u32 %r2, %r2, 1010;\n" + std::string(recursive_call),
          std::string(recursive_function)
              .replace(std::string_view(recursive_function).find("depot[8]"), 8, "depot[32]")),
      random_values(3));
  EXPECT_EQ(fault.kind, FaultKind::trap);
  EXPECT_NE(fault.message.find("local arrays"), std::string::npos) << fault.message;
}

// --- calls through registers --------------------------------------------------------------------

constexpr const char* table_of_functions =
    ".func (.param .b32 r) plus(.param .b32 x) { .reg .b32 %r<3>; ld.param.u32 %r1, [x]; add.u32 "
    "%r2, %r1, 1; st.param.b32 [r], %r2; ret; }\n"
    ".func (.param .b32 r) twice(.param .b32 x) { .reg .b32 %r<3>; ld.param.u32 %r1, [x]; shl.b32 "
    "%r2, %r1, 1; st.param.b32 [r], %r2; ret; }\n"
    ".global .align 8 .u64 table[3] = {plus, twice, 0};\n";

// Calls the function of the table that a register names.
std::string call_of_table(const std::string& index) {
  return "mov.u64 %rd4, table; mul.wide.u32 %rd5, " + index +
         ", 8; add.u64 %rd4, %rd4, %rd5; ld.global.u64 %rd6, [%rd4];\n"
         "{ .param .b32 a; .param .b32 b; st.param.b32 [a], %r2;\nP: .callprototype (.param .b32 "
         "_) _ (.param .b32 _);\ncall (b), %rd6, (a), P; ld.param.b32 %r3, [b]; }\n"
         "st.global.u32 [%rd1], %r3;";
}

TEST(Control, lanes_call_the_functions_that_their_registers_name) {
  expect_results(kernel_of("and.b32 %r4, %r2, 1;\n" + call_of_table("%r4"), table_of_functions),
                 100, [](std::uint32_t value) { return value % 2 == 0 ? value + 1 : value * 2; });
}

TEST(Control, a_call_of_no_function_is_a_fault) {
  const Fault fault = fault_of(
      kernel_of("mov.u32 %r4, 2;\n" + call_of_table("%r4"), table_of_functions), random_values(3));
  EXPECT_EQ(fault.kind, FaultKind::illegal_instruction);
  EXPECT_NE(fault.message.find("no function of this module"), std::string::npos) << fault.message;
}

TEST(Control, unknown_forms_are_refused_with_their_line) {
  expect_refusal(kernel_of("frobnicate.u32 %r1, %r2;"), "frobnicate.u32");
  expect_refusal(kernel_of("bra.all L;\nL:"), ".all");
  expect_refusal(kernel_of("brx %r1, L;\nL:"), ".idx");
  expect_refusal(kernel_of("brx.idx %r1, L;\nL:"), ".branchtargets");
  expect_refusal(kernel_of("nanosleep.s32 5;"), ".u32");
  expect_refusal(kernel_of("bra %r1;"), "label");
}

// --- the driver's functions ---------------------------------------------------------------------

constexpr const char* system_functions =
    ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);\n"
    ".extern .func __assertfail(.param .b64 m, .param .b64 f, .param .b32 l, .param .b64 n, .param "
    ".b64 c) .noreturn;\n"
    ".global .align 1 .b8 message[6] = {110, 32, 62, 32, 48, 0};\n"  // n > 0
    ".global .align 1 .b8 file[5] = {97, 46, 99, 117, 0};\n";        // a.cu

TEST(Control, a_failed_assertion_tells_its_text_and_place) {
  const Fault fault = fault_of(
      kernel_of("{ .param .b64 m; .param .b64 f; .param .b32 l; .param .b64 n; .param .b64 c;\n"
                "mov.u64 %rd4, message; cvta.global.u64 %rd5, %rd4; st.param.b64 [m], %rd5;\n"
                "mov.u64 %rd4, file; cvta.global.u64 %rd5, %rd4; st.param.b64 [f], %rd5; "
                "st.param.b64 [n], %rd5; st.param.b32 [l], 42; st.param.b64 [c], 1;\n"
                "call.uni __assertfail, (m, f, l, n, c); }",
                system_functions),
      random_values(3));
  EXPECT_EQ(fault.kind, FaultKind::trap);
  EXPECT_EQ(fault.message, "assertion \"n > 0\" failed in a.cu at a.cu:42");
}

TEST(Control, printf_prints_what_each_lane_gives) {
  const std::string text = kernel_of(
      ".local .align 8 .b8 depot[24];\nsetp.eq.u32 %p1, %r1, 3;\n@!%p1 exit;\n"
      "st.local.u32 [depot], -7; mov.f64 %rd6, 0d4004000000000000; st.local.f64 [depot+8], %rd6; "
      "st.local.u64 [depot+16], 48879;\n"
      "mov.u64 %rd4, format; cvta.global.u64 %rd5, %rd4; mov.u64 %rd7, depot; cvta.local.u64 %rd8, "
      "%rd7;\n{ .param .b64 f; .param .b64 a; .param .b32 r; st.param.b64 [f], %rd5; st.param.b64 "
      "[a], %rd8; call.uni (r), vprintf, (f, a); ld.param.b32 %r5, [r]; }\nst.global.u32 [%rd1], "
      "%r5;",
      ".global .align 1 .b8 format[18] = {37, 100, 44, 37, 45, 53, 46, 49, 102, 44, 37, 108, 108, "
      "120, 44, 37, 37, 0};\n"  // %d,%-5.1f,%llx,%%
      ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);\n");
  testing::internal::CaptureStdout();
  const std::vector<std::uint32_t> results = results_of(text, random_values(3));
  std::fflush(stdout);
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "-7,2.5  ,beef,%");
  EXPECT_EQ(results[3], 15u);
}

// --- the heap -----------------------------------------------------------------------------------

constexpr const char* heap_functions =
    ".extern .func (.param .b64 r) malloc(.param .b64 bytes);\n.extern .func free(.param .b64 "
    "p);\n";
constexpr const char* allocate =
    "{ .param .b64 a; .param .b64 b; st.param.b64 [a], 4; call.uni (b), malloc, (a); ld.param.b64 "
    "%rd4, [b]; }\n";
constexpr const char* release = "{ .param .b64 a; st.param.b64 [a], %rd4; call.uni free, (a); }\n";

TEST(Control, each_lane_gets_memory_of_its_own) {
  expect_results(kernel_of(std::string(allocate) +
                               "st.u32 [%rd4], %r2; bar.sync 0; ld.u32 %r3, "
                               "[%rd4]; st.global.u32 [%rd1], %r3;\n" +
                               release,
                           heap_functions),
                 1000, [](std::uint32_t value) { return value; });
}

TEST(Control, a_full_heap_gives_null) {
  expect_results(
      kernel_of("{ .param .b64 a; .param .b64 b; st.param.b64 [a], 0x100000000; call.uni "
                "(b), malloc, (a); ld.param.b64 %rd4, [b]; }\nst.global.u32 [%rd1], "
                "%rd4;",
                heap_functions),
      3, [](std::uint32_t) { return 0u; });
}

TEST(Control, misuse_of_the_heap_is_a_fault) {
  const Fault use =
      fault_of(kernel_of(std::string(allocate) + release + "st.u32 [%rd4], %r2;", heap_functions),
               random_values(3));
  EXPECT_EQ(use.kind, FaultKind::out_of_bounds);
  const Fault twice = fault_of(kernel_of(std::string(allocate) + release + release, heap_functions),
                               random_values(3));
  EXPECT_NE(twice.message.find("free of address"), std::string::npos) << twice.message;
}

}  // namespace
}  // namespace gemmery::emulator
