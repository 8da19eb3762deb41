// SPDX-License-Identifier: Apache-2.0
// mma.sp: every form on small whole numbers, whose products are exact in each type, against the
// product of the expanded operand.
#include <algorithm>
#include <numeric>
#include <random>

#include <gemmery/error.hpp>

#include "core/number.hpp"
#include "tests/emulator/instruction/matrix_element.hpp"
#include "tests/emulator/instruction/ptx_runner.hpp"
#include "tests/support/random_seed.hpp"

namespace gemmery::emulator {
namespace {

using namespace matrix_elements;

constexpr std::uint32_t rows = 16, columns = 8;

// `lanes`: of each four, that hold metadata; each has it for so many columns of one or two rows.
struct Form {
  Element a, b, cd;
  std::uint32_t k;
  std::uint32_t lanes, lane_columns, lane_rows;

  std::uint32_t selectors() const { return 4 / lanes; }
  std::uint32_t unit_elements() const { return a.bits == 4 ? 2 : 1; }
  std::uint32_t chunk_units() const { return a.bits == 32 ? 2 : 4; }
  std::uint32_t chunk_elements() const { return chunk_units() * unit_elements(); }
};

constexpr Form forms[] = {
    {f16, f16, f32, 16, 1, 16, 2},   {f16, f16, f32, 32, 2, 16, 2},
    {f16, f16, f16, 16, 1, 16, 2},   {f16, f16, f16, 32, 2, 16, 2},
    {bf16, bf16, f32, 16, 1, 16, 2}, {bf16, bf16, f32, 32, 2, 16, 2},
    {tf32, tf32, f32, 8, 1, 8, 2},   {tf32, tf32, f32, 16, 2, 8, 2},
    {s8, s8, s32, 32, 2, 32, 1},     {u8, s8, s32, 32, 2, 32, 1},
    {s8, u8, s32, 64, 4, 32, 1},     {u8, u8, s32, 64, 4, 32, 1},
    {s4, s4, s32, 64, 2, 64, 1},     {u4, s4, s32, 64, 2, 64, 1},
    {s4, u4, s32, 128, 4, 64, 1},    {u4, u4, s32, 128, 4, 64, 1},
    {e4m3, e4m3, f32, 64, 4, 32, 1}, {e5m2, e4m3, f32, 64, 4, 32, 1},
    {e5m2, e5m2, f32, 64, 4, 32, 1},
};

const Form& f16_form = forms[1];

// --- what lanes hold ----------------------------------------------------------------------------

using LaneWords = std::vector<std::uint32_t>;  // register * 32 + lane

std::uint32_t code_of(const Element& element, int value) {
  std::uint32_t code = static_cast<std::uint32_t>(value);
  if (element.dtype) {
    code = 0;
    number::store(*element.dtype, &code, 0, {static_cast<double>(value), 0});
  }
  return element.bits == 32 ? code : code & ((1u << element.bits) - 1);
}

// Puts element `index` of a packed row whose words four lanes share in turn.
void put(LaneWords& words, const Element& element, std::uint32_t index, int value,
         std::uint32_t first_lane, std::uint32_t first_register, std::uint32_t register_step) {
  const std::uint32_t bit = index * element.bits, word = bit / 32;
  const std::uint32_t reg = first_register + register_step * (word / 4);
  words[reg * 32 + first_lane + word % 4] |= code_of(element, value) << bit % 32;
}

struct Operands {
  LaneWords a, b, c, metadata;
  std::vector<int> product;  // row-major
};

// A random choice of the units that are stored, ascending.
std::vector<std::uint32_t> draw_units(const Form& form, std::mt19937_64& random) {
  std::vector<std::uint32_t> units(form.chunk_units());
  std::iota(units.begin(), units.end(), 0u);
  std::ranges::shuffle(units, random);
  units.resize(units.size() / 2);
  std::ranges::sort(units);
  return units;
}

std::uint32_t metadata_bits(const Form& form, const std::vector<std::uint32_t>& units) {
  if (form.chunk_units() == 2) return units[0] == 0 ? 0b0100 : 0b1110;
  return units[0] | units[1] << 2;
}

void put_metadata(const Form& form, std::uint32_t selector, std::uint32_t row, std::uint32_t column,
                  std::uint32_t bits, LaneWords& metadata) {
  const bool has_two_rows = form.lane_rows == 2;
  const std::uint32_t part = column / form.lane_columns;
  const std::uint32_t lane =
      row % 8 * 4 + selector * form.lanes + (has_two_rows ? part : 2 * part + row / 8);
  const std::uint32_t chunk = column % form.lane_columns / form.chunk_elements();
  metadata[lane] |= bits << ((has_two_rows ? 16 * (row / 8) : 0) + 4 * chunk);
}

// A row of A, expanded; puts what is stored of it and its metadata.
std::vector<int> draw_row(const Form& form, std::uint32_t selector, std::uint32_t row,
                          Operands& operands, std::mt19937_64& random) {
  std::uniform_int_distribution<int> number(form.a.least, form.a.most);
  std::vector<int> expanded(form.k);
  std::uint32_t stored = 0;
  for (std::uint32_t first = 0; first < form.k; first += form.chunk_elements()) {
    const auto units = draw_units(form, random);
    put_metadata(form, selector, row, first, metadata_bits(form, units), operands.metadata);
    for (const std::uint32_t unit : units) {
      for (std::uint32_t part = 0; part < form.unit_elements(); ++part) {
        const int value = number(random);
        expanded[first + unit * form.unit_elements() + part] = value;
        put(operands.a, form.a, stored++, value, row % 8 * 4, row / 8, 2);
      }
    }
  }
  return expanded;
}

Operands draw(const Form& form, std::uint32_t selector, std::mt19937_64& random) {
  Operands drawn{LaneWords(4 * 32), LaneWords(4 * 32), LaneWords(4 * 32), LaneWords(32), {}};
  std::uniform_int_distribution<int> of_b(form.b.least, form.b.most);
  std::uniform_int_distribution<int> of_c(form.cd.least, form.cd.most);
  std::vector<int> b(std::size_t{columns} * form.k);
  for (std::uint32_t column = 0; column < columns; ++column)
    for (std::uint32_t k = 0; k < form.k; ++k)
      put(drawn.b, form.b, k, b[column * form.k + k] = of_b(random), column * 4, 0, 1);
  for (std::uint32_t row = 0; row < rows; ++row) {
    const auto a = draw_row(form, selector, row, drawn, random);
    for (std::uint32_t column = 0; column < columns; ++column) {
      const int c = of_c(random);
      const std::uint32_t lane = row % 8 * 4 + column / 2;
      const std::uint32_t reg = form.cd.bits == 16 ? row / 8 : row / 8 * 2 + column % 2;
      const std::uint32_t shift = form.cd.bits == 16 ? 16 * (column % 2) : 0;
      drawn.c[reg * 32 + lane] |= code_of(form.cd, c) << shift;
      drawn.product.push_back(std::inner_product(
          a.begin(), a.end(), b.begin() + static_cast<std::ptrdiff_t>(column * form.k), c));
    }
  }
  return drawn;
}

// --- kernels ------------------------------------------------------------------------------------

std::string list(const char* prefix, std::uint32_t count) {
  std::string text = "{";
  for (std::uint32_t index = 0; index < count; ++index)
    text += (index == 0 ? "%" : ", %") + std::string(prefix) + std::to_string(index);
  return text + "}";
}

std::string loads(const char* prefix, std::uint32_t count, int pointer) {
  std::string text;
  for (std::uint32_t index = 0; index < count; ++index)
    text += "ld.global.b32 %" + std::string(prefix) + std::to_string(index) + ", [%p" +
            std::to_string(pointer) + "+" + std::to_string(128 * index) + "];\n";
  return text;
}

std::string kernel_of(const Form& form, std::uint32_t selector, const std::string& variant) {
  const std::uint32_t of_a = rows * form.k / 2 * form.a.bits / 1024;
  const std::uint32_t of_b = columns * form.k * form.b.bits / 1024;
  const std::uint32_t of_c = form.cd.bits == 16 ? 2 : 4;
  std::string text = ".version 8.7\n.target sm_90a\n.address_size 64\n.visible .entry run(";
  for (int index = 0; index < 5; ++index)
    text += (index == 0 ? ".param .u64 q" : ", .param .u64 q") + std::to_string(index);
  text +=
      ")\n{\n.reg .b32 %a<4>, %b<4>, %c<4>, %d<4>, %e<1>, %t;\n.reg .b64 %p<5>, %o;\n"
      "mov.u32 %t, %tid.x;\nmul.wide.u32 %o, %t, 4;\n";
  for (int index = 0; index < 5; ++index) {
    const std::string name = std::to_string(index);
    text += "ld.param.u64 %p" + name + ", [q" + name + "];\nadd.u64 %p" + name + ", %p" + name +
            ", %o;\n";
  }
  text += loads("a", of_a, 0) + loads("b", of_b, 1) + loads("c", of_c, 2) + loads("e", 1, 3) +
          "mma." + variant + ".sync.aligned.m16n8k" + std::to_string(form.k) + ".row.col." +
          form.cd.name + "." + form.a.name + "." + form.b.name + "." + form.cd.name + " " +
          list("d", of_c) + ", " + list("a", of_a) + ", " + list("b", of_b) + ", " +
          list("c", of_c) + ", %e0, " + std::to_string(selector) + ";\n";
  for (std::uint32_t index = 0; index < of_c; ++index)
    text += "st.global.b32 [%p4+" + std::to_string(128 * index) + "], %d" + std::to_string(index) +
            ";\n";
  return text + "ret;\n}\n";
}

struct Outcome {
  std::optional<Fault> fault;
  LaneWords d;
};

Outcome run(const Form& form, std::uint32_t selector, const std::string& variant,
            const Operands& operands) {
  PtxRunner runner(kernel_of(form, selector, variant));
  runner.request.block = {32, 1, 1};
  const std::uint64_t to = runner.reserve(4 * 128);
  auto fault = runner.launch({runner.put(operands.a), runner.put(operands.b),
                              runner.put(operands.c), runner.put(operands.metadata), to});
  return {std::move(fault), runner.get<std::uint32_t>(to, 4 * 32)};
}

int result_at(const Form& form, const LaneWords& d, std::uint32_t row, std::uint32_t column) {
  const std::uint32_t lane = row % 8 * 4 + column / 2;
  if (form.cd.bits == 16)
    return static_cast<int>(number::load(DType::float16, &d[row / 8 * 32 + lane], column % 2));
  const std::uint32_t& word = d[(row / 8 * 2 + column % 2) * 32 + lane];
  return form.cd.dtype ? static_cast<int>(number::load(*form.cd.dtype, &word, 0))
                       : static_cast<int>(word);
}

TEST(SparseMma, every_form_multiplies_by_the_expanded_operand) {
  std::mt19937_64 random(gemmery::tests::random_seed());
  for (const Form& form : forms) {
    for (std::uint32_t selector = 0; selector < form.selectors(); ++selector) {
      const char* const variant = selector % 2 == 0 ? "sp::ordered_metadata" : "sp";
      const Operands operands = draw(form, selector, random);
      const Outcome outcome = run(form, selector, variant, operands);
      SCOPED_TRACE(kernel_of(form, selector, variant));
      ASSERT_FALSE(outcome.fault) << outcome.fault->report();
      for (std::uint32_t row = 0; row < rows; ++row)
        for (std::uint32_t column = 0; column < columns; ++column)
          ASSERT_EQ(result_at(form, outcome.d, row, column),
                    operands.product[row * columns + column])
              << row << ", " << column;
    }
  }
}

TEST(SparseMma, infinities_of_b_beside_what_a_does_not_store_do_not_count) {
  std::mt19937_64 random(gemmery::tests::random_seed());
  Operands operands = draw(f16_form, 0, random);
  std::ranges::fill(operands.metadata, 0x4444'4444U);  // the first two of each four
  std::ranges::fill(operands.a, 0x3c00'3c00U);         // ones
  std::ranges::fill(operands.c, 0U);
  for (std::uint32_t lane = 0; lane < 32; ++lane)  // 1 in the first two, then infinities
    for (std::uint32_t reg = 0; reg < 4; ++reg)
      operands.b[reg * 32 + lane] = lane % 2 == 0 ? 0x3c00'3c00U : 0x7c00'7c00U;
  const Outcome outcome = run(f16_form, 0, "sp", operands);
  ASSERT_FALSE(outcome.fault) << outcome.fault->report();
  for (std::uint32_t row = 0; row < rows; ++row)
    for (std::uint32_t column = 0; column < columns; ++column)
      ASSERT_EQ(result_at(f16_form, outcome.d, row, column), 16) << row << ", " << column;
}

// --- metadata without a meaning -----------------------------------------------------------------

Outcome run_with_metadata(const Form& form, const char* variant, std::uint32_t bits) {
  std::mt19937_64 random(gemmery::tests::random_seed());
  Operands operands = draw(form, 0, random);
  std::ranges::fill(operands.metadata, bits * 0x1111'1111u);
  return run(form, 0, variant, operands);
}

TEST(SparseMma, descending_indexes_are_a_fault_only_if_order_is_promised) {
  EXPECT_FALSE(run_with_metadata(f16_form, "sp", 0b0001).fault);
  const auto fault = run_with_metadata(f16_form, "sp::ordered_metadata", 0b0001).fault;
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->kind, FaultKind::illegal_instruction) << fault->report();
  EXPECT_NE(fault->report().find("metadata"), std::string::npos) << fault->report();
}

TEST(SparseMma, equal_indexes_and_undefined_codes_of_tf32_are_faults) {
  EXPECT_TRUE(run_with_metadata(f16_form, "sp", 0b0101).fault);
  const auto fault = run_with_metadata(forms[6], "sp", 0b0001).fault;
  ASSERT_TRUE(fault);
  EXPECT_NE(fault->report().find("0b1110"), std::string::npos) << fault->report();
}

TEST(SparseMma, forms_that_no_hardware_has_are_refused) {
  const Form too_short{f16, f16, f32, 8, 1, 16, 2}, fp8_k32{e4m3, e4m3, f32, 32, 2, 32, 1};
  const Form fp8_f16{e4m3, e5m2, f16, 64, 4, 32, 1};
  EXPECT_THROW(PtxRunner(kernel_of(fp8_f16, 0, "sp")), Error);
  EXPECT_THROW(PtxRunner(kernel_of(too_short, 0, "sp")), Error);
  EXPECT_THROW(PtxRunner(kernel_of(fp8_k32, 0, "sp")), Error);
  EXPECT_THROW(PtxRunner(kernel_of(f16_form, 2, "sp")), Error);  // pairs of lanes: 0 and 1
}

}  // namespace
}  // namespace gemmery::emulator
