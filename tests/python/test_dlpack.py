# SPDX-License-Identifier: Apache-2.0
"""Tensors of fake producers with all forms of DLPack, and all kinds of stream objects."""

import ctypes
import gc
import itertools
import subprocess
import sys

import numpy
import pytest

import gemmery
from gemmery import _core

PyCapsule_New = ctypes.pythonapi.PyCapsule_New
PyCapsule_New.restype = ctypes.py_object
PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


class DLTensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_index", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class Managed(ctypes.Structure):
    pass


Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
Managed._fields_ = (("tensor", DLTensor), ("context", ctypes.c_void_p), ("deleter", Deleter))


class ManagedVersioned(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", Deleter),
        ("flags", ctypes.c_uint64),
        ("tensor", DLTensor),
    )


class Producer:
    """A matrix of float32, exported in the given form; counts the calls of its deleter."""

    def __init__(self, array=None, *, versioned=True, version=(1, 0), flags=0, device=(1, 0), **fields):
        self.array = numpy.arange(12, dtype=numpy.float32).reshape(3, 4) if array is None else array
        self.deleted = 0
        self.asked = []
        self.device = device
        self.shape = (ctypes.c_int64 * self.array.ndim)(*self.array.shape)
        steps = [stride // self.array.itemsize for stride in self.array.strides]
        self.strides = (ctypes.c_int64 * self.array.ndim)(*steps)
        self.deleter = Deleter(self.delete)
        tensor = DLTensor(self.array.ctypes.data, *device, self.array.ndim, 2, 32, 1, self.shape, self.strides, 0)
        for name, value in fields.items():
            setattr(tensor, name, value)
        self.versioned = versioned
        if versioned:
            self.managed = ManagedVersioned(*version, None, self.deleter, flags, tensor)
        else:
            self.managed = Managed(tensor, None, self.deleter)

    def delete(self, _):
        self.deleted += 1

    def __dlpack__(self, **options):
        self.asked.append(options)
        name = b"dltensor_versioned" if self.versioned else b"dltensor"
        return PyCapsule_New(ctypes.addressof(self.managed), name, None)

    def __dlpack_device__(self):
        return self.device


class OldProducer(Producer):
    """Written before DLPack 1.0."""

    def __init__(self, **options):
        super().__init__(versioned=False, **options)

    def __dlpack__(self, stream=None):
        return super().__dlpack__(stream=stream)


# --- forms ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [Producer, OldProducer])
def test_both_forms_become_views_and_are_deleted_once(kind):
    producer = kind()
    view = gemmery.as_tensor(producer)
    assert (view.shape, view.strides, view.dtype) == ((3, 4), (4, 1), gemmery.float32)
    assert view.data_ptr == producer.array.ctypes.data and view.base is producer
    assert producer.deleted == 0
    del view
    gc.collect()
    assert producer.deleted == 1


def test_another_major_version_is_refused_and_deleted_once():
    producer = Producer(version=(2, 0))
    with pytest.raises(gemmery.UnsupportedError, match="tensor: expected DLPack of major version 1"):
        gemmery.as_tensor(producer)
    assert producer.deleted == 1


def test_later_minor_versions_are_taken():
    assert gemmery.as_tensor(Producer(version=(1, 99))).shape == (3, 4)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"ndim": 6}, "rank"),
        ({"lanes": 2}, "lane"),
        ({"code": 5, "bits": 64}, "element type"),
        ({"bits": 128}, "element type"),
        ({"data": None}, "null data"),
        ({"device_type": 10}, "device type 10"),
        ({"byte_offset": 2}, "byte offset"),
        ({"byte_offset": 2**64 - 64}, "byte offset 18446744073709551552"),
        ({"byte_offset": 2**63}, "byte offset 9223372036854775808"),
    ],
    ids=lambda value: str(value),
)
def test_what_is_malformed_or_not_served_names_the_operand_and_is_deleted_once(fields, words):
    producer = Producer(**fields)
    with pytest.raises(ValueError, match=words) as caught:
        gemmery.GemmArguments(producer, numpy.zeros((4, 2), "f"), numpy.zeros((3, 2), "f"))
    assert caught.value.operand == "A"
    assert producer.deleted == 1


