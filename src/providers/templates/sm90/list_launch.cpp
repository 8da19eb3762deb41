// SPDX-License-Identifier: Apache-2.0
// The launches of lists of problems by sm90 kernels: a tensor map of A and one of B for each.
#include <algorithm>
#include <cstddef>
#include <memory>
#include <vector>

#include "device/abi/sm90_params.hpp"
#include "operation/groups.hpp"
#include "providers/templates/problem_list.hpp"
#include "providers/templates/sm90/launch.hpp"

namespace gemmery::templates {
namespace {

// The tensor map of an operand of one problem. If the product is not read (K = 0 or alpha = 0), a
// map of any memory, since the only block of k is out of bounds.
abi::TensorMap map_of_one(const runtime::PackRequest& request, const GemmArguments& one,
                          std::size_t side, TmaBox box) {
  const GemmProblem& problem = one.problem();
  constexpr TmaView least{1, 1, 1, 16, 16};
  const bool reads = problem.k != 0 && one.alpha() != 0;
  const ProductOperand operand = sides_of(problem, request.kernel)[side];
  const void* const data =
      reads ? data_of(one, request.kernel)[side] : aligned_down(one.out().data());
  driver::TiledTensorMap map =
      map_of(data, operand.rule.dtype, reads ? operand.view() : least, box, false);
  map.is_tf32 = request.kernel.operands().math == Math::tf32;
  return encode_map(request.driver, map);
}

// Problems without elements of out have no tiles, and their maps are not used.
template <class List>
void set_maps(const runtime::PackRequest& request, const abi::Sm90Design& design,
              abi::Sm90ListParams<List>& params) {
  const std::vector<GemmArguments>& problems = request.arguments.group_memory()->list;
  for (std::size_t at = 0; at < problems.size(); ++at) {
    if (problems[at].out().element_count() == 0) continue;
    params.a[at] = map_of_one(request, problems[at], 0, a_box(design));
    params.b[at] = map_of_one(request, problems[at], 1, b_box(design));
  }
}

template <class List>
void pack_list_of(const runtime::PackRequest& request, const abi::Sm90Design& design,
                  runtime::LaunchPlan& plan) {
  const auto all = std::make_shared<abi::Sm90ListParams<List>>();
  abi::Sm90ListParams<List>& params = *all;
  const unsigned tiles = fill_problem_list(request.arguments,
                                           {.rules = request.kernel.operands(),
                                            .tile_m = design.tile_m,
                                            .tile_n = design.tile_n,
                                            .is_turned = is_turned(request.kernel)},
                                           params.list);
  set_maps(request, design, params);
  // Copies load whole tiles of every problem.
  params.gemm.a_bytes = static_cast<unsigned>(abi::a_tile_bytes(design));
  params.gemm.b_bytes = static_cast<unsigned>(abi::b_tile_bytes(design));
  const unsigned blocks = std::clamp(tiles, 1U, resident_clusters(request, 1));
  params.gemm.lets_next_begin = lets_next_begin(blocks, request.device) ? 1 : 0;
  plan.set_large_parameters(all);
  set_shape(design, blocks, plan);
}

}  // namespace

void pack_list(const runtime::PackRequest& request, const abi::Sm90Design& design,
               runtime::LaunchPlan& plan) {
  if (request.arguments.problem().c)
    pack_list_of<abi::ProblemListWithC>(request, design, plan);
  else
    pack_list_of<abi::ProblemList>(request, design, plan);
}

}  // namespace gemmery::templates
