# SPDX-License-Identifier: Apache-2.0
"""GemmArguments: valid and invalid arguments, errors, and lifetimes."""

import gc
import pickle
import weakref

import ml_dtypes
import numpy
import pytest

import gemmery


def arrays(m=4, n=6, k=5, dtype=numpy.float32):
    return numpy.ones((m, k), dtype), numpy.ones((k, n), dtype), numpy.zeros((m, n), dtype)


# --- accepted ------------------------------------------------------------------------------------


def test_arguments_hold_the_objects_that_were_given():
    a, b, out = arrays()
    args = gemmery.GemmArguments(a, b, out, numpy.float32)
    assert args.A is a and args.B is b and args.out is out and args.C is None
    assert args.problem_size == (4, 6, 5, 1)
    assert args.accumulator_type is gemmery.float32
    assert args.device == "cpu" and not args.is_fake
    assert args.problem.startswith("gemm 4x6x5 a=f32")
    assert isinstance(args, gemmery.RuntimeArguments)


@pytest.mark.parametrize(
    "accumulator",
    [gemmery.float32, "float32", "f32", numpy.float32, numpy.dtype("float32"), "<f4"],
    ids=repr,
)
def test_an_accumulator_type_may_be_named_by_any_library(accumulator):
    assert gemmery.GemmArguments(*arrays(), accumulator).accumulator_type is gemmery.float32


def test_the_default_accumulator_is_that_of_the_library():
    assert gemmery.GemmArguments(*arrays()).accumulator_type is gemmery.float32
    assert gemmery.GemmArguments(*arrays(dtype=numpy.float64)).accumulator_type is gemmery.float64
    a, b, _ = arrays(dtype=numpy.int8)
    assert gemmery.GemmArguments(a, b, numpy.zeros((4, 6), numpy.int32)).accumulator_type is gemmery.int32


@pytest.mark.parametrize(
    ("dtype", "name"),
    [
        (numpy.float64, "float64"),
        (numpy.float32, "float32"),
        (numpy.float16, "float16"),
        (ml_dtypes.bfloat16, "bfloat16"),
        (ml_dtypes.float8_e4m3fn, "float8_e4m3fn"),
        (ml_dtypes.float8_e5m2, "float8_e5m2"),
        (numpy.int8, "int8"),
        (numpy.uint8, "uint8"),
        (numpy.int32, "int32"),
        (numpy.uint32, "uint32"),
    ],
)
def test_numpy_arrays_of_every_type_become_views(dtype, name):
    array = numpy.zeros((3, 5), dtype)
    view = gemmery.as_tensor(array)
    assert view.dtype is gemmery.DType[name] and str(view.dtype) == name
    assert view.shape == (3, 5) and view.strides == (5, 1)
    assert view.data_ptr == array.ctypes.data and view.base is array and view.device == "cpu"
    assert gemmery.dtype.dtype(dtype) is view.dtype and gemmery.dtype.dtype(array.dtype) is view.dtype


def test_strides_are_taken_as_they_are():
    array = numpy.zeros((6, 8, 10), numpy.float32)
    assert gemmery.as_tensor(array.transpose(0, 2, 1)).strides == (80, 1, 10)
    assert gemmery.as_tensor(array[::-1, ::2, ::-3]).strides == (-80, 20, -3)
    assert gemmery.as_tensor(numpy.broadcast_to(array[:1], (4, 8, 10))).strides == (0, 10, 1)


def test_batches_and_column_major_operands_compute(rng, check):
    a = rng.standard_normal((3, 7, 5)).astype(numpy.float32)
    b = numpy.asfortranarray(rng.standard_normal((5, 9)).astype(numpy.float32))[None]
    out = numpy.zeros((3, 9, 7), numpy.float32).transpose(0, 2, 1)
    args = gemmery.GemmArguments(a, b, out, "f32")
    assert args.problem_size == (7, 9, 5, 3)
    kernel = gemmery.get_kernels(args)[0]
    kernel.run(args)
    check(args, kernel)


