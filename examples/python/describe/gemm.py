# SPDX-License-Identifier: Apache-2.0
"""A GEMM that the command line describes, with the options of PyCUTLASS's gemm.py: types, tile, layouts, functor, mode.

python examples/python/describe/gemm.py -i 16 8 16 -ta float16 -tb float16 -tc float16 -tacc float32 -b 64 64 32 -s 3 \
    -w 2 2 1 -la RowMajor -lb ColumnMajor -lc RowMajor -aa 8 -ab 8 -ac 8 -te float32 -p 128 136 256 \
    -gm GemmSplitKParallel -k 3 -activ leaky_relu -activ_arg 0.25 -alpha 0.5 -beta 1 --device emulated:a100
"""

import argparse

import numpy as np

from gemmery import describe

MODES = list(describe.gemm.Mode.__members__)
ACTIVATIONS = ["identity", "relu", "leaky_relu", "tanh", "sigmoid", "silu", "hardswish", "gelu"]


def read_options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--device", help='"cuda:0", "emulated:a100"')
    add("-i", "--instruction_shape", default=[1, 1, 1], nargs=3, type=int)
    for short, name, default in (
        ("ta", "a", "float32"),
        ("tb", "b", "float32"),
        ("tc", "c", "float32"),
        ("tacc", "acc", "float32"),
    ):
        add(f"-{short}", f"--element_{name}", default=default)
    add("-te", "--element_epilogue", default="float32")
    add("-m", "--math", default="multiply_add", choices=list(describe.MathOperation.__members__))
    add("-op", "--opcode", choices=["Simt", "TensorOp"], help="without it: by the instruction's shape")
    add("-b", "--threadblock_shape", default=[128, 128, 8], nargs=3, type=int)
    add("-s", "--stages", default=4, type=int)
    add("-w", "--warp_count", default=[2, 4, 1], nargs=3, type=int)
    add("-cc", "--compute_capability", default=80, type=int)
    for name in "abc":
        add(f"-l{name}", f"--layout_{name}", default="RowMajor")
        add(f"-a{name}", f"--alignment_{name}", default=1, type=int)
    add("-ep", "--epilogue_functor", default="LinearCombination")
    add("-sw", "--swizzling_functor", default="IdentitySwizzle1", choices=list(describe.SwizzlingFunctor.__members__))
    add("-p", "--problem_size", default=[128, 128, 128], nargs=3, type=int)
    add("-alpha", "--alpha", default=1.0, type=float)
    add("-beta", "--beta", default=0.0, type=float)
    add("-gm", "--gemm_mode", default="Gemm", choices=MODES)
    add("-k", "--split_k_slices", default=1, type=int)
    add("-batch", "--batch", default=1, type=int)
    add("-bias", "--bias", action="store_true", help="C is one row of N numbers")
    add("-activ", "--activation_function", default="identity", choices=ACTIVATIONS)
    add("-activ_arg", "--activation_args", default=[], nargs="+", type=float)
    add("--print_cuda", action="store_true")
    return parser.parse_args()


def make_functor(options, C, accumulator):
    compute = describe.Element[options.element_epilogue]
    if options.activation_function == "identity":
        functor = getattr(describe, options.epilogue_functor)
        if functor is describe.FastLinearCombinationClamp:
            return functor(C.element, C.alignment)
        return functor(C.element, C.alignment, accumulator, compute)
    activation = getattr(describe, options.activation_function)(compute)
    return describe.LinearCombinationGeneric(activation, C.element, C.alignment, accumulator, compute)


def make_operation(options):
    a, b, c, accumulator = (describe.Element[getattr(options, f"element_{name}")] for name in ("a", "b", "c", "acc"))
    opcode = options.opcode or ("Simt" if options.instruction_shape[:2] == [1, 1] else "TensorOp")
    math = describe.MathInstruction(
        options.instruction_shape, a, b, accumulator, describe.OpClass[opcode], describe.MathOperation[options.math]
    )
    tile = describe.TileDescription(options.threadblock_shape, options.stages, options.warp_count, math)
    A = describe.TensorDescription(a, describe.Layout[options.layout_a], options.alignment_a)
    B = describe.TensorDescription(b, describe.Layout[options.layout_b], options.alignment_b)
    C = describe.TensorDescription(c, describe.Layout[options.layout_c], options.alignment_c)
    swizzle = describe.SwizzlingFunctor[options.swizzling_functor]
    functor = make_functor(options, C, accumulator)
    return describe.GemmOperationUniversal(options.compute_capability, tile, A, B, C, functor, swizzle)