@pytest.mark.parametrize("pair", [1, (1,), (1, 0, 0), None, "ab", ("cpu", 0), (2**80, 0)], ids=repr)
def test_a_device_that_is_no_pair_is_told(pair):
    producer = Producer()
    producer.device = pair
    with pytest.raises(gemmery.InvalidArgumentError, match="from __dlpack_device__") as raised:
        gemmery.GemmArguments(producer, numpy.zeros((4, 2), "f"), numpy.zeros((3, 2), "f"))
    assert raised.value.operand == "A" and producer.deleted == 0 and producer.asked == []


def test_missing_strides_mean_row_major_and_offsets_count():
    assert gemmery.as_tensor(Producer(strides=None)).strides == (4, 1)
    producer = Producer(byte_offset=8)
    assert gemmery.as_tensor(producer).data_ptr == producer.array.ctypes.data + 8


def test_a_read_only_flag_forbids_results():
    producer = Producer(flags=1)
    assert gemmery.as_tensor(producer).is_read_only
    with pytest.raises(ValueError, match="out: expected a tensor that may be written"):
        gemmery.GemmArguments(numpy.zeros((3, 2), "f"), numpy.zeros((2, 4), "f"), producer)


def test_a_producer_that_raises_is_heard():
    class Broken(Producer):
        def __dlpack__(self, **options):
            raise BufferError("not today")

    with pytest.raises(BufferError, match="not today"):
        gemmery.as_tensor(Broken())

    class Liar(Producer):
        def __dlpack__(self, **options):
            return "capsule"

    with pytest.raises(ValueError, match="capsule"):
        gemmery.as_tensor(Liar())


def test_streams_are_ordered_when_asked_for():
    host = Producer()
    gemmery.as_tensor(host)
    assert host.asked[0]["stream"] is None and host.asked[0]["max_version"] == (1, 1)
    gpu = Producer(device=(2, 0))
    view = gemmery.as_tensor(gpu)
    assert gpu.asked[0]["stream"] == 1, "the legacy default stream, which serves then"
    assert view.device == "cuda:0"


def test_our_own_tensors_tell_consumers_where_they_lie():
    assert gemmery.empty((2, 3), "float32").__dlpack_device__() == (1, 0)
    assert gemmery.Tensor(1 << 40, (2, 3), "float32", device="cuda:3").__dlpack_device__() == (2, 3)
    with pytest.raises(BufferError, match="emulated:h200"):
        gemmery.empty((2, 3), "float32", "emulated:h200").__dlpack_device__()


def test_results_go_to_producers_of_any_kind(rng):
    out = Producer(numpy.zeros((3, 5), "f"))
    args = gemmery.GemmArguments(Producer(), numpy.ones((4, 5), "f"), out)
    gemmery.get_kernels(args)[0].run(args)
    assert (out.array == Producer().array.sum(1, keepdims=True)).all()


# --- consumers -----------------------------------------------------------------------------------

PyCapsule_IsValid = ctypes.pythonapi.PyCapsule_IsValid
PyCapsule_IsValid.argtypes = [ctypes.py_object, ctypes.c_char_p]
PyCapsule_GetPointer = ctypes.pythonapi.PyCapsule_GetPointer
PyCapsule_GetPointer.restype = ctypes.c_void_p
PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
PyCapsule_SetName = ctypes.pythonapi.PyCapsule_SetName
PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]

FORMS = {b"dltensor": (Managed, b"used_dltensor"), b"dltensor_versioned": (ManagedVersioned, b"used_dltensor_versioned")}
OLD, NEW = FORMS
UNVERSIONED = [{}, {"max_version": None}, {"max_version": (0, 8)}, {"stream": None}]
VERSIONED = [{"max_version": (1, 0)}, {"max_version": (1, 9)}, {"max_version": (2, 0)}, {"max_version": [1, 0]}]


class Consumer:
    """Consumes a capsule, as a library does, and releases it on request."""

    def __init__(self, capsule):
        [self.name] = [name for name in FORMS if PyCapsule_IsValid(capsule, name)]
        layout, used = FORMS[self.name]
        self.address = PyCapsule_GetPointer(capsule, self.name)
        assert PyCapsule_SetName(capsule, used) == 0
        del capsule
        self.managed = layout.from_address(self.address)
        self.tensor = self.managed.tensor

    def array(self):
        """The float32 array with its strides."""
        tensor = self.tensor
        shape, strides = ([numbers[i] for i in range(tensor.ndim)] for numbers in (tensor.shape, tensor.strides))
        last = sum((extent - 1) * stride for extent, stride in zip(shape, strides, strict=True))
        flat = numpy.frombuffer((ctypes.c_float * (last + 1)).from_address(tensor.data), "f")
        return numpy.lib.stride_tricks.as_strided(flat, shape, [4 * stride for stride in strides])

    def release(self):
        self.managed.deleter(self.address)


