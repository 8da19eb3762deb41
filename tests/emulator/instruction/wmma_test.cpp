// SPDX-License-Identifier: Apache-2.0
// wmma: every shape, type and layout on small whole numbers, whose products are exact in each type.
#include <array>
#include <bit>
#include <random>

#include <gemmery/error.hpp>

#include "core/number.hpp"
#include "tests/emulator/instruction/matrix_element.hpp"
#include "tests/emulator/instruction/ptx_runner.hpp"
#include "tests/support/random_seed.hpp"

namespace gemmery::emulator {
namespace {

using namespace matrix_elements;

struct Form {
  Element ab;
  Element cd;
  std::uint32_t m, n, k;
  std::uint32_t a_registers, b_registers, c_registers;
};

constexpr Form forms[] = {
    {f16, f32, 16, 16, 16, 8, 8, 8},  {f16, f32, 8, 32, 16, 8, 8, 8},
    {f16, f32, 32, 8, 16, 8, 8, 8},   {f16, f16, 16, 16, 16, 8, 8, 4},
    {f16, f16, 8, 32, 16, 8, 8, 4},   {f16, f16, 32, 8, 16, 8, 8, 4},
    {bf16, f32, 16, 16, 16, 4, 4, 8}, {bf16, f32, 8, 32, 16, 2, 8, 8},
    {bf16, f32, 32, 8, 16, 8, 2, 8},  {tf32, f32, 16, 16, 8, 4, 4, 8},
    {f64, f64, 8, 8, 4, 1, 1, 2},     {s8, s32, 16, 16, 16, 2, 2, 8},
    {s8, s32, 8, 32, 16, 1, 4, 8},    {u8, s32, 32, 8, 16, 4, 1, 8},
    {u8, s32, 16, 16, 16, 2, 2, 8},   {s4, s32, 8, 8, 32, 1, 1, 2},
    {u4, s32, 8, 8, 32, 1, 1, 2},     {b1, s32, 8, 8, 128, 1, 1, 2},
};

// --- matrices in memory -------------------------------------------------------------------------

struct Stored {
  std::uint32_t rows, columns, stride;  // stride: between rows or columns, in elements
  bool is_row_major;

