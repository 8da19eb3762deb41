// SPDX-License-Identifier: Apache-2.0
// Discovery: the kernels that run given arguments, best first, and the reasons why others do not.
#include <gemmery/discovery.hpp>
#include <gemmery/problem.hpp>

#include <array>
#include <cstdint>
#include <exception>
#include <utility>
#include <vector>

#include "docs.hpp"
#include "kernels.hpp"

namespace gemmery::python {
namespace {

Filter make_filter(nb::handle cc, nb::handle providers) {
  Filter filter;
  if (!cc.is_none()) filter.target = to_target(cc);
  if (providers.is_none()) return filter;
  if (nb::isinstance<nb::str>(providers))
    throw nb::type_error("providers: expected a list of names, got str");
  for (const nb::handle provider : providers)
    filter.providers.push_back(to_text(nb::str(provider), "providers"));
  return filter;
}

KernelList find_for(const PyGemmArguments& arguments, nb::handle cc, const Filter& filter) {
  const WithoutGil released;
  // Another architecture than that of the operands is queried as a device that this machine need
  // not have.
  if (cc.is_none() && !arguments.is_meta) return get_shared_kernels(*arguments.native, filter);
  Filter of_device = filter;
  const DeviceInfo* info = nullptr;
  {
    const nb::gil_scoped_acquire gil;
    info = &info_for(arguments, cc);
  }
  return get_shared_kernels(arguments.native->problem(), *info, of_device);
}

bool passes(nb::handle metadata_filter, nb::handle kernel) {
  if (metadata_filter.is_none()) return true;
  const nb::object answer = metadata_filter(kernel.attr("metadata"));
  const int truth = PyObject_IsTrue(answer.ptr());
  if (truth < 0) nb::raise_python_error();
  return truth == 1;
}

void append(nb::list& kernels, nb::handle metadata_filter, PyKernel&& kernel) {
  const nb::object object = nb::cast(std::move(kernel));
  if (passes(metadata_filter, object)) kernels.append(object);
}

nb::list list_of(const std::vector<RankedKernel>& answer, nb::handle metadata_filter,
                 bool wants_deterministic) {
  nb::list kernels;
  for (const RankedKernel& kernel : answer) {
    const bool is_wanted = !wants_deterministic || kernel.family().is_deterministic(kernel);
    if (is_wanted)
      append(kernels, metadata_filter, {kernel, kernel.predicted_us, kernel.is_measured});
  }
  return kernels;
}

constexpr std::size_t most_kept_lists = 32;
nb::handle kept_lists;  // owned by the module, which ends with the interpreter

// The Python list for a cached answer, created once: the same query returns the same object. Called
// with the GIL held.
nb::list kept_list_of(const KernelList& answer) {
  static auto* const answers = new std::array<KernelList, most_kept_lists>;
  const std::size_t at = reinterpret_cast<std::uintptr_t>(answer.get()) / 64 % most_kept_lists;
  if ((*answers)[at] != answer) {
    kept_lists[at] = list_of(*answer, nb::none(), false);
    (*answers)[at] = answer;
  }
  const nb::object kernels = kept_lists[at];
  return nb::steal<nb::list>(PyList_GetSlice(kernels.ptr(), 0, PY_SSIZE_T_MAX));
}

nb::list get_kernels_of(const PyGemmArguments* arguments, nb::handle metadata_filter, nb::handle cc,
                        nb::handle providers) {
  nb::list kernels;
  const Filter filter = make_filter(cc, providers);
  if (arguments == nullptr) {
    for (const Kernel& kernel : get_kernels(filter)) append(kernels, metadata_filter, {kernel});
    return kernels;
  }
  const KernelList answer = find_for(*arguments, cc, filter);
  const bool is_shared = answer.use_count() > 1;
  return is_shared && metadata_filter.is_none() && !arguments->wants_deterministic
             ? kept_list_of(answer)
             : list_of(*answer, metadata_filter, arguments->wants_deterministic);
}

// --- why not -------------------------------------------------------------------------------------

nb::list nearest_of(const Reason& reason) {
  nb::list kernels;
  for (const Kernel& kernel : reason.nearest) kernels.append(nb::cast(PyKernel{kernel}));
  return kernels;
}

Explanation explain_for(const PyGemmArguments& arguments, nb::handle cc) {
  if (cc.is_none() && !arguments.is_meta) return explain(*arguments.native);
  return explain(arguments.native->problem(), info_for(arguments, cc));
}

std::string text_of(const Reason& reason) {
  std::string text = reason.provider + "/" + reason.family;
  if (!reason.design_class.empty()) text += " " + reason.design_class;
  return text + ": " +
         (reason.failed.empty() ? std::to_string(reason.fitting) + " kernels fit" : reason.failed);
}

}  // namespace

void bind_discovery(nb::module_& module) {
  nb::class_<Reason>(module, "Reason",
                     "Why a family, or a class of its designs, does not support a problem; or how "
                     "many designs do.")
      .def_ro("provider", &Reason::provider)
      .def_ro("family", &Reason::family)
      .def_ro("design_class", &Reason::design_class)
      .def_ro("failed", &Reason::failed)
      .def_ro("fitting", &Reason::fitting)
      .def_prop_ro("nearest", &nearest_of)
      .def("__repr__", [](const Reason& reason) { return "Reason(" + text_of(reason) + ")"; });
  nb::class_<Explanation>(module, "Explanation", "Why each family supports a problem, or does not.")
      .def_ro("problem", &Explanation::problem)
      .def_ro("device", &Explanation::device)
      .def_ro("reasons", &Explanation::reasons)
      .def("__str__", [](const Explanation& explanation) { return to_string(explanation); });

  module.def("get_kernels", &get_kernels_of, nb::arg("args").none() = nb::none(),
             nb::arg("metadata_filter").none() = nb::none(), nb::arg("cc").none() = nb::none(),
             nb::arg("providers").none() = nb::none());
  nb::list lists;
  for (std::size_t at = 0; at < most_kept_lists; ++at) lists.append(nb::none());
  kept_lists = lists;
  module.attr("_kept_lists") = lists;
  module.def("explain", &explain_for, nb::arg("args"), nb::arg("cc").none() = nb::none());
  module.def(
      "find_kernel",
      [](const nb::str& kernel_name) -> nb::object {
        const std::optional<Kernel> kernel = find_kernel(to_text(kernel_name, "name"));
        return kernel ? nb::cast(PyKernel{*kernel}) : nb::none();
      },
      nb::arg("name"), doc("find_kernel"));
  module.def("provider_names", &provider_names, doc("provider_names"));
}

}  // namespace gemmery::python