def test_c_alpha_and_beta_are_blas(rng, gemm):
    c = rng.standard_normal((33, 47)).astype(numpy.float32)
    args, exact = gemm(C=c, alpha=2.0, beta=-0.5)
    assert args.C is c and (args.alpha, args.beta) == (2.0, -0.5)
    gemmery.get_kernels(args)[0].run(args)
    numpy.testing.assert_allclose(args.out, 2 * exact - 0.5 * c, rtol=1e-4, atol=1e-4)
    args.set_scalars(1.0, 1.0)
    gemmery.get_kernels(args)[0].run(args)
    numpy.testing.assert_allclose(args.out, exact + c, rtol=1e-4, atol=1e-4)


def test_views_tell_what_the_library_sees():
    a, b, out = arrays()
    views = gemmery.GemmArguments(a, b, out).views
    assert set(views) == {"A", "B", "out"}
    assert views["A"].shape == (1, 4, 5) and views["A"].base is a


def test_empty_extents_are_legal():
    for m, n, k in [(0, 3, 4), (3, 0, 4), (3, 4, 0)]:
        args = gemmery.GemmArguments(numpy.ones((m, k), "f"), numpy.ones((k, n), "f"), numpy.full((m, n), 7, "f"))
        gemmery.get_kernels(args)[-1].run(args)
        assert (args.out == 0).all()


# --- refused -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "operand", "words"),
    [
        (lambda a, b, out: (a[0], b, out), "A", "rank 2 or 3"),
        (lambda a, b, out: (a, b[None, None], out), "B", "rank 2 or 3"),
        (lambda a, b, out: (a, b[:-1], out), "B", "5 rows"),
        (lambda a, b, out: (a, b, out[1:]), "out", "4 rows"),
        (lambda a, b, out: (a, b, out[:, 1:]), "out", "6 columns"),
        (lambda a, b, out: (a[None].repeat(2, 0), b, out), "out", "rank 3"),
        (lambda a, b, out: (a[None].repeat(2, 0), b, out[None].repeat(3, 0)), "A", "3 batches"),
        (lambda a, b, out: (a, b, numpy.broadcast_to(out[:1], out.shape)), "out", "written"),
    ],
    ids=["A_rank", "B_rank", "K", "M", "N", "batch", "batches", "overlap"],
)
def test_contradicting_operands_are_value_errors_that_name_them(change, operand, words):
    with pytest.raises(ValueError, match=words) as caught:
        gemmery.GemmArguments(*change(*arrays()))
    assert isinstance(caught.value, gemmery.InvalidArgumentError)
    assert caught.value.operand.endswith(operand)
    assert caught.value.expected and caught.value.got


def test_what_is_no_tensor_is_a_type_error():
    a, _b, out = arrays()
    for wrong in ([1.0], None, 3, "A", object()):
        with pytest.raises(TypeError, match="B: expected a tensor"):
            gemmery.GemmArguments(a, wrong, out)


def test_element_types_that_are_not_served_are_refused_by_name():
    _, b, out = arrays()
    for dtype in (numpy.complex64, numpy.int64, bool, numpy.longdouble, "U3", ">f4", [("x", "f4")]):
        with pytest.raises(ValueError, match="A: expected elements of a type that gemmery knows"):
            gemmery.GemmArguments(numpy.zeros((4, 5), dtype), b, out)
    with pytest.raises(ValueError, match="float4_e2m1fn"):
        gemmery.as_tensor(numpy.zeros((2, 2), ml_dtypes.float4_e2m1fn))


def test_results_that_may_not_be_written_are_refused():
    a, b, out = arrays()
    out.flags.writeable = False
    with pytest.raises(ValueError, match="out: expected a tensor that may be written"):
        gemmery.GemmArguments(a, b, out)
    a.flags.writeable = False
    out.flags.writeable = True
    gemmery.GemmArguments(a, b, out)


def test_misaligned_and_odd_strided_arrays_are_refused():
    raw = numpy.zeros(4 * 20 + 1, numpy.uint8)
    _, b, out = arrays()
    with pytest.raises(ValueError, match="misaligned"):
        gemmery.GemmArguments(raw[1:].view(numpy.float32).reshape(4, 5), b, out)
    structured = numpy.zeros((4, 5), [("x", "f4"), ("y", "i1")])
    with pytest.raises(ValueError, match="strides of whole elements"):
        gemmery.GemmArguments(structured["x"], b, out)