  std::size_t place(std::uint32_t row, std::uint32_t column) const {
    return is_row_major ? std::size_t{row} * stride + column : std::size_t{column} * stride + row;
  }
  std::size_t elements() const { return std::size_t{is_row_major ? rows : columns} * stride; }
};

// Leading dimensions larger than the extent, such that rows are aligned to 16 bytes.
Stored stored(std::uint32_t rows, std::uint32_t columns, bool is_row_major,
              const Element& element) {
  const std::uint32_t extent = is_row_major ? columns : rows;
  return {rows, columns, extent + 256 / element.bits, is_row_major};
}

void put(std::vector<std::byte>& memory, const Element& element, std::size_t at, int value) {
  if (element.dtype)
    return number::store(*element.dtype, memory.data(), static_cast<std::int64_t>(at),
                         {static_cast<double>(value), 0});
  const std::size_t bit = at * element.bits;
  if (element.bits == 32) {
    std::memcpy(memory.data() + bit / 8, &value, 4);
    return;
  }
  const auto code = static_cast<std::uint32_t>(value) & ((1u << element.bits) - 1);
  memory[bit / 8] |= static_cast<std::byte>(code << bit % 8);
}

int get(const std::vector<std::byte>& memory, const Element& element, std::size_t at) {
  if (element.dtype)
    return static_cast<int>(
        number::load(*element.dtype, memory.data(), static_cast<std::int64_t>(at)));
  int value = 0;
  std::memcpy(&value, memory.data() + at * 4, 4);
  return value;
}

using Values = std::vector<int>;  // row-major

Values draw(const Stored& matrix, const Element& element, std::mt19937_64& random) {
  Values values(std::size_t{matrix.rows} * matrix.columns);
  std::uniform_int_distribution<int> number(element.least, element.most);
  for (int& value : values) value = number(random);
  return values;
}

std::vector<std::byte> lay_out(const Stored& matrix, const Element& element, const Values& values) {
  std::vector<std::byte> memory(matrix.elements() * element.bits / 8 + 8);
  for (std::uint32_t row = 0; row < matrix.rows; ++row)
    for (std::uint32_t column = 0; column < matrix.columns; ++column)
      put(memory, element, matrix.place(row, column),
          values[std::size_t{row} * matrix.columns + column]);
  return memory;
}

// --- kernels ------------------------------------------------------------------------------------

std::string list(const char* prefix, std::uint32_t count) {
  std::string text = "{";
  for (std::uint32_t index = 0; index < count; ++index)
    text += (index == 0 ? "%" : ", %") + std::string(prefix) + std::to_string(index);
  return text + "}";
}

const char* layout(bool is_row_major) { return is_row_major ? "row" : "col"; }

std::string shape_of(const Form& form) {
  return "m" + std::to_string(form.m) + "n" + std::to_string(form.n) + "k" + std::to_string(form.k);
}

std::string types_of(const Form& form) {
  const std::string cd = std::string(".") + form.cd.name;
  if (std::string(form.ab.name) == "f16") return cd + cd;
  const std::string ab = std::string(".") + form.ab.name;
  return cd + ab + ab + cd;
}

struct Layouts {
  bool a = true, b = false, c = true, d = true;  // row-major
};

std::string kernel_of(const Form& form, const Layouts& layouts, const std::string& between = {}) {
  const bool is_f64 = form.ab.bits == 64;
  const std::string type = is_f64 ? ".f64" : ".b32";
  const std::string shape = "." + shape_of(form);
  const std::string operation = form.ab.bits == 1 ? ".and.popc" : "";
  const auto load = [&](const char* which, const char* prefix, std::uint32_t count, bool is_row,
                        const Element& element, int pointer) {
    return "wmma.load." + std::string(which) + ".sync.aligned." + layout(is_row) + shape +
           ".global." + element.name + " " + list(prefix, count) + ", [%p" +
           std::to_string(pointer) + "], %s" + std::to_string(pointer) + ";\n";
  };
  return ".version 8.7\n.target sm_90a\n.address_size 64\n"
         ".visible .entry run(.param .u64 p0, .param .u64 p1, .param .u64 p2, .param .u64 p3,\n"
         ".param .u64 s0, .param .u64 s1, .param .u64 s2, .param .u64 s3)\n{\n"
         ".reg " +
         type +
         " %a<8>, %b<8>, %c<8>, %d<8>;\n"
         ".reg .b64 %p<4>;\n.reg .u32 %s<4>;\n" +
         "ld.param.u64 %p0, [p0];\nld.param.u64 %p1, [p1];\nld.param.u64 %p2, [p2];\n"
         "ld.param.u64 %p3, [p3];\nld.param.u32 %s0, [s0];\nld.param.u32 %s1, [s1];\n"
         "ld.param.u32 %s2, [s2];\nld.param.u32 %s3, [s3];\n" +
         load("a", "a", form.a_registers, layouts.a, form.ab, 0) +
         load("b", "b", form.b_registers, layouts.b, form.ab, 1) +
         load("c", "c", form.c_registers, layouts.c, form.cd, 2) + between + "wmma.mma" +
         operation + ".sync.aligned." + layout(layouts.a) + "." + layout(layouts.b) + shape +
         types_of(form) + (is_f64 ? ".rn" : "") + " " + list("d", form.c_registers) + ", " +
         list("a", form.a_registers) + ", " + list("b", form.b_registers) + ", " +
         list("c", form.c_registers) + ";\n" + "wmma.store.d.sync.aligned." + layout(layouts.d) +
         shape + ".global." + form.cd.name + " [%p3], " + list("d", form.c_registers) +
         ", %s3;\nret;\n}\n";
}

int product_of(const Form& form, int a, int b) { return form.ab.bits == 1 ? (a & b) : a * b; }

void run_form(const Form& form, const Layouts& layouts, std::mt19937_64& random) {
  const Stored a = stored(form.m, form.k, layouts.a, form.ab);
  const Stored b = stored(form.k, form.n, layouts.b, form.ab);
  const Stored c = stored(form.m, form.n, layouts.c, form.cd);
  const Stored d = stored(form.m, form.n, layouts.d, form.cd);
  const Values a_values = draw(a, form.ab, random), b_values = draw(b, form.ab, random),
               c_values = draw(c, form.cd, random);
  PtxRunner runner(kernel_of(form, layouts));
  runner.request.block = {32, 1, 1};
  const std::size_t d_bytes = d.elements() * form.cd.bits / 8;
  const std::uint64_t to = runner.reserve(d_bytes);
  const auto fault = runner.launch(
      {runner.put(lay_out(a, form.ab, a_values)), runner.put(lay_out(b, form.ab, b_values)),
       runner.put(lay_out(c, form.cd, c_values)), to, a.stride, b.stride, c.stride, d.stride});
  ASSERT_FALSE(fault) << fault->report();
  const auto result = runner.get<std::byte>(to, d_bytes);
  for (std::uint32_t row = 0; row < form.m; ++row) {
    for (std::uint32_t column = 0; column < form.n; ++column) {
      int expected = c_values[std::size_t{row} * form.n + column];
      for (std::uint32_t k = 0; k < form.k; ++k)
        expected += product_of(form, a_values[std::size_t{row} * form.k + k],
                               b_values[std::size_t{k} * form.n + column]);
      ASSERT_EQ(get(result, form.cd, d.place(row, column)), expected) << row << ", " << column;
    }
  }
}

TEST(Wmma, every_form_multiplies_in_every_layout) {
  std::mt19937_64 random(gemmery::tests::random_seed());
  for (const Form& form : forms) {
    for (unsigned choice = 0; choice < 16; ++choice) {
      const Layouts layouts{(choice & 1) != 0, (choice & 2) != 0, (choice & 4) != 0,
                            (choice & 8) != 0};
      if (form.ab.bits < 8 && (!layouts.a || layouts.b)) continue;  // the only layout of such types
      SCOPED_TRACE(kernel_of(form, layouts));
      run_form(form, layouts, random);
    }
  }
}

// User code converts accumulators element by element, x[i] to x[i].
TEST(Wmma, accumulators_have_their_elements_in_the_same_places_in_f16_and_f32) {
  const std::string text = R"(.version 8.7
.target sm_90a
.address_size 64
.visible .entry run(.param .u64 from, .param .u64 to)
{
.reg .b32 %h<4>;
.reg .b16 %l<8>;
.reg .f32 %f<8>;
.reg .b64 %p<2>;
ld.param.u64 %p0, [from];
ld.param.u64 %p1, [to];
wmma.load.c.sync.aligned.row.m8n32k16.global.f16 {%h0, %h1, %h2, %h3}, [%p0];
mov.b32 {%l0, %l1}, %h0;
mov.b32 {%l2, %l3}, %h1;
mov.b32 {%l4, %l5}, %h2;
mov.b32 {%l6, %l7}, %h3;
cvt.f32.f16 %f0, %l0;
cvt.f32.f16 %f1, %l1;
cvt.f32.f16 %f2, %l2;
cvt.f32.f16 %f3, %l3;
cvt.f32.f16 %f4, %l4;
cvt.f32.f16 %f5, %l5;
cvt.f32.f16 %f6, %l6;
cvt.f32.f16 %f7, %l7;
wmma.store.d.sync.aligned.row.m8n32k16.global.f32 [%p1], {%f0, %f1, %f2, %f3, %f4, %f5, %f6, %f7};
ret;
}
)";
  PtxRunner runner(text);
  runner.request.block = {32, 1, 1};
  std::vector<std::byte> halves(512);
  for (std::size_t at = 0; at < 256; ++at) put(halves, f16, at, static_cast<int>(at));
  const std::uint64_t to = runner.reserve(1024);
  ASSERT_FALSE(runner.launch({runner.put(halves), to}));
  const auto floats = runner.get<float>(to, 256);
  for (std::size_t at = 0; at < 256; ++at) ASSERT_EQ(floats[at], static_cast<float>(at));
}

// --- what goes wrong ----------------------------------------------------------------------------

constexpr Form half = forms[0];

std::optional<Fault> launch_half(PtxRunner& runner, std::uint64_t a_bytes, std::uint64_t a_offset,
                                 std::uint64_t stride) {
  runner.request.block = {32, 1, 1};
  const std::vector<std::byte> zeros(4096);
  const std::uint64_t a = runner.put(std::vector<std::byte>(a_bytes));
  return runner.launch(
      {a + a_offset, runner.put(zeros), runner.put(zeros), runner.put(zeros), stride, 16, 16, 16});
}

TEST(Wmma, accesses_are_checked) {
  PtxRunner runner(kernel_of(half, {}));
  EXPECT_FALSE(launch_half(runner, 512, 0, 16));
  EXPECT_EQ(launch_half(runner, 510, 0, 16)->kind, FaultKind::out_of_bounds);
  EXPECT_EQ(launch_half(runner, 4096, 0, 24 * 16)->kind, FaultKind::out_of_bounds);
  EXPECT_EQ(launch_half(runner, 4096, 8, 16)->kind, FaultKind::misaligned);
  EXPECT_EQ(launch_half(runner, 4096, 0, 20)->kind, FaultKind::misaligned);
  EXPECT_FALSE(launch_half(runner, 4096, 16, 24)) << "what CUDA C++ allows";
}

TEST(Wmma, lanes_that_disagree_and_warps_in_part_are_faults) {
  PtxRunner apart(kernel_of(half, {}, "mov.u32 %s3, %laneid;\nshl.b32 %s3, %s3, 4;\n"));
  const auto disagreement = launch_half(apart, 512, 0, 16);
  ASSERT_TRUE(disagreement);
  EXPECT_EQ(disagreement->kind, FaultKind::illegal_instruction);
  EXPECT_EQ(disagreement->place.lane, 1);
  PtxRunner partial(kernel_of(half, {}));
  partial.request.block = {24, 1, 1};
  const std::vector<std::byte> zeros(4096);
  const auto fault = partial.launch({partial.put(zeros), partial.put(zeros), partial.put(zeros),
                                     partial.put(zeros), 16, 16, 16, 16});
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->kind, FaultKind::divergent_barrier);
}

