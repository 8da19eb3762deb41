// SPDX-License-Identifier: Apache-2.0
// wmma.load, wmma.store and wmma.mma.
#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "emulator/instruction/matrix/matrix_form.hpp"
#include "emulator/instruction/matrix/matrix_registers.hpp"
#include "emulator/instruction/matrix/wmma_fragment.hpp"
#include "emulator/instruction/memory/memory_access.hpp"

namespace gemmery::emulator {
namespace {

// --- loads and stores ---------------------------------------------------------------------------

struct AccessDetail final : OperationDetail {
  WmmaFragment fragment;
  std::vector<OperandSlot> registers;
  Space space = Space::generic;
  AddressOperand address;
  std::size_t stride_slot = 0;
  bool has_stride = false;
  // Rows of the fragment lie one behind the other; otherwise its columns do.
  bool is_by_rows = true;
  std::uint32_t element_bits = 0;
};

const AccessDetail& access_detail_of(const Operation& operation) {
  return static_cast<const AccessDetail&>(*operation.detail);
}

template <class Values>
void require_same(const Values& values, const char* what) {
  for (std::uint32_t lane = 1; lane < lanes_per_warp; ++lane) {
    if (values[lane] == values[0]) continue;
    Fault fault(FaultKind::illegal_instruction,
                std::string(what) + " of a wmma differs between lanes 0 and " +
                    std::to_string(lane) + "; all lanes must give the same");
    fault.place.lane = static_cast<int>(lane);
    throw fault;
  }
}

// In bytes, from one row (or column) to the next.
std::uint64_t stride_of(Warp& warp, const Operation& operation, const AccessDetail& detail) {
  if (!detail.has_stride) {
    const std::uint32_t units =
        detail.is_by_rows ? detail.fragment.row_units : detail.fragment.rows;
    return std::uint64_t{units} * detail.fragment.unit_bytes;
  }
  warp.require_defined(operation.slot[detail.stride_slot], all_lanes, "the stride of a wmma");
  const auto* const strides = warp.source<std::uint32_t>(operation, detail.stride_slot);
  require_same(std::span(strides, lanes_per_warp), "the stride");
  return std::uint64_t{strides[0]} * detail.element_bits / 8;
}

// Rows must begin at multiples of a lane's bytes (PTX ISA, "wmma.load"), of which CUDA C++ asks for
// no more than 16 in strides.
void check_alignment(const AccessDetail& detail, std::uint64_t base, std::uint64_t stride) {
  const std::uint32_t alignment = std::min(detail.fragment.bytes_per_lane(), 16u);
  if (base % alignment == 0 && stride % alignment == 0) return;
  throw Fault(FaultKind::misaligned,
              "the rows of a wmma begin at address " + std::to_string(base) + ", " +
                  std::to_string(stride) + " bytes apart: expected multiples of " +
                  std::to_string(alignment) + "; align the matrix and its leading dimension");
}

// Where a matrix lies.
struct Placing {
  std::uint64_t base = 0;
  std::uint64_t stride = 0;
};

Placing find_placing(Warp& warp, const Operation& operation) {
  const AccessDetail& detail = access_detail_of(operation);
  LaneAddresses addresses;
  find_addresses(warp, operation, detail.address, all_lanes, addresses);
  require_same(addresses, "the address");
  const Placing placing{addresses[0], stride_of(warp, operation, detail)};
  check_alignment(detail, placing.base, placing.stride);
  return placing;
}

LaneAddresses addresses_of(const AccessDetail& detail, const Placing& placing, std::uint32_t slot) {
  const WmmaFragment& fragment = detail.fragment;
  LaneAddresses addresses;
  for (std::uint32_t lane = 0; lane < lanes_per_warp; ++lane) {
    const std::uint32_t unit = fragment.unit_at(slot, lane);
    const std::uint64_t row = unit / fragment.row_units, at = unit % fragment.row_units;
    addresses[lane] =
        placing.base + (detail.is_by_rows ? row * placing.stride + at * fragment.unit_bytes
                                          : at * placing.stride + row * fragment.unit_bytes);
  }
  return addresses;
}

// Calls visit(route) for each memory that the lanes' units of one slot lie in, in general one.
template <class Visit>
void for_each_route(Warp& warp, const AccessDetail& detail, const Placing& placing,
                    std::uint32_t slot, Visit visit) {
  const LaneAddresses addresses = addresses_of(detail, placing, slot);
  Route route;
  for (LaneMask rest = all_lanes; rest != 0;) {
    take_route(warp, detail.space, addresses, rest, route);
    if (route.space != Space::shared && route.space != Space::global)
      throw Fault(FaultKind::illegal_instruction,
                  "a wmma accesses memory that is neither global nor shared; give it the address "
                  "of such memory");
    visit(route);
  }
}

// The units of one slot, lane by lane.
using SlotUnits = std::array<std::byte, lanes_per_warp * sizeof(std::uint64_t)>;

LaneMask load_slot(Warp& warp, const Operation& operation, const Placing& placing,
                   std::uint32_t slot, SlotUnits& units) {
  const AccessDetail& detail = access_detail_of(operation);
  const std::uint32_t bytes = detail.fragment.unit_bytes;
  LaneMask complete = 0;
  for_each_route(warp, detail, placing, slot, [&](const Route& route) {
    const LaneAccess access{
        .active = route.lanes, .addresses = route.addresses.data(), .bytes = bytes};
    const Accessor who = warp.accessor(operation);
    complete |= route.space == Space::shared
                    ? route.cta->shared.load(access, who, units.data(), bytes)
                    : warp.cta.cluster.grid.memory->load(access, who, units.data(), bytes);
  });
  return complete;
}

void store_slot(Warp& warp, const Operation& operation, const Placing& placing, std::uint32_t slot,
                const SlotUnits& units, LaneMask defined) {
  const AccessDetail& detail = access_detail_of(operation);
  const std::uint32_t bytes = detail.fragment.unit_bytes;
  for_each_route(warp, detail, placing, slot, [&](const Route& route) {
    const LaneAccess access{
        .active = route.lanes, .addresses = route.addresses.data(), .bytes = bytes};
    const Accessor who = warp.accessor(operation);
    if (route.space == Space::shared)
      route.cta->shared.store(access, who, units.data(), bytes, defined);
    else
      warp.cta.cluster.grid.memory->store(access, who, units.data(), bytes, defined);
    warp.unfenced_lanes |= route.lanes;
  });
}

Step run_load(Warp& warp, const Operation& operation, LaneMask active) {
  require_whole_warp(active, "wmma.load");
  const AccessDetail& detail = access_detail_of(operation);
  const WmmaFragment& fragment = detail.fragment;
  const Placing placing = find_placing(warp, operation);
  WmmaMatrix matrix;
  SlotUnits units;
  DefinedUnits defined(fragment.slots());
  for (std::uint32_t slot = 0; slot < fragment.slots(); ++slot) {
    defined[slot] = load_slot(warp, operation, placing, slot, units);
    for (std::uint32_t lane = 0; lane < lanes_per_warp; ++lane)
      std::memcpy(matrix.data() + std::size_t{fragment.unit_at(slot, lane)} * fragment.unit_bytes,
                  units.data() + std::size_t{lane} * fragment.unit_bytes, fragment.unit_bytes);
  }
  distribute(fragment, warp, detail.registers, matrix);
  set_defined(fragment, warp, detail.registers, defined);
  return Step::next;
}

Step run_store(Warp& warp, const Operation& operation, LaneMask active) {
  require_whole_warp(active, "wmma.store");
  const AccessDetail& detail = access_detail_of(operation);
  const WmmaFragment& fragment = detail.fragment;
  const Placing placing = find_placing(warp, operation);
  WmmaMatrix matrix;
  SlotUnits units;
  collect(fragment, warp, detail.registers, matrix);
  const DefinedUnits defined = defined_units(fragment, warp, detail.registers);
  for (std::uint32_t slot = 0; slot < fragment.slots(); ++slot) {
    for (std::uint32_t lane = 0; lane < lanes_per_warp; ++lane)
      std::memcpy(units.data() + std::size_t{lane} * fragment.unit_bytes,
                  matrix.data() + std::size_t{fragment.unit_at(slot, lane)} * fragment.unit_bytes,
                  fragment.unit_bytes);
    store_slot(warp, operation, placing, slot, units, defined[slot]);
  }
  return Step::next;
}

// --- products -----------------------------------------------------------------------------------

struct ProductDetail final : OperationDetail {
  MatrixProduct product;  // each execution sets its pointers
  WmmaFragment of_a, of_b, of_c;
  std::vector<OperandSlot> a, b, c, d;
};

// An element of D is defined if its row of A, its column of B and its element of C are.
DefinedUnits defined_d(const Warp& warp, const ProductDetail& detail) {
  DefinedUnits defined = defined_units(detail.of_c, warp, detail.c);
  const std::uint32_t rows = defined_rows(detail.of_a, defined_units(detail.of_a, warp, detail.a));
  const std::uint32_t columns =
      defined_rows(detail.of_b, defined_units(detail.of_b, warp, detail.b));
  if (rows == ~0u && columns == ~0u) return defined;
  for (std::uint32_t unit = 0; unit < detail.product.m * detail.product.n; ++unit) {
    const bool is_defined =
        (rows >> unit / detail.product.n & 1) != 0 && (columns >> unit % detail.product.n & 1) != 0;
    if (!is_defined) defined[detail.of_c.slot_of(unit)] &= ~(1u << detail.of_c.lane_of(unit));
  }
  return defined;
}

// The product's C and D hold an f16 in 32 bits.
void widen(WmmaMatrix& matrix, std::uint32_t count) {
  for (std::uint32_t at = count; at-- > 0;) {
    std::uint16_t half = 0;
    std::memcpy(&half, matrix.data() + std::size_t{2} * at, sizeof half);
    const std::uint32_t word = half;
    std::memcpy(matrix.data() + std::size_t{4} * at, &word, sizeof word);
  }
}
void narrow(WmmaMatrix& matrix, std::uint32_t count) {
  for (std::uint32_t at = 0; at < count; ++at)
    std::memmove(matrix.data() + std::size_t{2} * at, matrix.data() + std::size_t{4} * at, 2);
}

// Of tf32, ptxas makes two products over four k each, the second of which takes the first's result
// as C (recorded).
void multiply_by_halves(MatrixProduct product, const WmmaMatrix& a, const WmmaMatrix& b) {
  constexpr std::uint32_t half_bytes = 16;
  alignas(64) WmmaMatrix half_a;
  alignas(64) WmmaMatrix half_b;
  const auto take_half = [](WmmaMatrix& half, const WmmaMatrix& whole, std::uint32_t rows,
                            std::uint32_t first_byte) {
    for (std::uint32_t row = 0; row < rows; ++row)
      std::memcpy(half.data() + row * half_bytes, whole.data() + row * 2 * half_bytes + first_byte,
                  half_bytes);
  };
  product.k /= 2;
  product.a_at = half_a.data();
  product.b_at = half_b.data();
  for (const std::uint32_t first_byte : {0U, half_bytes}) {
    take_half(half_a, a, product.m, first_byte);
    take_half(half_b, b, product.n, first_byte);
    multiply(product);
  }
}

Step run_product(Warp& warp, const Operation& operation, LaneMask active) {
  require_whole_warp(active, "wmma.mma");
  const auto& detail = static_cast<const ProductDetail&>(*operation.detail);
  alignas(64) WmmaMatrix a;
  alignas(64) WmmaMatrix b;
  alignas(64) WmmaMatrix d;
  collect(detail.of_a, warp, detail.a, a);
  collect(detail.of_b, warp, detail.b, b);
  collect(detail.of_c, warp, detail.c, d);
  const DefinedUnits defined = defined_d(warp, detail);
  const std::uint32_t elements = detail.product.m * detail.product.n;
  const bool is_half = detail.product.accumulator == Accumulator::f16;
  if (is_half) widen(d, elements);
  MatrixProduct product = detail.product;
  product.a_at = a.data();
  product.b_at = b.data();
  product.c_at = product.d_at = d.data();
  if (product.a == MatrixElement::tf32)
    multiply_by_halves(product, a, b);
  else
    multiply(product);
  if (is_half) narrow(d, elements);
  distribute(detail.of_c, warp, detail.d, d);
  set_defined(detail.of_c, warp, detail.d, defined);
  return Step::next;
}

// --- decoding -----------------------------------------------------------------------------------

struct ShapeRow {
  MatrixElement element;
  MatrixShape shape;
};
// (PTX ISA, "Matrix Shape" and "Matrix Data-types" of wmma.)
constexpr ShapeRow shapes[] = {
    {MatrixElement::f16, {16, 16, 16}}, {MatrixElement::f16, {8, 32, 16}},
    {MatrixElement::f16, {32, 8, 16}},  {MatrixElement::bf16, {16, 16, 16}},
    {MatrixElement::bf16, {8, 32, 16}}, {MatrixElement::bf16, {32, 8, 16}},
    {MatrixElement::s8, {16, 16, 16}},  {MatrixElement::s8, {8, 32, 16}},
    {MatrixElement::s8, {32, 8, 16}},   {MatrixElement::u8, {16, 16, 16}},
    {MatrixElement::u8, {8, 32, 16}},   {MatrixElement::u8, {32, 8, 16}},
    {MatrixElement::tf32, {16, 16, 8}}, {MatrixElement::f64, {8, 8, 4}},
    {MatrixElement::s4, {8, 8, 32}},    {MatrixElement::u4, {8, 8, 32}},
    {MatrixElement::b1, {8, 8, 128}},
};

bool are_equal(const MatrixShape& left, const MatrixShape& right) noexcept {
  return left.m == right.m && left.n == right.n && left.k == right.k;
}

Accumulator natural_accumulator(MatrixElement element) noexcept {
  if (element == MatrixElement::f64) return Accumulator::f64;
  const bool is_float = element == MatrixElement::f16 || element == MatrixElement::bf16 ||
                        element == MatrixElement::tf32;
  return is_float ? Accumulator::f32 : Accumulator::s32;
}

bool has_shape(MatrixElement element, const MatrixShape& shape) {
  return std::ranges::any_of(shapes, [&](const ShapeRow& row) {
    return row.element == element && are_equal(row.shape, shape);
  });
}

bool has_shape(Accumulator accumulator, const MatrixShape& shape) {
  return std::ranges::any_of(shapes, [&](const ShapeRow& row) {
    const bool is_its = natural_accumulator(row.element) == accumulator ||
                        (row.element == MatrixElement::f16 && accumulator == Accumulator::f16);
    return is_its && are_equal(row.shape, shape);
  });
}

// True for .row, false for .col.
bool take_layout(Form& form) {
  constexpr std::string_view words[] = {"row", "col"};
  const auto found = form.take_one_of(words);
  if (!found) form.refuse("expected .row or .col");
  return *found == 0;
}

Space take_space(Form& form) {
  if (form.take("global")) return Space::global;
  if (form.take("shared") || form.take("shared::cta")) return Space::shared;
  return Space::generic;
}

ScalarType register_type(const WmmaFragment& fragment) noexcept {
  return fragment.register_bytes == 8 ? ScalarType::b64 : ScalarType::b32;
}

// `which`: 'a', 'b', or 'c' for C and D.
void take_fragment(Form& form, char which, AccessDetail& detail) {
  const bool is_row = take_layout(form);
  const MatrixShape shape = take_matrix_shape(form);
  detail.space = take_space(form);
  const ScalarType type = form.take_type();
  form.finish();
  detail.is_by_rows = is_row == (which != 'b');  // B is kept by its columns
  if (which == 'c') {
    const auto accumulator = find_accumulator(type);
    if (!accumulator || !has_shape(*accumulator, shape))
      form.refuse("this shape is not known for accumulators of this type");
    detail.fragment = fragment_of_c(shape, *accumulator);
    detail.element_bits = bits_of(*accumulator);
    return;
  }
  const auto element = find_matrix_element(type);
  if (!element || !has_shape(*element, shape))
    form.refuse("this shape is not known for operands of this type");
  detail.fragment = fragment_of_ab(shape, *element, which == 'a');
  detail.element_bits = bits_of(*element);
  if (detail.element_bits < 8 && !detail.is_by_rows)
    form.refuse("operands of 4 bits and 1 bit are .row for A and .col for B");
}

void decode_access(Form& form, char which, bool is_load) {
  begin_warp_operation(form);
  auto detail = std::make_shared<AccessDetail>();
  take_fragment(form, which, *detail);
  detail->has_stride = form.operand_count() == 3;
  form.expect_operands(detail->has_stride ? 3 : 2);
  detail->address = add_address_operand(form, form.operand(is_load ? 1 : 0));
  if (detail->has_stride) detail->stride_slot = form.add_source(form.operand(2), ScalarType::u32);
  detail->registers =
      decode_registers(form, form.operand(is_load ? 0 : 1), detail->fragment.register_count,
                       register_type(detail->fragment), is_load);
  form.operation().execute = is_load ? run_load : run_store;
  form.operation().has_side_effect = !is_load;
  form.operation().detail = std::move(detail);
}

// .d.a.b.c, or .d.c, which means that A and B are f16.
MatrixTypes take_types(Form& form) {
  const auto count = std::ranges::count_if(
      form.instruction().modifiers,
      [](const std::string& word) { return find_scalar_type(word).has_value(); });
  if (count != 2) return take_matrix_types(form, true);
  const auto d = find_accumulator(form.take_type());
  const auto c = find_accumulator(form.take_type());
  if (d != c) form.refuse("C of another type than D is not known here");
  if (d != Accumulator::f16 && d != Accumulator::f32) form.refuse("these types are not known here");
  return {.accumulator = *d, .a = MatrixElement::f16, .b = MatrixElement::f16};
}

void take_product_words(Form& form, MatrixProduct& product) {
  product.is_xor = form.take("xor");
  const bool counts = product.is_xor || form.take("and");
  if (counts && !form.take("popc")) form.refuse("expected .popc");
  begin_warp_operation(form);
  take_layout(form);  // of A and of B: fragments are the same in both
  take_layout(form);
  const MatrixShape shape = take_matrix_shape(form);
  const MatrixTypes types = take_types(form);
  product.saturates = form.take("satfinite");
  if (types.a == MatrixElement::f64) form.take("rn");
  form.finish();
  if (!has_shape(types.a, shape) || types.a != types.b)
    form.refuse("this shape is not known for these types");
  if (counts != (types.a == MatrixElement::b1)) form.refuse(".b1 needs .and.popc or .xor.popc");
  if (product.saturates && (types.accumulator != Accumulator::s32 || counts))
    form.refuse(".satfinite is for integers of 4 and 8 bits");
  product.a = types.a;
  product.b = types.b;
  product.accumulator = types.accumulator;
  product.m = shape.m;
  product.n = shape.n;
  product.k = shape.k;
}

void decode_product(Form& form) {
  auto detail = std::make_shared<ProductDetail>();
  MatrixProduct& product = detail->product;
  take_product_words(form, product);
  const MatrixShape shape{product.m, product.n, product.k};
  detail->of_a = fragment_of_ab(shape, product.a, true);
  detail->of_b = fragment_of_ab(shape, product.b, false);
  detail->of_c = fragment_of_c(shape, product.accumulator);
  form.expect_operands(4);
  const auto registers = [&](std::size_t operand, const WmmaFragment& fragment) {
    return decode_registers(form, form.operand(operand), fragment.register_count,
                            register_type(fragment), operand == 0);
  };
  detail->d = registers(0, detail->of_c);
  detail->a = registers(1, detail->of_a);
  detail->b = registers(2, detail->of_b);
  detail->c = registers(3, detail->of_c);
  form.operation().execute = run_product;
  form.operation().detail = std::move(detail);
}

void decode_wmma(DecodeContext& context, const Instruction& instruction, Operation& operation) {
  Form form(context, instruction, operation);
  if (form.take("mma")) return decode_product(form);
  const bool is_load = form.take("load");
  if (!is_load && !form.take("store")) form.refuse("expected .load, .store or .mma");
  if (!is_load) {
    if (!form.take("d")) form.refuse("expected .store.d");
    return decode_access(form, 'c', false);
  }
  for (const char which : {'a', 'b', 'c'})
    if (form.take(std::string_view(&which, 1))) return decode_access(form, which, true);
  form.refuse("expected .load.a, .load.b or .load.c");
}

constexpr DecodeRow wmma_decode_rows[] = {{"wmma", decode_wmma}};

}  // namespace

DecodeRows wmma_rows() { return wmma_decode_rows; }

}  // namespace gemmery::emulator
