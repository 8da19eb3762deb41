// SPDX-License-Identifier: Apache-2.0
// Writes values field by field.
#include "cli/records.hpp"

namespace gemmery::cli {
namespace {

Record rule_record(const OperandRule& rule) {
  return {{"dtype", name(rule.dtype)},
          {"layout", name(rule.layout)},
          {"alignment_bytes", rule.alignment}};
}

Record rules_record(const OperandRules& rules) {
  Record record = {{"A", rule_record(rules.a)}, {"B", rule_record(rules.b)}};
  if (rules.has_c) record["C"] = rule_record(rules.c);
  record["out"] = rule_record(rules.out);
  return record;
}

Record names(const std::vector<Target>& targets) {
  Record list = Record::array();
  for (const Target target : targets) list.push_back(to_string(target));
  return list;
}

Record design_record(const std::vector<DesignField>& fields) {
  Record record = Record::object();
  for (const DesignField& field : fields) record[field.name] = field.value;
  return record;
}

}  // namespace

Record to_record(const Metadata& metadata) {
  return {{"kernel_name", metadata.kernel_name},
          {"kernel_class", metadata.kernel_class},
          {"provider", metadata.provider},
          {"supported_targets", names(metadata.supported_targets)},
          {"operands", rules_record(metadata.operands)},
          {"accumulator_type", name(metadata.operands.accumulator)},
          {"math", name(metadata.operands.math)},
          {"epilogue", metadata.epilogue},
          {"epilogue_compute_type", name(metadata.epilogue_compute_type)},
          {"design", design_record(metadata.design)},
          {"deterministic", metadata.deterministic}};
}

void add_device(Record& record, const ChosenDevice& device) {
  record["device"] = device.label;
  record["device_name"] = device.info.name;
}

void add_measurement(Record& record, const Measurement& measurement) {
  record["median_us"] = measurement.median_us;
  record["quartile_low_us"] = measurement.quartile_low_us;
  record["quartile_high_us"] = measurement.quartile_high_us;
  record["minimum_us"] = measurement.minimum_us;
  record["maximum_us"] = measurement.maximum_us;
  record["samples"] = measurement.samples;
  record["runs_per_sample"] = measurement.runs_per_sample;
  record["buffer_sets"] = measurement.buffer_sets;
  record["flops_per_second"] = measurement.flops_per_second;
  record["arithmetic_us"] = measurement.arithmetic_us;
  record["memory_us"] = measurement.memory_us;
  record["roofline_us"] = measurement.roofline_us;
  record["roofline_share"] = measurement.roofline_share;
}

void add_verification(Record& record, const VerifyReport& report) {
  record["passed"] = report.passed;
  record["method"] = report.method;
  record["seed"] = report.seed;
  record["elements"] = report.elements;
  record["mismatches"] = report.mismatches;
  record["without_bound"] = report.without_bound;
  record["open"] = report.without_bound;  // its former name, until the next version
  record["worst_ratio"] = report.worst_ratio;
  record["worst_error"] = report.worst_error;
  record["guard_violations"] = report.guard_violations;
  record["first_failure"] = report.first_failure;
}

}  // namespace gemmery::cli