def test_overlap_of_an_input_with_out_is_refused():
    memory = numpy.zeros((8, 4), numpy.float32)
    with pytest.raises(ValueError, match="overlapping memory"):
        gemmery.GemmArguments(memory[:4], numpy.zeros((4, 4), "f"), memory[2:6])


def test_words_that_name_nothing_list_what_there_is():
    with pytest.raises(ValueError, match="accumulator_type.*float32"):
        gemmery.GemmArguments(*arrays(), "floaty")
    with pytest.raises(TypeError, match="accumulator_type"):
        gemmery.GemmArguments(*arrays(), 3.5)
    with pytest.raises(ValueError, match="math.*tf32"):
        gemmery.GemmArguments(*arrays(), math="quick")
    with pytest.raises(TypeError, match="epilogue: expected EpilogueArguments"):
        gemmery.GemmArguments(*arrays(), epilogue="D = accum")


def test_unsupported_products_are_refused():
    a, b, out = arrays(dtype=numpy.float16)
    with pytest.raises(ValueError, match="accumulator_type: expected float32"):
        gemmery.GemmArguments(a, b, out, "uint8")


def test_performance_controls_are_checked_and_obeyed():
    with pytest.raises(ValueError, match="max_sms"):
        gemmery.PerformanceControls(max_sms=0)
    args = gemmery.GemmArguments(*arrays(), performance=gemmery.PerformanceControls(max_sms=3, deterministic=True))
    assert args.performance.max_sms == 3
    kernels = gemmery.get_kernels(args, cc=90)
    assert kernels and all(kernel.metadata.deterministic for kernel in kernels)
    loose = gemmery.GemmArguments(*arrays(64, 64, 4096, numpy.float16), "f32")
    tight = gemmery.GemmArguments(*arrays(64, 64, 4096, numpy.float16), "f32", performance=args.performance)
    unsteady = [k for k in gemmery.get_kernels(loose, cc=90) if not k.metadata.deterministic]
    for kernel in unsteady:
        assert not kernel.supports(tight, cc=90)


# --- patching ------------------------------------------------------------------------------------


def test_new_memory_takes_the_place_of_the_old(rng, gemm):
    args, _ = gemm()
    a = rng.standard_normal((33, 29)).astype(numpy.float32)
    args.set_data("A", a)
    assert args.A is a
    gemmery.get_kernels(args)[0].run(args)
    numpy.testing.assert_allclose(args.out, a @ args.B, rtol=1e-4, atol=1e-4)
    args.set_data("A", a.ctypes.data)
    with pytest.raises(ValueError, match="set_data"):
        args.set_data("Z", a)
    with pytest.raises(ValueError):
        args.set_data("out", args.B)


@pytest.mark.parametrize(
    "replacement",
    [
        numpy.ones((4, 4), "f4"),
        numpy.ones((5, 4), "f4").T,
        numpy.ones((4, 5), "f8"),
        numpy.ones((2, 4, 5), "f4"),
    ],
    ids=["shape", "strides", "type", "batches"],
)
def test_memory_of_another_layout_is_not_taken(replacement):
    args = gemmery.GemmArguments(*arrays(), numpy.float32)
    launch = gemmery.get_kernels(args)[0].compile(args).bind(args)
    for holder in (args, launch):
        with pytest.raises(gemmery.errors.InvalidArgumentError, match="A: expected a tensor like the one that was bound"):
            holder.set_data("A", replacement)
        holder.set_data("A", numpy.ones((1, 4, 5), "f4"))


def test_read_only_memory_does_not_become_the_result():
    args = gemmery.GemmArguments(*arrays(), numpy.float32)
    launch = gemmery.get_kernels(args)[0].compile(args).bind(args)
    fixed = numpy.zeros((4, 6), "f4")
    fixed.flags.writeable = False
    for holder in (args, launch):
        with pytest.raises(ValueError, match="out: expected a tensor that may be written"):
            holder.set_data("out", fixed)


