// SPDX-License-Identifier: Apache-2.0
// GroupedGemmArguments: sizes of groups from arrays of any framework or lists of numbers, and lists
// of problems.
#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gemmery/grouped.hpp>

#include "arguments.hpp"
#include "docs.hpp"

namespace gemmery::python {
namespace {

// --- sizes ---------------------------------------------------------------------------------------

constexpr const char* expected_sizes = "a packed vector of int32 or int64";

bool is_int64(nb::handle object) {
  if (!nb::hasattr(object, "dtype")) return false;
  const nb::object dtype = object.attr("dtype");
  const auto name = nb::cast<std::string>(nb::str(dtype));
  return name == "int64" || name == "torch.int64";
}

// Frameworks refuse to view scalars and strided arrays as another type, each with a different
// error, so these are checked first.
void check_vector(nb::handle object, std::string_view role) {
  const nb::object shape = object.attr("shape");
  if (nb::len(shape) != 1)
    refuse(role, expected_sizes, "int64 of shape " + nb::cast<std::string>(nb::str(shape)));
}

// The same memory as twice as many int32: the library has no element type of 64-bit integers.
nb::object as_int32(nb::handle object) {
  const nb::object torch = nb::module_::import_("sys").attr("modules").attr("get")("torch");
  const bool is_torch = !torch.is_none() && nb::isinstance(object, torch.attr("Tensor"));
  return object.attr("view")(is_torch ? torch.attr("int32") : nb::object(nb::str("int32")));
}

nb::object view_wide_sizes(nb::handle object, std::string_view role) {
  check_vector(object, role);
  try {
    return as_int32(object);
  } catch (nb::python_error& error) {
    if (!error.matches(PyExc_ValueError) && !error.matches(PyExc_RuntimeError)) throw;
    refuse(role, expected_sizes, "a strided vector of int64", "copy it: array.copy()");
  }
}

// Imports sizes or indices; types that the library lacks are refused.
ImportedTensor import_words(nb::handle object, std::string_view role) {
  try {
    return import_tensor(object, role);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::unsupported) throw;
    refuse(role, expected_sizes, std::string(error.got()), "convert it: array.astype(\"int32\")");
  }
}

ImportedTensor import_sizes(nb::handle object, std::string_view role, int& bits) {
  bits = is_int64(object) ? 64 : 32;
  ImportedTensor tensor =
      import_words(bits == 64 ? view_wide_sizes(object, role) : nb::borrow(object), role);
  const Tensor& view = tensor.view;
  const bool is_packed = view.rank() == 1 && (view.extent(0) <= 1 || view.stride(0) == 1);
  if (view.dtype() != DType::int32 || !is_packed) refuse(role, expected_sizes, to_string(view));
  tensor.base = nb::borrow(object);
  return tensor;
}

GroupIndices indices_of(const ImportedTensor& tensor, int bits) {
  const Tensor& view = tensor.view;
  if (bits == 64)
    return {static_cast<const std::int64_t*>(view.data()), view.extent(0) / 2, view.device()};
  return {static_cast<const std::int32_t*>(view.data()), view.extent(0), view.device()};
}

// --- construction --------------------------------------------------------------------------------

// The keywords that carry sizes; `offsets` are ends.
struct GivenSizes {
  const char* name;
  GroupSizes form;
  nb::handle value;
};

const GivenSizes* only_sizes(const std::array<GivenSizes, 5>& given) {
  const GivenSizes* found = nullptr;
  for (const GivenSizes& one : given) {
    if (one.value.is_none()) continue;
    if (found != nullptr)
      refuse("sizes", "one of offsets, prefix, counts, labels and masked",
             std::string(found->name) + " and " + one.name);
    found = &one;
  }
  return found;
}

bool is_list(nb::handle object) {
  return nb::isinstance<nb::list>(object) || nb::isinstance<nb::tuple>(object);
}

DType accumulator_of(nb::handle given, const ImportedTensor& a, const ImportedTensor& b) {
  return given.is_none() ? default_accumulator(a.view.dtype(), b.view.dtype())
                         : to_dtype(given, "accumulator_type");
}

// One number for all problems, or one for each.
double number_at(nb::handle given, std::size_t index, std::string_view name, std::size_t count) {
  double number = 0;
  if (!is_list(given)) {
    if (nb::try_cast(given, number)) return number;
    refuse(name, "a number, or a list of one for each problem", class_name(given));
  }
  if (nb::len(given) != count)
    refuse(name, std::to_string(count) + " numbers, one for each problem",
           std::to_string(nb::len(given)));
  if (!nb::try_cast(nb::object(given[index]), number))
    refuse(name, "numbers", class_name(nb::object(given[index])));
  return number;
}

std::vector<ImportedTensor> import_list(nb::handle given, const std::string& role,
                                        std::size_t count, bool is_result) {
  if (!is_list(given) || nb::len(given) != count)
    refuse(role, "a list of " + std::to_string(count) + " tensors, as A is",
           is_list(given) ? std::to_string(nb::len(given)) : class_name(given));
  std::vector<ImportedTensor> tensors;
  for (std::size_t index = 0; index < count; ++index) {
    const std::string own = role + "[" + std::to_string(index) + "]";
    const nb::object one = given[index];
    tensors.push_back(is_result ? import_result(one, own) : import_tensor(one, own));
  }
  return tensors;
}

// Represents a list of tensors in calls that take one tensor, with its stream and its framework.
ImportedTensor first_of(const std::vector<ImportedTensor>& tensors) {
  ImportedTensor first;
  first.view = tensors.front().view;
  first.base = tensors.front().base;
  first.exchange = tensors.front().exchange;
  first.stream_source = tensors.front().stream_source;
  first.is_fake = tensors.front().is_fake;
  first.is_meta = tensors.front().is_meta;
  return first;
}

struct ListOptions {
  nb::handle accumulator, c, alpha, beta;
  Math math;
};

// Promises that apply only to groups that share tensors or are masked.
struct SharedPromises {
  std::string_view ragged, outside;
  std::int32_t alignment;
  std::int64_t expected;
  bool read_now, check;
};

void refuse_with_list(std::string_view name, bool is_given) {
  if (is_given)
    refuse(name, "none with a list of problems, whose extents are those of its tensors", "one");
}

void check_list(const SharedPromises& promises) {
  refuse_with_list("ragged", promises.ragged != "m");
  refuse_with_list("outside", promises.outside != "untouched");
  refuse_with_list("alignment", promises.alignment != 1);
  refuse_with_list("expected", promises.expected != 0);
  refuse_with_list("read_now", promises.read_now);
  refuse_with_list("check", promises.check);
}

void bind_list(PyGroupedGemmArguments& arguments, nb::handle A, nb::handle B, nb::handle out,
               const ListOptions& options) {
  const std::size_t count = nb::len(A);
  if (count == 0) refuse("A", "a list of at least one tensor", "an empty one");
  if (!arguments.epilogue.is_none())
    refuse("epilogue", "none with a list of problems", "one",
           "give each problem its C, alpha and beta, or let groups share tensors",
           ErrorKind::unsupported);
  auto& [a, b, d, c] = arguments.listed;
  a = import_list(A, "A", count, false);
  b = import_list(B, "B", count, false);
  d = import_list(out, "out", count, true);
  if (!options.c.is_none()) c = import_list(options.c, "C", count, false);
  std::vector<GroupedProblem> problems;
  for (std::size_t index = 0; index < count; ++index) {
    GemmOptions own{.alpha = number_at(options.alpha, index, "alpha", count),
                    .beta = number_at(options.beta, index, "beta", count),
                    .math = options.math};
    if (!c.empty()) own.c = c[index].view;
    problems.push_back({a[index].view, b[index].view, d[index].view, std::move(own)});
  }
  arguments.A = first_of(a);
  arguments.B = first_of(b);
  arguments.out = first_of(d);
  arguments.native.emplace(
      GroupedGemmArguments(problems, accumulator_of(options.accumulator, a.front(), b.front()))
          .as_gemm());
}

// Binds sizes: an array, or a list of numbers, which is copied.
GroupIndices bind_sizes(PyGroupedGemmArguments& arguments, const GivenSizes& given,
                        std::vector<std::int64_t>& kept) {
  if (is_list(given.value)) {
    for (const nb::handle number : given.value) {
      std::int64_t size = 0;
      if (!nb::try_cast(number, size))
        refuse(given.name, "whole numbers of 64 bits at most", class_name(number));
      kept.push_back(size);
    }
    return {kept.data(), static_cast<std::int64_t>(kept.size())};
  }
  int bits = 32;
  arguments.sizes = import_sizes(given.value, given.name, bits);
  arguments.size_bits = bits;
  return indices_of(*arguments.sizes, bits);
}

// Rows (or columns) by index, as given.
struct GivenIndices {
  nb::handle gather, scatter;
  std::int32_t divide;
};

std::optional<GroupIndices> bind_indices(nb::handle given, std::string_view name,
                                         std::optional<ImportedTensor>& held, int& bits) {
  if (given.is_none()) return std::nullopt;
  if (is_list(given))
    refuse(name, "an array of int32 or int64, which is read when the work runs", class_name(given),
           "numpy.array(…, \"int32\")");
  held = import_sizes(given, name, bits);
  return indices_of(*held, bits);
}

void bind_indices(PyGroupedGemmArguments& arguments, const GivenIndices& given,
                  GroupOffsets& offsets) {
  offsets.gather = bind_indices(given.gather, "gather", arguments.gather, arguments.gather_bits);
  offsets.gather_divide = given.divide;
  offsets.scatter =
      bind_indices(given.scatter, "scatter", arguments.scatter, arguments.scatter_bits);
  if (!offsets.gather && given.divide != 1)
    refuse("gather_divide", "1 without a gather", std::to_string(given.divide));
}

void construct_grouped(PyGroupedGemmArguments* self, nb::handle A, nb::handle B, nb::handle out,
                       nb::handle accumulator, nb::handle offsets, nb::handle epilogue,
                       nb::handle performance, nb::handle C, nb::handle alpha, nb::handle beta,
                       std::string_view math, nb::handle prefix, nb::handle counts,
                       nb::handle labels, nb::handle masked, std::string_view ragged,
                       std::string_view outside, std::int32_t alignment, std::int64_t expected,
                       bool read_now, bool check, nb::handle gather, std::int32_t gather_divide,
                       nb::handle scatter) {
  PyGroupedGemmArguments arguments;
  arguments.epilogue = nb::borrow(epilogue);
  arguments.performance = nb::borrow(performance);
  read_common(arguments);
  const Math how = to_math(math);
  const std::array<GivenSizes, 5> sizes{{{"offsets", GroupSizes::ends, offsets},
                                         {"prefix", GroupSizes::prefix, prefix},
                                         {"counts", GroupSizes::counts, counts},
                                         {"labels", GroupSizes::labels, labels},
                                         {"masked", GroupSizes::masked, masked}}};
  const GivenSizes* const given = only_sizes(sizes);
  if (is_list(A)) {
    if (given != nullptr)
      refuse(given->name, "none with lists of tensors, which have extents of their own", "one");
    check_list({ragged, outside, alignment, expected, read_now, check});
    refuse_with_list("gather", !gather.is_none());
    refuse_with_list("gather_divide", gather_divide != 1);
    refuse_with_list("scatter", !scatter.is_none());
    bind_list(arguments, A, B, out, {accumulator, C, alpha, beta, how});
    note_memory(arguments);
    new (self) PyGroupedGemmArguments(std::move(arguments));
    return;
  }
  if (given == nullptr)
    refuse("offsets", "the end of every group, or prefix, counts, labels or masked", "none");
  const ScaledPair operands = import_operands(arguments, A, B);
  arguments.out = import_result(out, "out");
  if (!C.is_none()) arguments.C = import_tensor(C, "C");
  std::vector<std::int64_t> kept;
  const GroupIndices indices = bind_sizes(arguments, *given, kept);
  GroupOffsets how_grouped{.sizes = indices,
                           .form = given->form,
                           .ragged = read_word<Ragged>(ragged, parse_ragged, "ragged", "m, n or k"),
                           .outside = read_word<OutsideGroups>(outside, parse_outside_groups,
                                                               "outside", "untouched or zero"),
                           .alignment = alignment,
                           .expected = expected,
                           .read_now = read_now || is_list(given->value),
                           .check = check};
  bind_indices(arguments, {gather, scatter, gather_divide}, how_grouped);
  const GemmOptions options =
      options_of(arguments, number_at(alpha, 0, "alpha", 1), number_at(beta, 0, "beta", 1), how);
  arguments.native.emplace(
      GroupedGemmArguments(operands.a, operands.b, arguments.result().view,
                           accumulator_of(accumulator, arguments.A, arguments.B), how_grouped,
                           options)
          .as_gemm());
  note_memory(arguments);
  new (self) PyGroupedGemmArguments(std::move(arguments));
}

// --- what they tell ------------------------------------------------------------------------------

// The tensor, or the list of them, as it was given.
nb::object given_of(const std::vector<ImportedTensor>& list, const ImportedTensor& one) {
  if (list.empty()) return one.base;
  nb::list bases;
  for (const ImportedTensor& tensor : list) bases.append(tensor.base);
  return bases;
}

nb::object given_c(const PyGroupedGemmArguments& self) {
  if (!self.listed.c.empty()) return given_of(self.listed.c, self.listed.c.front());
  return self.C ? self.C->base : nb::none();
}

// --- Python's collector of cycles ----------------------------------------------------------------

template <class Arguments, class Visit>
void for_each_of_groups(Arguments& arguments, const Visit& visit) {
  for_each_held(arguments, visit);
  for (auto* const held : {&arguments.sizes, &arguments.gather, &arguments.scatter})
    if (*held) visit(**held);
  for (auto* const list :
       {&arguments.listed.a, &arguments.listed.b, &arguments.listed.out, &arguments.listed.c})
    for (auto& tensor : *list) visit(tensor);
}

int visit_grouped(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (!nb::inst_ready(self)) return 0;
  const auto* const arguments = nb::inst_ptr<PyGroupedGemmArguments>(self);
  Py_VISIT(arguments->epilogue.ptr());
  Py_VISIT(arguments->performance.ptr());
  Py_VISIT(arguments->origin.ptr());
  int result = 0;
  for_each_of_groups(*arguments, [&](const ImportedTensor& tensor) {
    if (result == 0) result = tensor.visit_references(visit, arg);
  });
  return result;
}

int clear_grouped(PyObject* self) {
  if (!nb::inst_ready(self)) return 0;
  auto* const arguments = nb::inst_ptr<PyGroupedGemmArguments>(self);
  arguments->epilogue.reset();
  arguments->performance.reset();
  arguments->origin.reset();
  for_each_of_groups(*arguments, [](ImportedTensor& tensor) { tensor.clear_references(); });
  return 0;
}

PyType_Slot grouped_slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(visit_grouped)},
                               {Py_tp_clear, reinterpret_cast<void*>(clear_grouped)},
                               {0, nullptr}};