def test_who_names_no_version_gets_the_form_from_before_versions(rng):
    numbers = rng.standard_normal((3, 8)).astype("f")[:, ::2]
    tensor = gemmery.as_tensor(numbers)
    for options, name in [(options, OLD) for options in UNVERSIONED] + [(options, NEW) for options in VERSIONED]:
        taken = Consumer(tensor.__dlpack__(**options))
        assert taken.name == name, options
        assert taken.tensor.data == numbers.ctypes.data and (taken.array() == numbers).all(), options
        assert (taken.tensor.code, taken.tensor.bits, taken.tensor.lanes) == (2, 32, 1)
        if name == NEW:
            assert (taken.managed.major, taken.managed.flags) == (1, 0)
        taken.release()


@pytest.mark.parametrize("options", [UNVERSIONED[0], VERSIONED[0]], ids=["before versions", "1.0"])
def test_exported_memory_stays_until_its_consumer_lets_go(options):
    producer = Producer()
    Consumer(gemmery.as_tensor(producer).__dlpack__(**options)).release()
    gc.collect()
    assert producer.deleted == 1
    producer = Producer()
    taken = Consumer(gemmery.as_tensor(producer).__dlpack__(**options))
    gc.collect()
    assert producer.deleted == 0 and (taken.array() == producer.array).all()
    taken.release()
    assert producer.deleted == 1
    producer = Producer()
    gemmery.as_tensor(producer).__dlpack__(**options)  # not consumed
    gc.collect()
    assert producer.deleted == 1


def test_what_may_not_be_written_is_said_or_not_exported():
    tensor = gemmery.as_tensor(Producer(flags=1))
    taken = Consumer(tensor.__dlpack__(max_version=(1, 0)))
    assert taken.managed.flags == 1
    taken.release()
    for options in UNVERSIONED:
        with pytest.raises(BufferError, match=r"may not be written.*max_version=\(1, 0\), or for a copy"):
            tensor.__dlpack__(**options)
    for options in ({}, {"max_version": (1, 0)}):
        taken = Consumer(tensor.__dlpack__(copy=True, **options))
        assert taken.name == OLD or taken.managed.flags == 2, "a copy may be written"
        taken.release()


@pytest.mark.parametrize("options", [UNVERSIONED[0], VERSIONED[0]], ids=["before versions", "1.0"])
def test_a_copy_is_made_where_one_is_asked_for_alone(rng, options):
    numbers = rng.standard_normal((8, 3)).astype("f").T[:, 1:]
    before = numbers.copy()
    tensor = gemmery.as_tensor(numbers)
    for asked in ({}, {"copy": None}, {"copy": False}, {"dl_device": (1, 0)}, {"dl_device": (1, 0), "copy": False}):
        taken = Consumer(tensor.__dlpack__(**asked, **options))
        assert taken.tensor.data == numbers.ctypes.data, asked
        taken.release()
    for asked in ({"copy": True}, {"copy": numpy.True_}, {"dl_device": (1, 0), "copy": True}):
        taken = Consumer(tensor.__dlpack__(**asked, **options))
        assert taken.tensor.data != numbers.ctypes.data and (taken.array() == before).all()
        assert taken.name == OLD or taken.managed.flags == 2, "DLPack's flag of copies"
        taken.array()[...] = 0
        taken.release()
        assert (numbers == before).all()


def test_a_copy_of_nothing_is_nothing():
    taken = Consumer(gemmery.empty((0, 3), "f32").__dlpack__(copy=True))
    assert [taken.tensor.shape[i] for i in range(2)] == [0, 3]
    taken.release()


