# SPDX-License-Identifier: Apache-2.0
"""A mixture of experts without a permutation of rows: tokens are read in place, results are stored in the order of (token,
choice) pairs, each multiplied by its router's weight. On the CPU; on a GPU the calls are the same, with tensors of torch."""

import numpy

import gemmery

TOKENS, CHOICES, EXPERTS, WIDTH, HIDDEN = 30, 2, 5, 12, 20
random = numpy.random.default_rng()
x = random.standard_normal((TOKENS, WIDTH), "f4")
gate_weights, up_weights = random.standard_normal((2, EXPERTS, WIDTH, HIDDEN), "f4")
down_weights = random.standard_normal((EXPERTS, HIDDEN, WIDTH), "f4")
expert = random.integers(0, EXPERTS, TOKENS * CHOICES)  # of each pair
weight = random.random((TOKENS * CHOICES, 1), "f4")

order = numpy.argsort(expert, kind="stable").astype("i4")  # pairs, one expert after the other
counts = numpy.bincount(expert, minlength=EXPERTS).astype("i4")


def run(A, B, out, program, operands, **indices):
    epilogue = gemmery.EpilogueArguments(program, **operands)
    args = gemmery.GroupedGemmArguments(A, B, out, counts=counts, epilogue=epilogue, **indices)
    gemmery.get_kernels(args)[0].run(args)


gate, inner = numpy.empty((2, TOKENS * CHOICES, HIDDEN), "f4")
out = numpy.empty((TOKENS * CHOICES, WIDTH), "f4")
tokens = {"gather": order, "gather_divide": CHOICES}
run(x, gate_weights, gate, "D = silu(accum)", {}, **tokens)
run(x, up_weights, inner, "D = gate * accum", {"gate": gate}, **tokens)
run(inner, down_weights, out, "D = weight * accum", {"weight": weight}, scatter=order)
layer = out.reshape(TOKENS, CHOICES, WIDTH).sum(axis=1)

for token in range(TOKENS):
    expected = numpy.zeros(WIDTH)
    for choice in range(CHOICES):
        pair = token * CHOICES + choice
        own = x[token].astype("f8")
        left, right = own @ gate_weights[expert[pair]], own @ up_weights[expert[pair]]
        expected += weight[pair, 0] * ((left / (1 + numpy.exp(-left)) * right) @ down_weights[expert[pair]])
    numpy.testing.assert_allclose(layer[token], expected, rtol=1e-4, atol=1e-3)
print(f"{TOKENS} tokens, {CHOICES} experts each: as loops say")
