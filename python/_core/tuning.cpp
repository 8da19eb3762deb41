// SPDX-License-Identifier: Apache-2.0
// Tuning, and what it has stored.
#include <gemmery/tune.hpp>

#include "docs.hpp"
#include "kernels.hpp"

namespace gemmery::python {
namespace {

// Thrown between two steps after a signal; the caller raises the handler's exception instead.
struct Stopped : Interruption {};

nb::dict fields_of(const TuningEntry& entry) {
  nb::dict fields;
  fields["problem"] = entry.problem;
  fields["device"] = entry.conditions.device;
  fields["driver"] = entry.conditions.driver;
  fields["compiler"] = entry.conditions.compiler;
  fields["gemmery"] = entry.conditions.gemmery;
  fields["kernel"] = entry.kernel;
  fields["median_us"] = entry.median_us;
  fields["rounds"] = entry.rounds;
  fields["tuned_at"] = entry.tuned_at;
  return fields;
}

nb::dict fields_of(const TuneResult& result) {
  nb::dict fields = fields_of(result.entry);
  fields["outcome"] = name(result.outcome);
  nb::list candidates;
  for (const TunedCandidate& candidate : result.entry.candidates) {
    nb::dict row;
    row["kernel"] = candidate.kernel;
    row["predicted_us"] = candidate.predicted_us;
    row["time_us"] = candidate.time_us;
    row["outcome"] = candidate.outcome;
    candidates.append(row);
  }
  fields["candidates"] = candidates;
  return fields;
}

Filter filter_of(nb::handle providers) {
  Filter filter;
  if (providers.is_none()) return filter;
  if (nb::isinstance<nb::str>(providers))
    throw nb::type_error("providers: expected a list of names, got str");
  for (const nb::handle provider : providers)
    filter.providers.push_back(to_text(nb::str(provider), "providers"));
  return filter;
}

nb::dict tune_problem(nb::handle problem, double budget_s, int candidates, bool force,
                      nb::handle device, nb::handle providers, nb::handle progress) {
  const ProblemLine line = line_of(problem);
  TuneOptions options{.device = device_for(device, problem),
                      .budget_s = budget_s,
                      .candidates = candidates,
                      .measures_again = force,
                      .filter = filter_of(providers)};
  TuneResult result;
  with_nvrtc([&] {
    run_interruptibly([&](const std::stop_token& stop) {
      options.progress = [&](const TuneProgress& now) {
        if (stop.stop_requested()) throw Stopped();
        if (progress.is_none()) return;
        const nb::gil_scoped_acquire gil;
        progress(now.stage, now.kernel, now.share);
      };
      result = tune(line, options);
    });
  });
  return fields_of(result);
}

nb::list stored() {
  nb::list rows;
  for (const StoredTuning& entry : without_gil(list_tunings)) {
    nb::dict row = fields_of(entry);
    row["holds_here"] = entry.holds_here;
    rows.append(row);
  }
  return rows;
}

std::size_t forget(const nb::list& lines) {
  std::vector<GemmProblem> problems;
  for (const nb::handle line : lines) problems.push_back(line_of(line).problem);
  const WithoutGil released;
  return forget_tunings(problems);
}

}  // namespace

void bind_tuning(nb::module_& module) {
  module.def("tune", &tune_problem, nb::arg("problem"), nb::kw_only(), nb::arg("budget_s") = 30.0,
             nb::arg("candidates") = 12, nb::arg("force") = false,
             nb::arg("device").none() = nb::none(), nb::arg("providers").none() = nb::none(),
             nb::arg("progress").none() = nb::none());
  module.def("tuning_file", [] { return without_gil(tuning_file); });
  module.def("list_tunings", &stored);
  module.def("forget_tunings", &forget, nb::arg("problems"));
  module.def("forget_all_tunings", [] { return without_gil(forget_all_tunings); });
}

}  // namespace gemmery::python