def test_devices_that_a_tensor_does_not_go_to_are_refused():
    here, far = gemmery.empty((2, 3), "f32"), gemmery.Tensor(1 << 40, (2, 3), "f32", device="cuda:3")
    for tensor, device in [(here, (2, 0)), (here, (1, 1)), (far, (2, 0)), (far, (13, 3)), (far, (3, 0))]:
        with pytest.raises(BufferError, match=rf"its own device or the CPU.*dl_device=\({device[0]}, {device[1]}\)"):
            tensor.__dlpack__(dl_device=device, max_version=(1, 0))
    with pytest.raises(BufferError, match="cuda:3 is not on the CPU without a copy"):
        far.__dlpack__(dl_device=(1, 0), copy=False, max_version=(1, 0))
    Consumer(far.__dlpack__(dl_device=(2, 3), copy=False, max_version=(1, 0), stream=-1)).release()


@pytest.mark.parametrize("pair", [1, (1,), (1, 0, 0), "ab", ("1", 0), (1, None), (2**80, 0)], ids=repr)
def test_versions_and_devices_that_are_no_pairs_are_refused(pair):
    tensor = gemmery.empty((2, 3), "f32")
    with pytest.raises(TypeError, match=r"max_version: expected None or a pair \(major, minor\)"):
        tensor.__dlpack__(max_version=pair)
    with pytest.raises(TypeError, match=r"dl_device: expected None or a pair \(device type, index\)"):
        tensor.__dlpack__(dl_device=pair)


def test_numpy_copies_when_it_is_told_to(rng):
    tensor = gemmery.empty((4, 5), "f32")
    numbers = rng.standard_normal((4, 5)).astype("f")
    tensor.copy_from(numbers)
    shared, copied = numpy.from_dlpack(tensor, copy=False), numpy.from_dlpack(tensor, copy=True)
    shared[...] = 0
    assert (copied == numbers).all() and (numpy.from_dlpack(tensor) == 0).all()


# --- the C functions of a framework ----------------------------------------------------------------

FromObject = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(ctypes.c_void_p))
CurrentStream = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int32, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p))


class ExchangeApi(ctypes.Structure):
    pass


ExchangeApi._fields_ = (
    ("major", ctypes.c_uint32),
    ("minor", ctypes.c_uint32),
    ("previous", ctypes.POINTER(ExchangeApi)),
    ("allocate", ctypes.c_void_p),
    ("managed_from_object", FromObject),
    ("managed_to_object", ctypes.c_void_p),
    ("view_of_object", ctypes.c_void_p),
    ("current_stream", CurrentStream),
)


def make_framework(stream=77, *, as_integer=False, newer=False):
    """Makes a class of tensors with DLPack's table of C functions."""

    @FromObject
    def managed_from_object(tensor, out):
        if tensor.fails:
            return -1
        out[0] = ctypes.addressof(tensor.managed)
        return 0

    @CurrentStream
    def current_stream(device_type, device_index, out):
        assert device_type == 2
        out[0] = stream + device_index
        return 0

    table = ExchangeApi(1, 3, None, None, managed_from_object, None, None, current_stream)
    if newer:
        table = ExchangeApi(2, 0, ctypes.pointer(table), None, FromObject(), None, None, CurrentStream())

    class Tensor(Producer):
        fails = False
        keep = table
        functions = (managed_from_object, current_stream)
        __dlpack_c_exchange_api__ = (
            ctypes.addressof(table) if as_integer else PyCapsule_New(ctypes.addressof(table), b"dlpack_exchange_api", None)
        )

        def __dlpack__(self, **options):
            raise AssertionError("the C functions serve")

    return Tensor


@pytest.mark.parametrize("options", [{}, {"as_integer": True}, {"newer": True}], ids=["capsule", "integer", "newer"])
def test_the_c_functions_of_a_framework_serve(options):
    producer = make_framework(**options)()
    view = gemmery.as_tensor(producer)
    assert view.shape == (3, 4) and view.base is producer
    del view
    assert producer.deleted == 1


def gpu_arguments(*tensors):
    """Arguments of tensors that report cuda:0; never run."""
    spare = itertools.count(1 << 40, 1 << 20)
    made = [t if t is not None else gemmery.Tensor(next(spare), (3, 3), "f32") for t in (*tensors, None, None, None)[:3]]
    return gemmery.GemmArguments(*made)


def square():
    return numpy.zeros((3, 3), "f")


