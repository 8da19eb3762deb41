# SPDX-License-Identifier: Apache-2.0
"""The explicit description in Python: objects, operands, modes. Tests are named after the rows of docs/describe-rows.md."""

import gc
import importlib.util

import numpy
import pytest

import gemmery
from describing import DEVICE, HALF, Problem, operation, tensors, tile
from gemmery import describe


@pytest.fixture(autouse=True)
def on_the_emulator():
    describe.set_device(DEVICE)
    yield
    describe.set_device(None)


# --- objects -------------------------------------------------------------------------------------


def test_row_05_objects_print_and_compare_by_value():
    assert tile() == tile() and hash(tile()) == hash(tile()) and tile() != tile(stages=4)
    one, other = operation(), operation()
    assert one == other and hash(one) == hash(other) and one != operation(stages=4)
    assert one.rt_module.emit() == other.rt_module.emit() and one.name == other.name
    assert "TileDescription([64, 64, 32], 3, [2, 2, 1]" in repr(one)
    assert tensors()[0] == describe.TensorDescription(describe.float16, describe.RowMajor, 8)
    assert describe.relu(describe.float32) == describe.relu(describe.float32) != describe.tanh(describe.float32)


def test_row_05_an_operation_is_a_kernel():
    one = operation()
    assert isinstance(one, gemmery.Kernel)
    assert one.metadata.kernel_class == "sm80" and one.metadata.design.tile_shape == (64, 64, 32)
    found = gemmery.find_kernel(one.name)
    assert found is not None and found.name == one.procedural_name()
    artifact = one.compile(cc=80)
    assert artifact.targets == ["sm_80"] or tuple(artifact.targets) == ("sm_80",)


def test_row_06_math_instruction_by_position_and_by_keyword():
    by_keyword = describe.MathInstruction(
        instruction_shape=[16, 8, 16],
        element_a=describe.float16,
        element_b=describe.float16,
        element_accumulator=describe.float32,
        opcode_class=describe.OpClass.TensorOp,
        math_operation=describe.MathOperation.multiply_add,
    )
    assert by_keyword == HALF
    simt = describe.MathInstruction([1, 1, 1], describe.float32, describe.float32, describe.float32)
    assert simt.opcode_class == describe.OpClass.Simt and simt.math_operation == describe.MathOperation.multiply_add
    with pytest.raises(gemmery.InvalidArgumentError, match="instruction_shape: expected 3 whole numbers"):
        describe.MathInstruction([16, 8], describe.float16, describe.float16, describe.float32)


def test_row_47_functors_as_documented():
    a, b, c = tensors()
    describe.LinearCombination(c.element, c.alignment, describe.float32, describe.float32)
    describe.LinearCombinationClamp(describe.int8, 16, describe.int32, describe.float32)
    describe.FastLinearCombinationClamp(describe.int8, 16)
    describe.LinearCombinationGeneric(
        describe.relu(describe.float32), c.element, c.alignment, describe.float32, describe.float32
    )
    with pytest.raises(gemmery.Error, match="epilogue_vector_length: expected 4, the alignment of C"):
        describe.GemmOperationUniversal(80, tile(), a, b, c, describe.LinearCombination(c.element, 2))


def test_row_22_refused_by_field():
    a, b, c = tensors()
    with pytest.raises(gemmery.Error, match="compute_capability"):
        describe.GemmOperationUniversal(75, tile(), a, b, c, describe.LinearCombination(c.element, c.alignment))
    with pytest.raises(gemmery.Error, match="tile_description.warp_count"):
        operation(warps=(3, 2, 1))
    with pytest.raises(gemmery.UnsupportedError, match="direct_store"):
        describe.GemmOperationUniversal(80, tile(), a, b, c, describe.LinearCombination(c.element, 4), direct_store=True)


# --- memory --------------------------------------------------------------------------------------


