// SPDX-License-Identifier: Apache-2.0
// Matrix instructions of one warp: ldmatrix and stmatrix between shared memory and fragments,
// movmatrix, and mma.sync.
#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "emulator/instruction/matrix/matrix_form.hpp"
#include "emulator/instruction/matrix/matrix_fragment.hpp"
#include "emulator/instruction/matrix/matrix_registers.hpp"
#include "emulator/instruction/matrix/matrix_sparse.hpp"
#include "emulator/instruction/memory/memory_access.hpp"
#include "emulator/machine/warp.hpp"

namespace gemmery::emulator {
namespace {

constexpr std::uint32_t small_rows = 8;  // of the 8x8 matrices of 16-bit elements
constexpr std::uint32_t small_row_bytes = 16;
constexpr std::uint32_t most_small = 4;

// --- 8x8 matrices of 16 bits --------------------------------------------------------------------

using SmallMatrix = std::array<std::array<std::uint16_t, 8>, small_rows>;
// One bit per byte of each row.
using WrittenRows = std::array<std::uint32_t, small_rows>;

// The two elements that a lane holds: of a row or, if transposed, of a column.
struct Pair {
  std::uint32_t row[2], column[2];
};
constexpr Pair pair_of(std::uint32_t lane, bool is_transposed) noexcept {
  const std::uint32_t major = lane / 4, minor = 2 * (lane % 4);
  if (is_transposed) return {{minor, minor + 1}, {major, major}};
  return {{major, major}, {minor, minor + 1}};
}

void to_lanes(const SmallMatrix& matrix, bool is_transposed, std::uint32_t* lanes) noexcept {
  for (std::uint32_t lane = 0; lane < lanes_per_warp; ++lane) {
    const Pair at = pair_of(lane, is_transposed);
    lanes[lane] = matrix[at.row[0]][at.column[0]] | std::uint32_t{matrix[at.row[1]][at.column[1]]}
                                                        << 16;
  }
}
void from_lanes(const std::uint32_t* lanes, bool is_transposed, SmallMatrix& matrix) noexcept {
  for (std::uint32_t lane = 0; lane < lanes_per_warp; ++lane) {
    const Pair at = pair_of(lane, is_transposed);
    matrix[at.row[0]][at.column[0]] = static_cast<std::uint16_t>(lanes[lane]);
    matrix[at.row[1]][at.column[1]] = static_cast<std::uint16_t>(lanes[lane] >> 16);
  }
}

constexpr std::uint32_t bytes_of_element(std::uint32_t column) noexcept { return 3u << 2 * column; }

LaneMask defined_by(const WrittenRows& written, bool is_transposed) noexcept {
  LaneMask defined = 0;
  for (std::uint32_t lane = 0; lane < lanes_per_warp; ++lane) {
    const Pair at = pair_of(lane, is_transposed);
    bool is_defined = true;
    for (int half = 0; half < 2; ++half) {
      const std::uint32_t bytes = bytes_of_element(at.column[half]);
      is_defined &= (written[at.row[half]] & bytes) == bytes;
    }
    defined |= static_cast<LaneMask>(is_defined) << lane;
  }
  return defined;
}
WrittenRows written_by(LaneMask defined, bool is_transposed) noexcept {
  WrittenRows written{};
  for (std::uint32_t lane = 0; lane < lanes_per_warp; ++lane) {
    if ((defined >> lane & 1) == 0) continue;
    const Pair at = pair_of(lane, is_transposed);
    for (int half = 0; half < 2; ++half) written[at.row[half]] |= bytes_of_element(at.column[half]);
  }
  return written;
}

// --- ldmatrix, stmatrix -------------------------------------------------------------------------

struct SmallDetail final : OperationDetail {
  Space space = Space::generic;
  AddressOperand address;
  std::vector<OperandSlot> registers;
  bool is_transposed = false;
};

const SmallDetail& small_detail(const Operation& operation) {
  return static_cast<const SmallDetail&>(*operation.detail);
}

// The addresses of the rows: lane 8 i + r has that of row r of matrix i.
Route find_rows(Warp& warp, const Operation& operation, const SmallDetail& detail) {
  const auto rows = static_cast<std::uint32_t>(small_rows * detail.registers.size());
  LaneMask lanes = rows == lanes_per_warp ? all_lanes : (LaneMask{1} << rows) - 1;
  LaneAddresses addresses;
  find_addresses(warp, operation, detail.address, lanes, addresses);
  Route route;
  take_route(warp, detail.space, addresses, lanes, route);
  if (lanes != 0 || route.space != Space::shared)
    throw Fault(FaultKind::illegal_instruction,
                "the rows of a matrix do not all lie in one CTA's shared memory; give addresses "
                "of shared memory");
  return route;
}

Step run_load_matrix(Warp& warp, const Operation& operation, LaneMask active) {
  require_whole_warp(active, "ldmatrix");
  const SmallDetail& detail = small_detail(operation);
  const Route route = find_rows(warp, operation, detail);
  const LaneAccess access{
      .active = route.lanes, .addresses = route.addresses.data(), .bytes = small_row_bytes};
  std::array<SmallMatrix, most_small> matrices;
  std::array<WrittenRows, most_small> written;
  const LaneMask complete = route.cta->shared.load(
      access, warp.accessor(operation), matrices.data(), small_row_bytes, written.data()->data());
  for (std::size_t index = 0; index < detail.registers.size(); ++index) {
    const OperandSlot& slot = detail.registers[index];
    to_lanes(matrices[index], detail.is_transposed, lanes_to<std::uint32_t>(warp, slot));
    const LaneMask defined =
        complete == route.lanes ? all_lanes : defined_by(written[index], detail.is_transposed);
    warp.set_defined(slot, all_lanes, defined);
  }
  return Step::next;
}

Step run_store_matrix(Warp& warp, const Operation& operation, LaneMask active) {
  require_whole_warp(active, "stmatrix");
  const SmallDetail& detail = small_detail(operation);
  const Route route = find_rows(warp, operation, detail);
  const LaneAccess access{
      .active = route.lanes, .addresses = route.addresses.data(), .bytes = small_row_bytes};
  std::array<SmallMatrix, most_small> matrices;
  std::array<WrittenRows, most_small> written{};
  LaneMask complete = 0;
  for (std::size_t index = 0; index < detail.registers.size(); ++index) {
    const OperandSlot& slot = detail.registers[index];
    from_lanes(lanes_at<std::uint32_t>(warp, slot), detail.is_transposed, matrices[index]);
    written[index] = written_by(warp.defined_lanes(slot), detail.is_transposed);
    for (std::uint32_t row = 0; row < small_rows; ++row)
      if (written[index][row] == 0xffff)
        complete |= LaneMask{1} << (small_rows * static_cast<std::uint32_t>(index) + row);
  }
  route.cta->shared.store(access, warp.accessor(operation), matrices.data(), small_row_bytes,
                          complete, written.data()->data());
  warp.unfenced_lanes |= route.lanes;
  return Step::next;
}

Step run_move_matrix(Warp& warp, const Operation& operation, LaneMask active) {
  require_whole_warp(active, "movmatrix");
  SmallMatrix matrix;
  from_lanes(warp.source<std::uint32_t>(operation, 1), false, matrix);
  const WrittenRows written = written_by(warp.defined_lanes(operation.slot[1]), false);
  to_lanes(matrix, true, warp.destination<std::uint32_t>(operation, 0));
  warp.set_defined(operation.slot[0], all_lanes, defined_by(written, true));
  return Step::next;
}

void require_small_matrix(Form& form) {
  if (!form.take("m8n8") || !form.take("b16"))
    form.refuse("only .m8n8 with .b16 is emulated; sm_90 has no other");
}

void decode_small(Form& form, bool is_load) {
  begin_warp_operation(form);
  require_small_matrix(form);
  constexpr std::string_view counts[] = {"x1", "x2", "x4"};
  const auto count = form.take_one_of(counts);
  if (!count) form.refuse(".x1, .x2 or .x4 is missing");
  auto detail = std::make_shared<SmallDetail>();
  detail->is_transposed = form.take("trans");
  if (form.take("shared") || form.take("shared::cta")) detail->space = Space::shared;
  form.finish();
  form.expect_operands(2);
  detail->address = add_address_operand(form, form.operand(is_load ? 1 : 0));
  detail->registers = decode_registers(form, form.operand(is_load ? 0 : 1),
                                       std::size_t{1} << *count, ScalarType::b32, is_load);
  form.operation().execute = is_load ? run_load_matrix : run_store_matrix;
  form.operation().has_side_effect = !is_load;
  form.operation().detail = std::move(detail);
}

void decode_load_matrix(DecodeContext& context, const Instruction& instruction,
                        Operation& operation) {
  Form form(context, instruction, operation);
  decode_small(form, true);
}
void decode_store_matrix(DecodeContext& context, const Instruction& instruction,
                         Operation& operation) {
  Form form(context, instruction, operation);
  decode_small(form, false);
}

void decode_move_matrix(DecodeContext& context, const Instruction& instruction,
                        Operation& operation) {
  Form form(context, instruction, operation);
  begin_warp_operation(form);
  require_small_matrix(form);
  if (!form.take("trans")) form.refuse("movmatrix needs .trans");
  form.assign(run_move_matrix, ScalarType::b32, {ScalarType::b32});
}

// --- mma ----------------------------------------------------------------------------------------

constexpr std::uint32_t mma_columns = 8;
constexpr std::uint32_t most_mma_rows = 16;

struct MmaDetail final : OperationDetail {
  MatrixProduct product;  // each execution sets its pointers
  std::vector<OperandSlot> a, b, c, d;
  std::optional<SparseRows> sparse;  // of mma.sp: A has half of k
  bool is_ordered = false;           // .sp::ordered_metadata
  OperandSlot metadata;
};

template <class Word>
void collect_a(const Warp& warp, const MmaDetail& detail, std::uint32_t row_words, Word* to) {
  for (std::uint32_t index = 0; index < detail.a.size(); ++index) {
    const Word* const lanes = lanes_at<Word>(warp, detail.a[index]);
    copy_fragment(lanes, place_in_a(detail.product.m, index, 0), row_words, to);
  }
}
template <class Word>
void collect_b(const Warp& warp, const MmaDetail& detail, std::uint32_t row_words, Word* to) {
  for (std::uint32_t index = 0; index < detail.b.size(); ++index) {
    const Word* const lanes = lanes_at<Word>(warp, detail.b[index]);
    copy_fragment(lanes, place_in_b(index, 0), row_words, to);
  }
}

// Calls visit(register, lane, place); a place counts rows of 8 columns or, if packed, of 4 pairs.
template <class Visit>
void for_each_c(const MmaDetail& detail, Visit visit) {
  const std::uint32_t per_row = detail.product.accumulator == Accumulator::f16 ? 1 : 2;
  for (std::uint32_t index = 0; index < detail.d.size(); ++index) {
    const FragmentPlace first = place_in_c(per_row, detail.product.m / 8, index, 0);
    for (std::uint32_t lane = 0; lane < lanes_per_warp; ++lane)
      visit(index, lane, FragmentPlace{first.row + lane / 4, first.word + per_row * (lane % 4)});
  }
}

template <class Word>
void collect_c(const Warp& warp, const MmaDetail& detail, Word* to) {
  const bool is_packed = detail.product.accumulator == Accumulator::f16;
  for_each_c(detail, [&](std::uint32_t index, std::uint32_t lane, FragmentPlace place) {
    const Word value = lanes_at<Word>(warp, detail.c[index])[lane];
    Word* const row = to + place.row * mma_columns;
    if (is_packed) {
      row[2 * place.word] = value & 0xffff;
      row[2 * place.word + 1] = value >> 16;
    } else {
      row[place.word] = value;
    }
  });
}
template <class Word>
void distribute_d(Warp& warp, const MmaDetail& detail, const Word* from) {
  const bool is_packed = detail.product.accumulator == Accumulator::f16;
  for_each_c(detail, [&](std::uint32_t index, std::uint32_t lane, FragmentPlace place) {
    const Word* const row = from + place.row * mma_columns;
    lanes_to<Word>(warp, detail.d[index])[lane] =
        is_packed ? row[2 * place.word] | row[2 * place.word + 1] << 16 : row[place.word];
  });
}

bool are_defined(const Warp& warp, const std::vector<OperandSlot>& slots) noexcept {
  return std::ranges::all_of(
      slots, [&](const OperandSlot& slot) { return warp.defined_lanes(slot) == all_lanes; });
}

// Bit r is set if all of row r of the fragment is defined.
template <class PlaceOf>
std::uint32_t defined_rows(const Warp& warp, const std::vector<OperandSlot>& slots,
                           PlaceOf place_of) {
  std::uint32_t rows = ~0u;
  for (std::uint32_t index = 0; index < slots.size(); ++index)
    for (std::uint32_t lane = 0; lane < lanes_per_warp; ++lane)
      if ((warp.defined_lanes(slots[index]) >> lane & 1) == 0)
        rows &= ~(1u << place_of(index, lane).row);
  return rows;
}

// An element of D is defined if its row of A, its column of B and its element of C are.
std::vector<LaneMask> defined_d(const Warp& warp, const MmaDetail& detail) {
  std::vector<LaneMask> defined(detail.d.size(), all_lanes);
  if (are_defined(warp, detail.a) && are_defined(warp, detail.b) && are_defined(warp, detail.c))
    return defined;
  const std::uint32_t rows =
      defined_rows(warp, detail.a, [&](std::uint32_t index, std::uint32_t lane) {
        return place_in_a(detail.product.m, index, lane);
      });
  const std::uint32_t columns = defined_rows(warp, detail.b, place_in_b);
  const bool is_packed = detail.product.accumulator == Accumulator::f16;
  for_each_c(detail, [&](std::uint32_t index, std::uint32_t lane, FragmentPlace place) {
    const std::uint32_t wanted = is_packed ? 3u << 2 * place.word : 1u << place.word;
    const bool is_defined = (rows >> place.row & 1) != 0 && (columns & wanted) == wanted &&
                            (warp.defined_lanes(detail.c[index]) >> lane & 1) != 0;
    if (!is_defined) defined[index] &= ~(LaneMask{1} << lane);
  });
  return defined;
}

// Words of A as mma multiplies it.
constexpr std::uint32_t most_row_words = 16;
constexpr std::uint32_t most_a_words = most_mma_rows * most_row_words;

// What is not stored of A is not multiplied: an infinity of B beside it leaves no NaN. So each row
// is a product of its own, of what is stored and B's elements beside it.
void multiply_sparse(const Warp& warp, const MmaDetail& detail, const MatrixProduct& whole) {
  warp.require_defined(detail.metadata, detail.sparse->lanes(), "which elements of A are stored");
  const auto* const metadata = lanes_at<std::uint32_t>(warp, detail.metadata);
  alignas(64) std::array<std::uint32_t, mma_columns * most_row_words / 2> b;
  MatrixProduct row = whole;
  row.m = 1;
  row.k = whole.k / 2;
  row.b_at = b.data();
  const std::size_t row_words = row.k * bits_of(whole.a) / 32;
  for (std::uint32_t at = 0; at < SparseRows::rows; ++at) {
    if (!detail.sparse->select(metadata, detail.is_ordered, at, mma_columns, whole.b_at, b.data()))
      throw Fault(FaultKind::illegal_instruction,
                  std::string("the metadata of mma.sp has a chunk whose result is undefined: ") +
                      (whole.a == MatrixElement::tf32
                           ? "of tf32 only 0b0100 and 0b1110 are defined"
                           : "two indexes are the same or, with .ordered_metadata, descend"));
    row.a_at = static_cast<const std::uint32_t*>(whole.a_at) + at * row_words;
    row.c_at = row.d_at = static_cast<std::uint32_t*>(whole.d_at) + at * mma_columns;
    multiply(row);
  }
}

template <class Word>
Step run_mma(Warp& warp, const Operation& operation, LaneMask active) {
  require_whole_warp(active, "mma");
  const auto& detail = static_cast<const MmaDetail&>(*operation.detail);
  constexpr std::uint32_t word_bits = 8 * sizeof(Word);
  const std::uint32_t row_words = detail.product.k * bits_of(detail.product.a) / word_bits;
  alignas(64) std::array<Word, most_a_words> a;
  alignas(64) std::array<Word, mma_columns * most_row_words> b;
  alignas(64) std::array<Word, most_mma_rows * mma_columns> d;
  collect_a(warp, detail, detail.sparse ? row_words / 2 : row_words, a.data());
  collect_b(warp, detail, row_words, b.data());
  collect_c(warp, detail, d.data());
  const std::vector<LaneMask> defined = defined_d(warp, detail);
  MatrixProduct product = detail.product;
  product.a_at = a.data();
  product.b_at = b.data();
  product.c_at = product.d_at = d.data();
  if (detail.sparse)
    multiply_sparse(warp, detail, product);
  else
    multiply(product);
  distribute_d(warp, detail, d.data());
  for (std::size_t index = 0; index < defined.size(); ++index)
    warp.set_defined(detail.d[index], all_lanes, defined[index]);
  return Step::next;
}

struct MmaShapeRow {
  std::uint32_t element_bits;
  MatrixShape shape;
};
// (PTX ISA, mma: shapes by type.) m8n8k4 of f16 belongs to sm_70 and is not emulated.
constexpr MmaShapeRow mma_shapes[] = {
    {16, {16, 8, 8}}, {16, {16, 8, 16}}, {32, {16, 8, 4}},  {32, {16, 8, 8}}, {8, {8, 8, 16}},
    {8, {16, 8, 16}}, {8, {16, 8, 32}},  {4, {8, 8, 32}},   {4, {16, 8, 32}}, {4, {16, 8, 64}},
    {1, {8, 8, 128}}, {1, {16, 8, 128}}, {1, {16, 8, 256}}, {64, {8, 8, 4}},  {64, {16, 8, 4}},
    {64, {16, 8, 8}}, {64, {16, 8, 16}},
};

constexpr MmaShapeRow sparse_mma_shapes[] = {
    {16, {16, 8, 16}}, {16, {16, 8, 32}}, {32, {16, 8, 8}}, {32, {16, 8, 16}},
    {8, {16, 8, 32}},  {8, {16, 8, 64}},  {4, {16, 8, 64}}, {4, {16, 8, 128}},
};

bool has_mma_shape(std::span<const MmaShapeRow> rows, const MatrixShape& shape,
                   MatrixElement element) {
  return std::ranges::any_of(rows, [&](const MmaShapeRow& row) {
    return row.element_bits == bits_of(element) && row.shape.m == shape.m &&
           row.shape.n == shape.n && row.shape.k == shape.k;
  });
}

bool is_mma_shape(const MatrixShape& shape, MatrixElement element) {
  return has_mma_shape(mma_shapes, shape, element) && !(shape.m == 8 && is_narrow_float(element));
}

bool is_sparse_mma_shape(const MatrixShape& shape, MatrixElement element) {
  return has_mma_shape(sparse_mma_shapes, shape, element) &&
         !(shape.k == 32 && is_narrow_float(element));
}

void take_mma_words(Form& form, MmaDetail& detail, bool is_sparse) {
  begin_warp_operation(form);
  const MatrixShape shape = take_matrix_shape(form);
  if (!form.take("row") || !form.take("col")) form.refuse("only .row.col is emulated");
  MatrixProduct& product = detail.product;
  product.saturates = form.take("satfinite");
  const MatrixTypes types = take_matrix_types(form, true);
  if (types.a == MatrixElement::b1) {
    product.is_xor = form.take("xor");
    if ((!product.is_xor && !form.take("and")) || !form.take("popc"))
      form.refuse(".b1 needs .and.popc or .xor.popc");
  }
  form.finish();
  if (!(is_sparse ? is_sparse_mma_shape : is_mma_shape)(shape, types.a))
    form.refuse("this shape is not emulated for these types");
  if (is_sparse && is_narrow_float(types.a) && types.accumulator == Accumulator::f16)
    form.refuse("before sm_120, mma.sp of 8-bit floats accumulates in f32");
  if (product.saturates && (types.accumulator != Accumulator::s32 || types.a == MatrixElement::b1))
    form.refuse(".satfinite is for integers of 4 and 8 bits");
  product.a = types.a;
  product.b = types.b;
  product.accumulator = types.accumulator;
  product.m = shape.m;
  product.n = shape.n;
  product.k = shape.k;
  product.unpacks_to_f16 = is_narrow_float(types.a);
}

// Operands 4 and 5 of mma.sp.
void decode_metadata(Form& form, MmaDetail& detail) {
  const Operand& selector = form.operand(5);
  const MatrixProduct& product = detail.product;
  if (selector.kind != Operand::Kind::immediate)
    form.refuse("the sparsity selector must be an immediate");
  detail.sparse.emplace(product.a, product.k, static_cast<std::uint32_t>(selector.bits));
  if (selector.bits >= detail.sparse->selectors())
    form.refuse("these types and this shape have the sparsity selectors 0 to " +
                std::to_string(detail.sparse->selectors() - 1));
  detail.metadata = decode_registers(form, form.operand(4), 1, ScalarType::b32, false)[0];
}

void decode_mma(DecodeContext& context, const Instruction& instruction, Operation& operation) {
  Form form(context, instruction, operation);
  auto detail = std::make_shared<MmaDetail>();
  detail->is_ordered = form.take("sp::ordered_metadata");
  const bool is_sparse = detail->is_ordered || form.take("sp");
  take_mma_words(form, *detail, is_sparse);
  form.expect_operands(is_sparse ? 6 : 4);
  const MatrixProduct& product = detail->product;
  const bool is_f64 = product.a == MatrixElement::f64;
  const ScalarType word = is_f64 ? ScalarType::b64 : ScalarType::b32;
  const std::uint32_t lane_bits = lanes_per_warp * (is_f64 ? 64 : 32);
  const auto registers = [lane_bits](std::uint32_t elements, std::uint32_t bits) {
    return std::size_t{elements * bits / lane_bits};
  };
  const std::size_t of_c =
      registers(product.m * product.n, product.accumulator == Accumulator::f16 ? 16
                                       : is_f64                                ? 64
                                                                               : 32);
  const std::uint32_t bits = bits_of(product.a);
  detail->d = decode_registers(form, form.operand(0), of_c, word, true);
  const std::uint32_t k_of_a = is_sparse ? product.k / 2 : product.k;
  detail->a =
      decode_registers(form, form.operand(1), registers(product.m * k_of_a, bits), word, false);
  detail->b =
      decode_registers(form, form.operand(2), registers(product.n * product.k, bits), word, false);
  detail->c = decode_registers(form, form.operand(3), of_c, word, false);
  if (is_sparse) decode_metadata(form, *detail);
  operation.execute = is_f64 ? run_mma<std::uint64_t> : run_mma<std::uint32_t>;
  operation.detail = std::move(detail);
}

constexpr DecodeRow matrix_decode_rows[] = {
    {"ldmatrix", decode_load_matrix},
    {"stmatrix", decode_store_matrix},
    {"movmatrix", decode_move_matrix},
    {"mma", decode_mma},
};

}  // namespace

DecodeRows matrix_rows() { return matrix_decode_rows; }

}  // namespace gemmery::emulator
