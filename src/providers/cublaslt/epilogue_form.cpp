// SPDX-License-Identifier: Apache-2.0
// Reads a program from its result towards the accumulator: an activation, then a sum of terms.
//
// `relu` is taken of 16-bit operands: for NaN cuBLASLt's gives NaN there, and of float32 NaN or 0,
// as the algorithm has it (13.1 on an H200, 96 products; 0 in NVIDIA's forum, topic 329783). `gelu`
// is not: cuBLASLt computes gelu_tanh, and of -0.0005 so that it is off by 1 %.
#include "providers/cublaslt/epilogue_form.hpp"

#include <string_view>

#include "epilogue/graph.hpp"
#include "kernel/epilogue.hpp"

namespace gemmery::cublaslt {
namespace {

using epilogue::Graph;
using epilogue::Node;
using epilogue::NodeId;
using epilogue::NodeKind;
using epilogue::Op;

class FormReader {
 public:
  FormReader(const GemmProblem& problem, EpilogueForm& form)
      : problem_(problem),
        rules_(rules_of(problem.epilogue)),
        graph_(rules_.program.graph()),
        form_(form) {}

  Status read() {
    form_.is_default = false;
    NodeId sum = graph_.outputs.front().value;
    if (Status status = read_activation(sum); !status) return status;
    if (graph_.outputs.size() > 1)
      return refuse(graph_.outputs[1].value, "cuBLASLt stores nothing beside D");
    if (Status status = read_term(sum, {}); !status) return status;
    if (has_accumulator_) return Status::success();
    return refuse(sum, "cuBLASLt's epilogues begin with the accumulator");
  }

 private:
  Status refuse(NodeId node, std::string_view why) const {
    return kernel::refuse_node(problem_.epilogue, node, why);
  }
  const Node& node(NodeId id) const { return graph_.nodes[id]; }
  bool is_operation(NodeId id, Op op) const {
    return node(id).kind == NodeKind::operation && node(id).op == op;
  }
  bool is_zero(NodeId id) const {
    return node(id).kind == NodeKind::constant && node(id).constant == 0;
  }

  // Replaces the node by the operand of its activation.
  Status read_activation(NodeId& id) {
    if (is_operation(id, Op::gelu) || is_operation(id, Op::gelu_tanh))
      return refuse(id, "cuBLASLt's GELU is further from it than the bound allows");
    if (!is_operation(id, Op::relu)) return Status::success();
    if (bit_width(problem_.a.dtype) != 16)
      return refuse(id, "cuBLASLt's relu gives NaN or 0 for NaN, except with operands of 16 bits");
    form_.activation = Activation::relu;
    id = node(id).operands[0];
    return Status::success();
  }

  Status read_term(NodeId id, Factor factor) {
    switch (node(id).kind) {
      case NodeKind::accumulator:
        return add_accumulator(id, factor);
      case NodeKind::input:
        return add_input(id, factor);
      case NodeKind::operation:
        return read_operation(id, factor);
      default:
        return refuse(id, "cuBLASLt adds a matrix C and a bias to the accumulator, nothing else");
    }
  }

  Status read_operation(NodeId id, Factor factor) {
    const auto& [x, y, z] = node(id).operands;
    switch (node(id).op) {
      case Op::add:
        return read_both(x, factor, y, factor);
      case Op::subtract:
        return read_both(x, factor, y, {-factor.constant, factor.number});
      case Op::negate:
        return read_term(x, {-factor.constant, factor.number});
      case Op::multiply:
        return read_product(id, factor);
      case Op::where:
        return read_guarded(id, factor);
      case Op::fma: {
        const Status status = read_product(id, factor);
        return status ? read_term(z, factor) : status;
      }
      default:
        return refuse(id, "cuBLASLt computes alpha * accum + beta * C + bias, and relu of it");
    }
  }

  Status read_both(NodeId x, Factor of_x, NodeId y, Factor of_y) {
    const Status status = read_term(x, of_x);
    return status ? read_term(y, of_y) : status;
  }