def test_row_01_one_program_does_all_six_duties(rng):
    pool = describe.get_memory_pool(2**20, 2**30)
    math = describe.MathInstruction([1, 1, 1], describe.float32, describe.float32, describe.float32, describe.OpClass.Simt)
    one = describe.TensorDescription(describe.float32, describe.RowMajor, 1)
    simt = describe.GemmOperationUniversal(
        80, tile(math, (128, 128, 8), 4, (2, 4, 1)), one, one, one, describe.LinearCombination(one.element, one.alignment)
    )
    describe.compiler.add_module([simt])
    a = rng.integers(-8, 9, (512, 128)).astype(numpy.float32)
    b = rng.integers(-8, 9, (128, 256)).astype(numpy.float32)
    d = numpy.full((512, 256), numpy.nan, numpy.float32)
    arguments = describe.GemmArguments(
        simt, describe.GemmCoord(512, 256, 128), a, b, None, d, output_op=simt.epilogue_type(1.0, 0.0)
    )
    assert simt.run(arguments) == 0
    arguments.sync()
    assert numpy.array_equal(d, a.astype(numpy.float64) @ b.astype(numpy.float64))
    assert pool.get_allocated_size() >= a.nbytes + b.nbytes + d.nbytes


def test_row_02_the_pool_has_a_limit():
    where = "emulated:b200"
    pool = describe.get_memory_pool(2**20, 2**24, device=where)
    kept = gemmery.empty((2**20,), "uint8", where)
    with pytest.raises(gemmery.OutOfMemoryError):
        gemmery.empty((2**25,), "uint8", where)
    assert pool.get_allocated_size() >= 2**20
    del kept
    gemmery.empty((2**20,), "uint8", where)
    with pytest.raises(gemmery.InvalidArgumentError, match="initial_bytes"):
        describe.get_memory_pool(2**25, 2**24, device=where)


@pytest.mark.gpu
def test_row_02_the_pool_has_a_beginning():
    pool = describe.get_memory_pool(2**20, 2**34, device="cuda:0")
    assert pool.pool_size() >= 2**20


@pytest.mark.parametrize("where", ["emulated:b300", pytest.param("cuda:0", marks=pytest.mark.gpu)])
def test_row_03_memory_is_given_again_without_asking_the_driver(where):
    pool = describe.get_memory_pool(2**22, 2**34, device=where)
    gemmery.empty((2**16,), "uint8", where)
    held, used = pool.pool_size(), pool.get_allocated_size()
    for _ in range(1000):
        gemmery.empty((2**16,), "uint8", where)
    assert pool.pool_size() == held and pool.get_allocated_size() == used