def test_what_is_no_address_is_refused():
    args = gemmery.GemmArguments(*arrays(), numpy.float32)
    launch = gemmery.get_kernels(args)[0].compile(args).bind(args)
    for holder in (args, launch):
        for number in (-4, 2**64):
            with pytest.raises(gemmery.errors.InvalidArgumentError, match=f"A: expected an address.*got {number}"):
                holder.set_data("A", number)


# --- objects of other kinds ----------------------------------------------------------------------


def test_objects_of_another_class_are_type_errors():
    args = gemmery.GemmArguments(*arrays(), numpy.float32)
    kernel = gemmery.get_kernels(args)[0]
    artifact = kernel.compile(args)
    for call in (
        lambda: kernel.compile("x"),
        lambda: artifact.bind("x"),
        lambda: gemmery.compile_all(["x"], 90),
        lambda: gemmery.artifact.save("unused", ["x"]),
        lambda: gemmery.GemmArguments(*arrays(), performance="x"),
    ):
        with pytest.raises(TypeError, match="expected .*"):
            call()


def test_a_limit_of_multiprocessors_beyond_its_type_is_refused():
    limit = gemmery.PerformanceControls(max_sms=2**40)
    with pytest.raises(gemmery.errors.InvalidArgumentError, match="max_sms"):
        gemmery.GemmArguments(*arrays(), performance=limit)


@pytest.mark.filterwarnings("ignore:nanobind")
def test_objects_that_were_never_initialised_do_no_harm():
    class Unready(gemmery.GemmArguments):
        def __init__(self):
            self.itself = self

    args = gemmery.GemmArguments(*arrays(), numpy.float32)
    kernel = gemmery.get_kernels(args)[0]
    assert not kernel.supports(Unready())
    with pytest.raises(TypeError):
        kernel.compile(Unready())
    for kind in (gemmery.PreparedLaunch, gemmery.CompiledArtifact, gemmery.EpilogueArguments, gemmery.GemmArguments):
        unready = kind.__new__(kind)
        cycle = [unready]
        cycle.append(cycle)
        del unready, cycle
    gc.collect()


# --- lifetimes -----------------------------------------------------------------------------------


class Array(numpy.ndarray):
    """An array that supports weak references."""


def test_arguments_keep_their_operands_alive_and_let_them_go():
    a, b, out = (array.view(Array) for array in arrays())
    references = [weakref.ref(array) for array in (a, b, out)]
    args = gemmery.GemmArguments(a, b, out)
    del a, b, out
    gc.collect()
    assert all(reference() is not None for reference in references)
    launch = gemmery.get_kernels(args)[0].compile(args).bind(args)
    del args
    gc.collect()
    assert all(reference() is not None for reference in references)
    launch()
    del launch
    gc.collect()
    assert all(reference() is None for reference in references)


def test_cycles_through_arguments_are_collected():
    a, b, out = (array.view(Array) for array in arrays())
    args = gemmery.GemmArguments(a, b, out)
    kernel = gemmery.get_kernels(args)[0]
    launch = kernel.compile(args).bind(args)
    a.holds = [args, launch, kernel.metadata, gemmery.as_tensor(a)]
    reference = weakref.ref(a)
    del a, b, out, args, kernel, launch
    gc.collect()
    assert reference() is None


def test_a_view_holds_the_buffer_of_an_array():
    array = numpy.zeros(8, numpy.float32)
    view = gemmery.as_tensor(array)
    with pytest.raises(ValueError, match="referenced|resize"):
        array.resize(100)
    del view


def test_the_subclass_of_a_user_is_arguments_too():
    class Mine(gemmery.RuntimeArguments):
        def __init__(self, x):
            super().__init__(epilogue=None, performance=None)
            self.x = x

    mine = Mine(3)
    assert mine.x == 3 and mine.epilogue is None
    kernel = gemmery.get_kernels(gemmery.GemmArguments(*arrays()))[0]
    status = kernel.supports(mine)
    assert not status and "expected GemmArguments, got Mine" in str(status.error)


# --- names of files ------------------------------------------------------------------------------