  // where(number == 0, 0, number * value)
  Status read_guarded(NodeId id, Factor factor) {
    const auto& [condition, zero, product] = node(id).operands;
    const bool is_guard = is_zero(zero) && is_operation(condition, Op::equal) &&
                          is_operation(product, Op::multiply) && factor.number == no_operand;
    if (is_guard) {
      const auto& [x, y, unused] = node(condition).operands;
      const NodeId number = is_zero(x) ? y : x;
      const auto& [a, b, none] = node(product).operands;
      if (is_number(number) && (is_zero(x) || is_zero(y)) && (a == number || b == number)) {
        factor.number = node(number).input;
        factor.is_guarded = true;
        return read_term(a == number ? b : a, factor);
      }
    }
    return refuse(id, "cuBLASLt computes where(x > 0, x, 0) of its whole sum, no other choice");
  }

  // One of the two operands of a product is a factor.
  Status read_product(NodeId id, Factor factor) {
    const NodeId x = node(id).operands[0];
    const NodeId y = node(id).operands[1];
    Factor by_x = factor;
    if (multiply(by_x, x)) return read_term(y, by_x);
    if (multiply(factor, y)) return read_term(x, factor);
    if (ends_in_accumulator(y) && take_scale(x)) return read_term(y, factor);
    if (ends_in_accumulator(x) && take_scale(y)) return read_term(x, factor);
    return refuse(id,
                  "cuBLASLt multiplies by numbers of the host, one for each of accumulator and C, "
                  "and the accumulator by float32 scales");
  }

  bool ends_in_accumulator(NodeId id) const {
    if (node(id).kind == NodeKind::accumulator) return true;
    return is_operation(id, Op::multiply) &&
           (ends_in_accumulator(node(id).operands[0]) || ends_in_accumulator(node(id).operands[1]));
  }

  bool take_scale(NodeId id) {
    if (node(id).kind != NodeKind::input || is_number(id)) return false;
    const EpilogueOperandRule& rule = rules_.operands[node(id).input];
    if (rule.dtype != DType::float32 || rule.varies_l || (rule.varies_m && rule.varies_n))
      return false;
    Scales& scales = form_.scales;
    int& place = rule.varies_m                       ? scales.of_rows
                 : rule.varies_n                     ? scales.of_columns
                 : scales.first_of_all == no_operand ? scales.first_of_all
                                                     : scales.second_of_all;
    if (place != no_operand) return false;
    place = node(id).input;
    return true;
  }

  bool multiply(Factor& factor, NodeId id) const {
    if (node(id).kind == NodeKind::constant) {
      factor.constant *= node(id).constant;
      return true;
    }
    if (!is_number(id) || factor.number != no_operand) return false;
    factor.number = node(id).input;
    return true;
  }

  // Operands of a program begin with the inputs of its graph.
  bool is_number(NodeId id) const {
    return node(id).kind == NodeKind::input && rules_.operands[node(id).input].is_number;
  }

  Status add_accumulator(NodeId id, Factor factor) {
    if (has_accumulator_) return refuse(id, "cuBLASLt adds the accumulator once");
    has_accumulator_ = true;
    form_.alpha = factor;
    return Status::success();
  }

  Status add_input(NodeId id, Factor factor) {
    const EpilogueOperandRule& rule = rules_.operands[node(id).input];
    if (rule.is_number) return refuse(id, "cuBLASLt adds no number");
    const bool is_matrix = rule.varies_m && rule.varies_n;
    const bool is_vector = rule.varies_m != rule.varies_n;
    if (is_matrix && form_.c == no_operand) {
      form_.c = node(id).input;
      form_.beta = factor;
      return Status::success();
    }
    const bool is_one = factor.constant == 1 && factor.number == no_operand;
    if (is_vector && is_one && form_.bias == no_operand) {
      form_.bias = node(id).input;
      return Status::success();
    }
    return refuse(id, "cuBLASLt adds one matrix and one vector, which has no factor");
  }

  const GemmProblem& problem_;
  const EpilogueRules& rules_;
  const Graph& graph_;
  EpilogueForm& form_;
  bool has_accumulator_ = false;
};

}  // namespace

Status match_epilogue(const GemmProblem& problem, EpilogueForm& form) {
  form = {};
  if (problem.epilogue == default_epilogue) return Status::success();
  return FormReader(problem, form).read();
}

}  // namespace gemmery::cublaslt