// Replaces an array of sizes or indices by one with the same length and width.
void set_array(PyGroupedGemmArguments& arguments, const std::string& name, nb::handle given,
               std::optional<ImportedTensor>& held, int held_bits) {
  int bits = 32;
  ImportedTensor tensor = import_sizes(given, name, bits);
  if (!held || bits != held_bits || !has_same_layout(tensor.view, held->view))
    refuse(name, "an array like the one that was bound, which is read when work runs",
           to_string(tensor.view), "make new arguments");
  arguments.native->set_data(name, tensor.view.data());
  arguments.replaced.push_back(std::move(*held));
  held = std::move(tensor);
}

void set_grouped_data(PyGroupedGemmArguments& self, const std::string& operand, nb::handle given) {
  const bool is_array = !PyLong_Check(given.ptr());
  if (is_array && operand == "sizes")
    return set_array(self, operand, given, self.sizes, self.size_bits);
  if (is_array && operand == "gather")
    return set_array(self, operand, given, self.gather, self.gather_bits);
  if (is_array && operand == "scatter")
    return set_array(self, operand, given, self.scatter, self.scatter_bits);
  if (!self.listed.a.empty()) return self.native->set_data(operand, nullptr);  // refuses
  set_operand_data(self, operand, given);
}

[[noreturn]] void refuse_staging(const PyGroupedGemmArguments&, nb::handle) {
  refuse("to_device", "arguments of one GEMM", "grouped ones",
         "copy the tensors to the device and make new arguments", ErrorKind::unsupported);
}

}  // namespace