def test_names_of_files_need_not_be_text(tmp_path):
    for name in ("\udc80\udcff", "a\nb", "\U0001f4a5"):
        with pytest.raises(gemmery.errors.FileError):
            gemmery.artifact.load(tmp_path / name)
    with pytest.raises(gemmery.errors.InvalidArgumentError, match="path: expected a path without a null"):
        gemmery.artifact.load(f"{tmp_path}/a\0b")


# --- objects that are not what they look like ------------------------------------------------------


def test_a_masked_array_is_refused_with_the_ways_to_fill_it(rng):
    a = rng.standard_normal((4, 4)).astype("f")
    masked = numpy.ma.masked_array(a, mask=a > 0)
    out = numpy.zeros_like(a)
    for operands in ((masked, a, out), (a, masked, out), (a, a, masked)):
        with pytest.raises(gemmery.UnsupportedError, match="without a mask") as raised:
            gemmery.GemmArguments(*operands)
        assert "filled" in raised.value.hint
    with pytest.raises(gemmery.UnsupportedError, match="bias: expected an array without a mask"):
        gemmery.EpilogueArguments("D = accum + bias", bias=masked)
    gemmery.GemmArguments(masked.filled(0), a, out)


@pytest.mark.parametrize("operand", ["text", [[1.0]], None, 3])
def test_matmul_names_the_operand_that_is_no_tensor(operand):
    a = numpy.ones((2, 2), "f")
    with pytest.raises(TypeError, match=f"^a: expected a tensor .*, got {type(operand).__name__}$"):
        gemmery.matmul(operand, a)
    with pytest.raises(TypeError, match=f"^b: expected a tensor .*, got {type(operand).__name__}$"):
        gemmery.matmul(a, operand)


def test_text_that_is_no_utf8_is_told_as_that():
    calls = {
        "program": lambda text: gemmery.Program("D = accum" + text),
        "name of an operand": lambda text: gemmery.EpilogueArguments("D = accum", **{text: 1.0}),
        "name": gemmery.find_kernel,
        "dtype": gemmery._core.dtype,
        "cc": lambda text: gemmery.get_kernels(cc=text),
        "device": lambda text: gemmery.empty((2, 2), "float32", text),
    }
    for operand, call in calls.items():
        with pytest.raises(gemmery.InvalidArgumentError, match="expected text that UTF-8 can hold") as raised:
            call("\udc80")
        assert raised.value.operand == operand and "\\udc80" in raised.value.got


# --- errors ----------------------------------------------------------------------------------------


def test_errors_are_told_apart_pickled_and_caught_as_pythons_own():
    classes = {
        gemmery.InvalidArgumentError: ("invalid_argument", ValueError),
        gemmery.UnsupportedError: ("unsupported", ValueError),
        gemmery.UnavailableError: ("unavailable", RuntimeError),
        gemmery.CompileError: ("compile", RuntimeError),
        gemmery.LaunchError: ("launch", RuntimeError),
        gemmery.OutOfMemoryError: ("out_of_memory", MemoryError),
        gemmery.FileError: ("io", OSError),
        gemmery.VerificationError: ("verification", ArithmeticError),
    }
    for error_class, (kind, base) in classes.items():
        assert issubclass(error_class, gemmery.Error) and issubclass(error_class, base)
        assert error_class.kind == kind and error_class.__doc__ != gemmery.Error.__doc__
        error = error_class("words")
        error.operand, error.got = "B", "nothing"
        copy = pickle.loads(pickle.dumps(error))
        assert type(copy) is error_class and copy.args == ("words",)
        assert (copy.kind, copy.operand, copy.got, copy.hint) == (kind, "B", "nothing", "")

    class Own(gemmery.CompileError):
        pass

    assert Own.kind == "compile"


@pytest.mark.parametrize("make", [gemmery.GemmArguments, gemmery.ElementwiseArguments])
def test_a_program_alone_is_no_epilogue(make):
    a, out = numpy.zeros((4, 4), "f4"), numpy.zeros((4, 4), "f4")
    with pytest.raises(TypeError, match=r"epilogue: expected EpilogueArguments, got str; EpilogueArguments\("):
        make(a, a, out, epilogue="D = relu(accum)")
