# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: F405
"""One described GEMM: float16 on tensor cores, D = alpha * A B + beta * C in float32.

python examples/python/describe/basic.py                           # on the first GPU
python examples/python/describe/basic.py --device emulated:a100    # on the CPU
"""

import argparse

import numpy as np

from gemmery import describe
from gemmery.describe import *  # noqa: F403


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", help='"cuda:0", "emulated:a100"')
    parser.add_argument("--print_cuda", action="store_true", help="print the CUDA C++ text of the kernel")
    options = parser.parse_args()
    describe.set_device(options.device)

    math = MathInstruction([16, 8, 16], float16, float16, float32, OpClass.TensorOp, MathOperation.multiply_add)
    tile = TileDescription([128, 128, 32], 3, [2, 2, 1], math)
    A = TensorDescription(float16, RowMajor, 8)
    B = TensorDescription(float16, RowMajor, 8)
    C = TensorDescription(float32, RowMajor, 4)
    functor = LinearCombination(C.element, C.alignment, math.element_accumulator, float32)
    operation = GemmOperationUniversal(80, tile, A, B, C, functor, IdentitySwizzle1)
    if options.print_cuda:
        print(operation.rt_module.emit())
    describe.compiler.add_module([operation])

    m, n, k = 256, 136, 64
    random = np.random.default_rng()
    a = random.integers(-4, 5, (m, k)).astype(np.float16)
    b = random.integers(-4, 5, (k, n)).astype(np.float16)
    c = random.integers(-8, 9, (m, n)).astype(np.float32)
    d = np.full((m, n), np.nan, np.float32)
    arguments = GemmArguments(
        operation=operation,
        problem_size=gemm.GemmCoord(m, n, k),
        A=a,
        B=b,
        C=c,
        D=d,
        output_op=operation.epilogue_type(1.0, 2.0),
    )
    operation.run(arguments)
    arguments.sync()  # d is filled here

    assert np.array_equal(d, a.astype(np.float64) @ b.astype(np.float64) + 2.0 * c)
    print(f"passed: {operation.name}")


if __name__ == "__main__":
    main()