void bind_grouped(nb::module_& module) {
  nb::class_<PyGroupedGemmArguments, PyGemmArguments>(
      module, "GroupedGemmArguments", nb::type_slots(grouped_slots), doc("GroupedGemmArguments"))
      .def("__init__", &construct_grouped, nb::arg("A").none(), nb::arg("B").none(),
           nb::arg("out").none(), nb::arg("accumulator_type").none() = nb::none(),
           nb::arg("offsets").none() = nb::none(), nb::arg("epilogue").none() = nb::none(),
           nb::kw_only(), nb::arg("performance").none() = nb::none(),
           nb::arg("C").none() = nb::none(), nb::arg("alpha") = 1.0, nb::arg("beta") = 0.0,
           nb::arg("math") = "native", nb::arg("prefix").none() = nb::none(),
           nb::arg("counts").none() = nb::none(), nb::arg("labels").none() = nb::none(),
           nb::arg("masked").none() = nb::none(), nb::arg("ragged") = "m",
           nb::arg("outside") = "untouched", nb::arg("alignment") = 1, nb::arg("expected") = 0,
           nb::arg("read_now") = false, nb::arg("check") = false,
           nb::arg("gather").none() = nb::none(), nb::arg("gather_divide") = 1,
           nb::arg("scatter").none() = nb::none())
      .def_prop_ro(
          "A", [](const PyGroupedGemmArguments& self) { return given_of(self.listed.a, self.A); },
          doc("GroupedGemmArguments.A"))
      .def_prop_ro(
          "B", [](const PyGroupedGemmArguments& self) { return given_of(self.listed.b, self.B); },
          doc("GroupedGemmArguments.B"))
      .def_prop_ro(
          "out",
          [](const PyGroupedGemmArguments& self) { return given_of(self.listed.out, self.out); },
          doc("GroupedGemmArguments.out"))
      .def_prop_ro("C", &given_c, doc("GroupedGemmArguments.C"))
      .def_prop_ro(
          "offsets",
          [](const PyGroupedGemmArguments& self) {
            return self.sizes ? self.sizes->base : nb::none();
          },
          doc("GroupedGemmArguments.offsets"))
      .def_prop_ro(
          "gather",
          [](const PyGroupedGemmArguments& self) {
            return self.gather ? self.gather->base : nb::none();
          },
          doc("GroupedGemmArguments.gather"))
      .def_prop_ro(
          "scatter",
          [](const PyGroupedGemmArguments& self) {
            return self.scatter ? self.scatter->base : nb::none();
          },
          doc("GroupedGemmArguments.scatter"))
      .def("set_data", &set_grouped_data, nb::arg("operand"), nb::arg("tensor"),
           doc("GroupedGemmArguments.set_data"))
      .def("to_device", &refuse_staging, nb::arg("device").none() = nb::none(),
           doc("GroupedGemmArguments.to_device"));
}

}  // namespace gemmery::python
