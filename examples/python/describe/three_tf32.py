# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: F405
"""Float32 on tensor cores by one product of TF32 and by three, compared with plain float32: the error of each.

python examples/python/describe/three_tf32.py --device emulated:a100
"""

import argparse

import numpy as np

from gemmery import describe
from gemmery.describe import *  # noqa: F403

FP32 = TensorDescription(float32, RowMajor, 4)
FUNCTOR = LinearCombination(float32, 4)


def tensor_op(math_operation):
    math = MathInstruction([16, 8, 8], tfloat32, tfloat32, float32, OpClass.TensorOp, math_operation)
    return GemmOperationUniversal(80, TileDescription([64, 64, 16], 3, [2, 2, 1], math), FP32, FP32, FP32, FUNCTOR)


def simt():
    math = MathInstruction([1, 1, 1], float32, float32, float32, OpClass.Simt)
    one = TensorDescription(float32, RowMajor, 1)
    tile = TileDescription([128, 128, 8], 4, [2, 4, 1], math)
    return GemmOperationUniversal(80, tile, one, one, one, LinearCombination(float32, 1))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", help='"cuda:0", "emulated:a100"')
    describe.set_device(parser.parse_args().device)

    m, n, k = 64, 64, 512
    random = np.random.default_rng()
    a = random.uniform(-1, 1, (m, k)).astype(np.float32)
    b = random.uniform(-1, 1, (k, n)).astype(np.float32)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    errors = {}
    for name, operation in {
        "multiply_add": tensor_op(MathOperation.multiply_add),
        "multiply_add_fast_f32": tensor_op(MathOperation.multiply_add_fast_f32),
        "Simt": simt(),
    }.items():
        d = np.full((m, n), np.nan, np.float32)
        arguments = GemmArguments(operation, (m, n, k), a, b, None, d, output_op=operation.epilogue_type(1.0, 0.0))
        operation.run(arguments)
        arguments.sync()
        errors[name] = np.abs(d - exact).max()
        print(f"{name:24} largest error {errors[name]:.2e}")
    assert errors["multiply_add_fast_f32"] * 10 < errors["multiply_add"]
    print("passed")


if __name__ == "__main__":
    main()