// One unwritten element of A makes only its row of D unwritten.
TEST(Wmma, what_comes_from_unwritten_memory_is_unwritten) {
  PtxRunner runner(kernel_of(half, {}));
  runner.request.block = {32, 1, 1};
  const std::vector<std::byte> zeros(4096);
  const std::uint64_t to = runner.reserve(1024);
  const std::uint64_t a = runner.reserve(512);
  runner.fill_but(a, 512, 5 * 32 + 6);
  const auto fault = runner.launch({a, runner.put(zeros), runner.put(zeros), to, 16, 16, 16, 16});
  ASSERT_FALSE(fault) << fault->report();
  for (std::uint64_t row = 0; row < 16; ++row)
    EXPECT_EQ(runner.unwritten(to + row * 64, 64), row == 5 ? 64U : 0U) << row;
}

TEST(Wmma, forms_that_no_hardware_has_are_refused) {
  const auto refusal = [](std::string text, const std::string& from, const std::string& to) {
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    for (std::size_t place = at; place != std::string::npos;
         place = text.find(from, place + to.size()))
      text.replace(place, from.size(), to);
    try {
      const PtxRunner runner(text);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const std::string good = kernel_of(half, {});
  EXPECT_EQ(refusal(good, "m16n16k16", "m16n16k16"), "");
  EXPECT_NE(refusal(good, "m16n16k16", "m16n16k8"), "");
  EXPECT_NE(refusal(good, ".f32.f32", ".f32.f16"), "");
  EXPECT_NE(refusal(good, ".f32.f32", ".f32.f32.satfinite"), "");
  EXPECT_NE(refusal(good, "load.a", "load.d"), "");
  EXPECT_NE(refusal(good, ".global.f16", ".global.e4m3"), "");
  EXPECT_NE(refusal(good, "sync.aligned", "sync"), "");
}

}  // namespace
}  // namespace gemmery::emulator