def test_row_04_allocated_bytes(rng):
    gc.collect()
    assert describe.get_allocated_size() == 0
    it = Problem(rng)
    arguments = describe.GemmArguments(operation(), it.size, it.a, it.b, it.c, it.d)
    expected = sum((array.nbytes + 511) // 512 * 512 for array in (it.a, it.b, it.c, it.d))
    assert it.a.nbytes + it.b.nbytes + it.c.nbytes + it.d.nbytes <= describe.get_allocated_size() <= expected
    del arguments
    gc.collect()
    assert describe.get_allocated_size() == 0


# --- operands ------------------------------------------------------------------------------------


@pytest.mark.gpu
def test_row_79_torch_tensors_are_used_where_they_are(rng):
    torch = pytest.importorskip("torch")
    it = Problem(rng)
    a, b, c, d = (torch.from_numpy(array).cuda() for array in (it.a, it.b, it.c, it.d))
    one = operation()
    arguments = describe.GemmArguments(one, it.size, a, b, c, d, output_op=one.epilogue_type(1.0, 2.0))
    assert arguments.ptr_D == d.data_ptr()
    one.run(arguments)
    arguments.sync()
    assert numpy.array_equal(d.cpu().numpy(), it.product + 2 * it.c)
    with pytest.raises(gemmery.InvalidArgumentError, match="B: expected memory on cuda:0, got on cpu"):
        describe.GemmArguments(one, it.size, a, b.cpu(), c, d)


def on_device(array):
    """A tensor that is already on the device."""
    tensor = gemmery.empty(array.shape, array.dtype, DEVICE)
    tensor.copy_from(array)
    return tensor


def test_row_79_tensors_of_the_device_are_not_copied_and_wrong_ones_refused(rng):
    it = Problem(rng)
    a, b, c, d = (on_device(array) for array in (it.a, it.b, it.c, it.d))
    one = operation()
    arguments = describe.GemmArguments(one, it.size, a, b, c, d, output_op=one.epilogue_type(1.0, 2.0))
    assert arguments.ptr_D == d.data_ptr
    one.run(arguments)
    arguments.sync()
    result = numpy.empty_like(it.d)
    gemmery.as_tensor(result).copy_from(d)
    assert numpy.array_equal(result, it.product + 2 * it.c)

    def refused(word, **changed):
        operands = {"A": a, "B": b, "C": c, "D": d} | changed
        with pytest.raises(gemmery.InvalidArgumentError, match=word):
            describe.GemmArguments(one, it.size, **operands)

    refused("A: expected float16, got float32", A=c)
    refused("A: expected 2880 elements", A=b)
    refused("B: expected contiguous memory", B=gemmery.Tensor(b.data_ptr, (56, 40), "float16", (80, 1), DEVICE, b))
    refused("C: expected memory on emulated:a100, got on emulated:h200", C=gemmery.empty((72, 56), "float32", "emulated:h200"))
    refused("A: expected .*memory of 72x40, got shape", A=gemmery.Tensor(a.data_ptr, (40, 72), "float16", None, DEVICE, a))


def test_row_80_numpy_arrays_are_copied_and_d_comes_back_with_sync(rng):
    it = Problem(rng)
    before = [array.copy() for array in (it.a, it.b, it.c)]
    one = operation()
    arguments = describe.GemmArguments(one, it.size, it.a, it.b, it.c, it.d, output_op=one.epilogue_type(1.0, 2.0))
    one.run(arguments)
    assert numpy.isnan(it.d).all()
    arguments.sync()
    assert numpy.array_equal(it.d, it.product + 2 * it.c)
    assert all(numpy.array_equal(array, old) for array, old in zip((it.a, it.b, it.c), before, strict=True))


def test_row_80_flat_arrays_and_arrays_in_fortran_order(rng):
    it = Problem(rng)
    one = operation()
    for b in (it.b.ravel(), it.b.T):  # K x N in column-major order
        d = numpy.full(72 * 56, numpy.nan, numpy.float32)
        arguments = describe.GemmArguments(one, it.size, it.a.ravel(), b, None, d)
        one.run(arguments)
        arguments.sync()
        assert numpy.array_equal(d.reshape(72, 56), it.product)


@pytest.mark.gpu
def test_row_81_cupy_arrays_are_used_where_they_are(rng):
    cupy = pytest.importorskip("cupy")
    it = Problem(rng)
    a, b, c, d = (cupy.asarray(array) for array in (it.a, it.b, it.c, it.d))
    one = operation()
    arguments = describe.GemmArguments(one, it.size, a, b, c, d)
    assert arguments.ptr_D == d.data.ptr
    one.run(arguments)
    arguments.sync()
    assert numpy.array_equal(cupy.asnumpy(d), it.product)


def test_row_81_cupy_is_no_dependency(rng):
    if importlib.util.find_spec("cupy") is not None:
        pytest.skip("CuPy is here")
    it = Problem(rng)
    one = operation()
    arguments = describe.GemmArguments(one, it.size, it.a, it.b, None, it.d)
    one.run(arguments)
    arguments.sync()
    assert numpy.array_equal(it.d, it.product)


def test_row_82_fields_by_keyword_and_no_other(rng):
    it = Problem(rng)
    one = operation()
    arguments = describe.GemmArguments(
        operation=one,
        problem_size=it.size,
        A=it.a,
        B=it.b,
        C=it.c,
        D=it.d,
        gemm_mode=describe.gemm.Mode.Gemm,
        output_op=one.epilogue_type(1.0, 0.0),
        split_k_slices=1,
        batch=1,
        bias=False,
    )
    one.run(arguments)
    arguments.sync()
    assert numpy.array_equal(it.d, it.product)
    with pytest.raises(TypeError, match="split_k_slice"):
        describe.GemmArguments(one, it.size, it.a, it.b, it.c, it.d, split_k_slice=2)


def test_row_83_gemm_coord():
    size = describe.GemmCoord(3, 4, 5)
    assert (size.m(), size.n(), size.k()) == (3, 4, 5) and size == describe.GemmCoord(3, 4, 5)
    with pytest.raises(gemmery.InvalidArgumentError, match="n: expected a size from 0 on, got -1"):
        describe.GemmCoord(1, -1, 1)
    one = operation()
    nothing = numpy.empty(0, numpy.float16)
    d = numpy.full((72, 56), numpy.nan, numpy.float32)
    arguments = describe.GemmArguments(one, (72, 56, 0), nothing, nothing, None, d)
    one.run(arguments)
    arguments.sync()
    assert (d == 0).all()


# --- modes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("batch", [1, 2, 3])
def test_row_86_batched(rng, batch):
    it = Problem(rng, batch=batch)
    one = operation()
    arguments = describe.GemmArguments(
        one, it.size, it.a, it.b, it.c, it.d, describe.gemm.Mode.Batched, one.epilogue_type(1.0, 2.0), batch=batch
    )
    one.run(arguments)
    arguments.sync()
    assert numpy.array_equal(it.d, it.product + 2 * it.c)


def test_row_86_a_bias_is_said(rng):
    it = Problem(rng, n=72, m=72)
    bias = it.c[0].copy()
    one = operation()
    arguments = describe.GemmArguments(one, it.size, it.a, it.b, bias, it.d, output_op=one.epilogue_type(1.0, 1.0), bias=True)
    one.run(arguments)
    arguments.sync()
    assert numpy.array_equal(it.d, it.product + bias)
    with pytest.raises(gemmery.InvalidArgumentError, match="C: expected 5184 elements"):
        describe.GemmArguments(one, it.size, it.a, it.b, bias, it.d, output_op=one.epilogue_type(1.0, 1.0))


@pytest.mark.parametrize("is_list", [True, False])
def test_row_87_arrays_of_pointers(rng, is_list):
    it = Problem(rng, batch=3)
    one = operation()
    operands = [list(array) if is_list else array for array in (it.a, it.b, it.c, it.d)]
    arguments = describe.GemmArguments(
        one, it.size, *operands, gemm_mode=describe.gemm.Mode.Array, output_op=one.epilogue_type(1.0, 2.0), batch=3
    )
    one.run(arguments)
    arguments.sync()
    assert numpy.array_equal(it.d, it.product + 2 * it.c)
    if is_list:
        with pytest.raises(gemmery.InvalidArgumentError, match="B: expected 3 operands, got 2"):
            describe.GemmArguments(one, it.size, operands[0], operands[1][:2], *operands[2:], gemm_mode="Array", batch=3)


def test_row_93_output_op_takes_a_list_and_counts_it(rng):
    c = tensors()[2]
    leaky = operation(describe.LinearCombinationGeneric(describe.leaky_relu(describe.float32), c.element, c.alignment))
    it = Problem(rng)
    op = leaky.epilogue_type(*[0.5, 1.0, 0.25])
    arguments = describe.GemmArguments(leaky, it.size, it.a, it.b, it.c, it.d, output_op=op)
    leaky.run(arguments)
    arguments.sync()
    t = 0.5 * it.product + it.c
    assert numpy.array_equal(it.d, numpy.where(t > 0, t, t * 0.25))
    with pytest.raises(gemmery.Error, match="activation_args"):
        leaky.epilogue_type(1.0, 0.0, 0.1, 0.2)
    with pytest.raises(gemmery.Error, match="activation_args"):
        operation().epilogue_type(1.0, 0.0, 0.1)
    with pytest.raises(TypeError, match="alpha"):
        operation().epilogue_type()


def test_row_94_run_says_success_and_may_be_called_again(rng):
    it = Problem(rng)
    one = operation()
    stream = gemmery.Stream(DEVICE)
    arguments = describe.GemmArguments(one, it.size, it.a, it.b, None, it.d)
    assert one.run(arguments, stream=stream) == 0
    stream.synchronize()
    arguments.sync()
    first = it.d.copy()
    one.run(arguments)
    arguments.sync()
    assert numpy.array_equal(it.d, first)
    with pytest.raises(gemmery.Error, match="arguments"):
        operation(stages=4).run(arguments)


def test_row_95_a_fault_of_the_kernel_surfaces(rng):
    it = Problem(rng)
    one = operation()
    arguments = describe.GemmArguments(one, it.size, 2**40, it.b, None, it.d)  # A has no memory
    with pytest.raises(gemmery.LaunchError):
        one.run(arguments)
        arguments.sync()


@pytest.mark.parametrize("bias", [False, True])
def test_row_97_the_split_k_program_with_a_reduction(rng, bias):
    """As in PyCUTLASS's example: the GEMM computes partial sums, the reduction applies the functor."""
    _, _, c = tensors(describe.float16)
    one = operation(cd=describe.float16, shape=(32, 32, 32), warps=(1, 1, 1))
    it = Problem(rng, 40, 56, 248, dtype=numpy.float16)
    source = it.c[0].copy() if bias else it.c
    reduction = describe.ReductionOperation(
        shape=describe.MatrixCoord(4, 32 * c.alignment),
        C=c,
        element_accumulator=describe.float32,
        element_compute=describe.float32,
        epilogue_functor=describe.LinearCombinationGeneric(
            describe.relu(describe.float32), c.element, c.alignment, describe.float32, describe.float32
        ),
        count=c.alignment,
    )
    arguments = describe.GemmArguments(
        one, it.size, it.a, it.b, None, it.d, describe.gemm.Mode.GemmSplitKParallel, split_k_slices=3
    )
    reduction_arguments = describe.ReductionArguments(
        operation=reduction,
        problem_size=[it.size.m(), it.size.n()],
        partitions=3,
        workspace=arguments.ptr_D,
        destination=it.d,
        source=source,
        output_op=reduction.epilogue_type(*[0.5, 1.0]),
        bias=bias,
    )
    one.run(arguments)
    reduction.run(reduction_arguments)
    reduction_arguments.sync()
    assert numpy.array_equal(it.d, numpy.maximum(0.5 * it.product + source, 0).astype(numpy.float16))
    with pytest.raises(gemmery.InvalidArgumentError, match="partitions"):
        describe.ReductionArguments(reduction, [40, 56], 2, arguments.ptr_D, it.d, it.c)


def test_row_97_without_one_the_sum_is_made_by_itself(rng):
    one = operation(cd=describe.float16, shape=(32, 32, 32), warps=(1, 1, 1))
    it = Problem(rng, 40, 56, 248, dtype=numpy.float16)
    arguments = describe.GemmArguments(
        one, it.size, it.a, it.b, it.c, it.d, "GemmSplitKParallel", one.epilogue_type(1.0, 1.0), split_k_slices=5
    )
    one.run(arguments)
    arguments.sync()
    assert numpy.array_equal(it.d, (it.product + it.c).astype(numpy.float16))
