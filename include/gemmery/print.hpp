// SPDX-License-Identifier: Apache-2.0
// `stream << value` for what has a text: values with `to_string` (devices, tensors, problems,
// arguments, metadata, measurements, reports), enumerators and kernels, by their names.
#pragma once

#include <concepts>
#include <ostream>
#include <string>
#include <string_view>
#include <type_traits>

#include <gemmery/discovery.hpp>
#include <gemmery/doctor.hpp>
#include <gemmery/emulate.hpp>
#include <gemmery/kernel.hpp>
#include <gemmery/measure.hpp>
#include <gemmery/status.hpp>
#include <gemmery/tensor.hpp>
#include <gemmery/verify.hpp>

namespace gemmery {

// A type of this library with a `to_string` of its own.
template <class T>
concept HasText = std::is_class_v<T> && requires(const T& value) {
  { to_string(value) } -> std::same_as<std::string>;
};

// An enumeration of this library with a `name` for each enumerator.
template <class T>
concept HasName = std::is_enum_v<T> && requires(T value) {
  { name(value) } -> std::same_as<std::string_view>;
};

// The text of `to_string`: "cuda:1", "sm_90a", "float32 (2, 3) strides (3, 1) on cpu".
template <HasText Value>
std::ostream& operator<<(std::ostream& out, const Value& value) {
  return out << to_string(value);
}

// The enumerator's name in problem lines and reports: "bfloat16", "row".
template <HasName Enumerator>
std::ostream& operator<<(std::ostream& out, Enumerator value) {
  return out << name(value);
}

// The kernel's name.
inline std::ostream& operator<<(std::ostream& out, const Kernel& kernel) {
  return out << kernel.name();
}

// "supported", or the reason why not.
inline std::ostream& operator<<(std::ostream& out, const Status& status) {
  return out << (status ? "supported" : status.error());
}

inline std::ostream& operator<<(std::ostream& out, const DeviceInfo& info) {
  return out << info.name << " (" << to_string(info.target) << ", " << info.multiprocessors
             << (info.target.is_cpu() ? " cores)" : " multiprocessors)");
}

inline std::ostream& operator<<(std::ostream& out, const VerifyReport& report) {
  out << (report.passed ? "passed: " : "FAILED: ") << report.mismatches << " of " << report.elements
      << " elements outside, worst error " << report.worst_ratio << " of what is allowed ("
      << report.method << ", seed " << report.seed << ")";
  return report.passed ? out : out << "; " << report.first_failure;
}

}  // namespace gemmery