def test_the_current_stream_is_that_of_the_operands_framework():
    tensor = make_framework(stream=77)
    assert _core.resolve_stream(None, gpu_arguments(tensor(square(), device=(2, 0)))) == 77
    assert _core.resolve_stream(None, gpu_arguments()) == 0, "nobody has one: the legacy default stream"
    args = gpu_arguments(tensor(square(), device=(2, 0)), tensor(square(), device=(2, 0)))
    assert _core.resolve_stream(None, args) == 77
    assert _core.resolve_stream(5, args) == 5
    far = tensor(square(), device=(2, 3))
    other = [gemmery.Tensor(1 << address, (3, 3), "f32", device="cuda:3") for address in (40, 41)]
    assert _core.resolve_stream(None, gemmery.GemmArguments(far, *other)) == 80, "of the operands' device"


def test_two_frameworks_that_differ_need_an_explicit_stream():
    one, other = make_framework(77)(square(), device=(2, 0)), make_framework(78)(square(), device=(2, 0))
    args = gpu_arguments(one, other)
    with pytest.raises(ValueError, match="frameworks of A and B have different current streams"):
        _core.resolve_stream(None, args)
    assert _core.resolve_stream(9, args) == 9
    default = make_framework(1)(square(), device=(2, 0))
    assert _core.resolve_stream(None, gpu_arguments(default, make_framework(0)(square(), device=(2, 0)))) == 0


def test_operands_on_two_devices_are_refused():
    tensor = make_framework()
    with pytest.raises(ValueError, match="cuda:1"):
        gpu_arguments(tensor(square(), device=(2, 0)), tensor(square(), device=(2, 1)))


# --- stream objects ------------------------------------------------------------------------------


class Torch:
    cuda_stream = 101
    device_index = 0


class CuPy:
    ptr = 102


class Numba:
    handle = ctypes.c_void_p(103)


class Protocol:
    def __cuda_stream__(self):
        return (0, 104)


class ProtocolProperty:
    __cuda_stream__ = (0, 105)


class Driver:
    def __int__(self):
        return 106


@pytest.mark.parametrize(
    ("stream", "handle"),
    [(7, 7), (Torch(), 101), (CuPy(), 102), (Numba(), 103), (Protocol(), 104), (ProtocolProperty(), 105), (Driver(), 106)],
    ids=lambda value: type(value).__name__,
)
def test_streams_of_every_library_have_handles(stream, handle):
    assert gemmery.utils.to_cuda_stream(stream) == handle


def test_what_is_no_stream_is_refused():
    for wrong in ("stream", 1.5, object(), []):
        with pytest.raises(TypeError, match="stream: expected"):
            gemmery.utils.to_cuda_stream(wrong)

    class Later:
        __cuda_stream__ = (1, 5)

    with pytest.raises(gemmery.UnsupportedError, match="version 0"):
        gemmery.utils.to_cuda_stream(Later())


class Core:
    """A stream like those of cuda.core."""

    def __init__(self, device_id):
        self.device = type("Device", (), {"device_id": device_id})()
        self.__cuda_stream__ = (0, 107)


@pytest.mark.parametrize("told", ["torch", "cupy", "cuda.core"])
def test_streams_that_say_they_belong_to_another_device_are_refused_where_they_are_used(told):
    def stream_of(index):
        stream = {"torch": Torch, "cupy": CuPy, "cuda.core": lambda: Core(index)}[told]()
        if told == "torch":
            stream.device_index = index
        elif told == "cupy":
            stream.device_id = index
        return stream

    args = gpu_arguments()
    with pytest.raises(gemmery.InvalidArgumentError, match="stream of cuda:0, got a stream of cuda:1") as raised:
        _core.resolve_stream(stream_of(1), args)
    assert raised.value.operand == "stream"
    assert _core.resolve_stream(stream_of(0), args) == gemmery.utils.to_cuda_stream(stream_of(1)), "a handle is a handle"
    if told == "cupy":
        assert _core.resolve_stream(stream_of(-1), args) == 102, "CuPy does not know of whose it is"


def test_streams_of_our_own():
    stream = gemmery.Stream("emulated:h200")
    assert stream.device == "emulated:h200" and stream.__cuda_stream__()[0] == 0
    stream.synchronize()


def test_the_first_tensor_of_a_process_may_have_no_memory():
    pytest.importorskip("torch", reason="torch is not installed")
    code = "import gemmery, torch; print(gemmery.as_tensor(torch.empty(4, 6, device='meta')).is_fake)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout == "True\n", done.stderr
