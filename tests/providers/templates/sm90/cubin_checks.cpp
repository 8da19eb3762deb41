// SPDX-License-Identifier: Apache-2.0
// The properties of an sm90 design's code, one function per kind.
#include "tests/providers/templates/sm90/cubin_checks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "providers/templates/sm90/design.hpp"
#include "runtime/device_family.hpp"

namespace gemmery::templates {
namespace {

constexpr Target hopper{90, 'a'};
constexpr int multiprocessor_registers = 65536;

class Faults {
 public:
  template <class Found, class Promised>
  void expect_equal(std::string_view what, const Found& found, const Promised& promised) {
    if (!(found == promised)) add(what, fmt::format("{}", promised), fmt::format("{}", found));
  }
  void expect(bool holds, std::string_view what, std::string promised, std::string found) {
    if (!holds) add(what, std::move(promised), std::move(found));
  }
  std::vector<std::string> take() { return std::move(sentences_); }

 private:
  void add(std::string_view what, std::string promised, std::string found) {
    sentences_.push_back(fmt::format("{}: expected {}, got {}", what, promised, found));
  }
  std::vector<std::string> sentences_;
};

const runtime::DeviceFamily& family_of(const Kernel& kernel) {
  return dynamic_cast<const runtime::DeviceFamily&>(kernel.family());
}

// --- resources ----------------------------------------------------------------------------------

// A warp's registers are allocated in units of 256: 8 per thread.
int launched_registers(int registers, int threads) { return (registers + 7) / 8 * 8 * threads; }

// The registers of all warpgroups after setmaxnreg.
int shared_out_registers(const abi::Sm90Design& design, const abi::RegisterBudget& budget) {
  return abi::warpgroup_threads * (budget.producer + abi::consumer_count(design) * budget.consumer);
}

// --- instructions -------------------------------------------------------------------------------

// "HGMMA.64x256x16.F32.BF16": rows, columns, k, type of the sums, type of the operands unless f16;
// "QGMMA.64x128x32.F32.E4M3.E5M2", "IGMMA.64x64x32.S8.U8.SAT".
std::string promised_wgmma(const abi::Sm90Design& design) {
  const abi::DType multiplied = abi::multiplied_a(design);
  const std::string shape = fmt::format("GMMA.64x{}x{}", abi::columns_per_consumer(design),
                                        32 / abi::bytes_of(multiplied));
  const auto integer = [](abi::DType dtype) { return dtype == abi::DType::int8 ? "S8" : "U8"; };
  const auto byte_float = [](abi::DType dtype) {
    return dtype == abi::DType::float8_e4m3fn ? "E4M3" : "E5M2";
  };
  if (abi::is_integer(multiplied))
    return fmt::format("I{}.{}.{}{}", shape, integer(design.a), integer(design.b),
                       design.math == abi::MmaMath::saturate ? ".SAT" : "");
  if (abi::bytes_of(multiplied) == 1)
    return fmt::format("Q{}.F32.{}.{}", shape, byte_float(design.a), byte_float(design.b));
  const std::string_view operands = multiplied == abi::DType::bfloat16  ? ".BF16"
                                    : multiplied == abi::DType::float32 ? ".TF32"
                                                                        : "";
  return fmt::format("H{}.{}{}", shape, design.accumulator == abi::DType::float16 ? "F16" : "F32",
                     operands);
}

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

void check_wgmmas(const abi::Sm90Design& design, std::string_view sass, Faults& faults) {
  const std::string promised = promised_wgmma(design);
  const abi::DType multiplied = abi::multiplied_a(design);
  int count = 0;
  jit::for_each_instruction(sass, [&](const jit::SassInstruction& instruction) {
    if (!contains(instruction.mnemonic, "GMMA.")) return;
    ++count;
    faults.expect_equal("wgmma", instruction.mnemonic, promised);
    faults.expect_equal("wgmma turns A", contains(instruction.operands, "tnspA"),
                        abi::multiplied_major(multiplied, design.a_major) != abi::Major::k);
    // The operands are accumulators, A, the descriptor of B; or one register with both descriptors.
    const std::string_view ahead =
        instruction.operands.substr(0, instruction.operands.find("gdesc"));
    faults.expect_equal("wgmma takes A from registers", contains(ahead, ", R"),
                        design.a_by_registers);
    faults.expect_equal("wgmma turns B", contains(instruction.operands, "tnspB"),
                        abi::multiplied_major(multiplied, design.b_major) != abi::Major::k);
  });
  // The wgmmas of one stage are consecutive, or those of a part with its own scales; the loop over
  // stages may be unrolled, too.
  const int parts = std::max(abi::scale_parts(design), 1);
  const int steps = abi::tile_k(design) * abi::bytes_of(multiplied) / 32 / parts;
  const int per_stage = steps * abi::product_count(design.math) * abi::blocks_per_consumer(design);
  faults.expect(count > 0 && count % per_stage == 0, "wgmmas",
                fmt::format("a multiple of {}", per_stage), std::to_string(count));
}

// The register counts of setmaxnreg, in the order of the text.
struct RegisterRequests {
  std::vector<int> less;
  std::vector<int> more;
};

// The last operand: "0x28" of "0x28" and of "UP0, 0x28".
std::optional<int> last_number(std::string_view operands) {
  const std::size_t start = operands.rfind("0x");
  int value = 0;
  if (start == std::string_view::npos) return std::nullopt;
  const char* const end = operands.data() + operands.size();
  const auto [after, failure] = std::from_chars(operands.data() + start + 2, end, value, 16);
  return failure == std::errc{} && after == end ? std::optional(value) : std::nullopt;
}

RegisterRequests register_requests(std::string_view sass) {
  RegisterRequests requests;
  jit::for_each_instruction(sass, [&](const jit::SassInstruction& instruction) {
    if (!instruction.mnemonic.starts_with("USETMAXREG")) return;
    auto& list = contains(instruction.mnemonic, "DEALLOC") ? requests.less : requests.more;
    list.push_back(last_number(instruction.operands).value_or(-1));
  });
  return requests;
}

void check_register_requests(const abi::Sm90Design& design, std::string_view sass, Faults& faults) {
  const abi::RegisterBudget budget = abi::register_budget(design);
  const RegisterRequests requests = register_requests(sass);
  const auto expected = [](int registers) {
    return registers == 0 ? std::vector<int>{} : std::vector<int>{registers};
  };
  faults.expect(requests.less == expected(budget.producer), "setmaxnreg of the producer",
                std::to_string(budget.producer),
                fmt::format("{}", fmt::join(requests.less, " and ")));
  faults.expect(requests.more == expected(budget.consumer), "setmaxnreg of consumers",
                std::to_string(budget.consumer),
                fmt::format("{}", fmt::join(requests.more, " and ")));
}

void check_copies(const abi::Sm90Design& design, const jit::InstructionMix& mix, Faults& faults) {
  int loads = 0;
  int multicasts = 0;
  for (const auto& [mnemonic, times] : mix) {
    if (!mnemonic.starts_with("UTMALDG")) continue;
    (contains(mnemonic, "MULTICAST") ? multicasts : loads) += times;
  }
  const bool is_shared = abi::sharing_blocks(design) > 1;
  const int operands = design.gathers_rows ? 1 : 2;  // threads copy rows of A by index
  faults.expect(loads + multicasts >= operands, "TMA loads", fmt::format("at least {}", operands),
                std::to_string(loads + multicasts));
  // Blocks of a pair share one operand; each loads the other one.
  faults.expect_equal("has loads of one block", loads > 0, true);
  faults.expect_equal("has loads of two blocks", multicasts > 0, is_shared);
  faults.expect_equal("stores by TMA", jit::count_of(mix, "UTMASTG") > 0,
                      abi::stores_by_tma(design));
  // Each block stores one vector per four registers of each other block's share there, and its own
  // share into its own slot.
  const int vectors = abi::accumulator_registers(design) / 4;
  faults.expect_equal("stores in other blocks", jit::count_of(mix, "STAS"),
                      design.split_k > 1 ? vectors : 0);
}

}  // namespace

jit::CompiledCode compile_sm90(const Kernel& kernel) {
  const auto source = family_of(kernel).emit(kernel, hopper);
  jit::CompileRequest request;
  request.source = source.text;
  request.entry = source.entry;
  request.target = hopper;
  request.extra_options = source.options;
  return jit::compile(request);
}

std::vector<std::string> find_resource_faults(const Kernel& kernel, const jit::CodeUsage& usage) {
  const abi::Sm90Design design = sm90_design(kernel);
  const int threads = abi::thread_count(design);
  const int launched = launched_registers(usage.registers, threads);
  const abi::RegisterBudget budget = abi::register_budget(design);
  const int dynamic_bytes = family_of(kernel).emit(kernel, hopper).max_dynamic_shared_bytes;
  Faults faults;
  faults.expect_equal("bytes spilled", usage.spill_store_bytes + usage.spill_load_bytes, 0);
  faults.expect_equal("bytes of stack", usage.stack_bytes, 0);
  faults.expect_equal("bytes of static shared memory", usage.static_shared_bytes, 0);
  faults.expect_equal("bytes of dynamic shared memory", dynamic_bytes,
                      abi::launch_shared_bytes(design));
  faults.expect(dynamic_bytes <= abi::sm90_shared_limit, "bytes of dynamic shared memory",
                fmt::format("at most {}", abi::sm90_shared_limit), std::to_string(dynamic_bytes));
  faults.expect(launched <= multiprocessor_registers, "registers of a block",
                fmt::format("at most {}", multiprocessor_registers), std::to_string(launched));
  // A request for more registers than the launch has would wait forever.
  const int shared_out = shared_out_registers(design, budget);
  faults.expect(shared_out <= launched, "registers after setmaxnreg",
                fmt::format("at most the {} of the launch", launched), std::to_string(shared_out));
  return faults.take();
}

namespace {

// A default program without C has no FMA of its own.
void check_scaling(const Kernel& kernel, const abi::Sm90Design& design,
                   const jit::InstructionMix& mix, Faults& faults) {
  if (!abi::scales_products(design) || design.has_c || kernel.epilogue() != default_epilogue)
    return;
  faults.expect_equal("FMAs that scale and add products", jit::count_of(mix, "FFMA"),
                      abi::accumulators_per_thread(design));
}

}  // namespace

std::vector<std::string> find_instruction_faults(const Kernel& kernel, std::string_view sass) {
  const abi::Sm90Design design = sm90_design(kernel);
  const jit::InstructionMix mix = jit::count_instructions(sass);
  Faults faults;
  check_wgmmas(design, sass, faults);
  check_register_requests(design, sass, faults);
  check_copies(design, mix, faults);
  check_scaling(kernel, design, mix, faults);
  faults.expect_equal("accesses to local memory",
                      jit::count_of(mix, "LDL") + jit::count_of(mix, "STL"), 0);
  return faults.take();
}

}  // namespace gemmery::templates