def make_reduction(options, C):
    accumulator = describe.Element[options.element_acc]
    return describe.ReductionOperation(
        shape=describe.MatrixCoord(4, 32 * C.alignment),
        C=C,
        element_accumulator=accumulator,
        element_compute=describe.Element[options.element_epilogue],
        epilogue_functor=make_functor(options, C, accumulator),
        count=C.alignment,
    )


def numbers(random, element, batch, rows, columns, layout):
    """Small integers, packed in the layout; and the same as float64, [batch][row][column]."""
    if element == describe.bfloat16:
        import ml_dtypes  # noqa: F401 - NumPy lacks the type

    dtype = np.dtype(element.dtype.name)
    most = 1 if dtype.itemsize == 1 else 4
    is_row_major = layout == describe.RowMajor
    memory = random.integers(-most, most + 1, (batch, rows, columns) if is_row_major else (batch, columns, rows))
    return memory.astype(dtype), (memory if is_row_major else memory.swapaxes(1, 2)).astype(np.float64)


def main():
    options = read_options()
    describe.set_device(options.device)
    operation = make_operation(options)
    reduction = make_reduction(options, operation.C) if options.gemm_mode == "GemmSplitKParallel" else None
    if options.print_cuda:
        print(operation.rt_module.emit())
    describe.compiler.add_module([operation] if reduction is None else [operation, reduction])

    m, n, k = options.problem_size
    random = np.random.default_rng()
    a, a_exact = numbers(random, operation.A.element, options.batch, m, k, operation.A.layout)
    b, b_exact = numbers(random, operation.B.element, options.batch, k, n, operation.B.layout)
    c, c_exact = numbers(random, operation.C.element, options.batch, 1 if options.bias else m, n, operation.C.layout)
    d = np.empty_like(
        c if not options.bias else numbers(random, operation.C.element, options.batch, m, n, operation.C.layout)[0]
    )
    several = options.gemm_mode == "Array"
    op_numbers = [options.alpha, options.beta, *options.activation_args]
    arguments = describe.GemmArguments(
        operation=operation,
        problem_size=describe.gemm.GemmCoord(m, n, k),
        A=list(a) if several else a,
        B=list(b) if several else b,
        C=list(c) if several else c,
        D=list(d) if several else d,
        output_op=operation.epilogue_type(*op_numbers),
        gemm_mode=describe.gemm.Mode[options.gemm_mode],
        split_k_slices=options.split_k_slices,
        batch=options.batch,
        bias=options.bias,
    )
    if reduction is not None:
        reduction_arguments = describe.ReductionArguments(
            operation=reduction,
            problem_size=[m, n],
            partitions=options.split_k_slices,
            workspace=arguments.ptr_D,
            destination=d,
            source=c,
            output_op=reduction.epilogue_type(*op_numbers),
            bias=options.bias,
        )
    operation.run(arguments)
    if reduction is not None:
        reduction.run(reduction_arguments)
        reduction_arguments.sync()
    else:
        arguments.sync()

    t = options.alpha * (a_exact @ b_exact) + options.beta * c_exact
    exact = getattr(describe, options.activation_function).numpy(t, *options.activation_args)
    got = (d if operation.C.layout == describe.RowMajor else d.swapaxes(1, 2)).astype(np.float64)
    if d.dtype.kind == "i":
        exact = np.clip(np.rint(exact), np.iinfo(d.dtype).min, np.iinfo(d.dtype).max)
    assert np.allclose(got, exact, rtol=2e-3 if d.dtype == np.float16 else 1e-5, atol=1e-6)
    print(f"passed: {operation.name}")


if __name__ == "__main__":
    main()
