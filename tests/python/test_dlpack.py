# SPDX-License-Identifier: Apache-2.0
"""Tensors of producers that speak DLPack in all its forms, and streams in all theirs; the producers are fakes."""

import ctypes
import gc
import itertools

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
    """A matrix of float32, exported as told; counts the calls of its deleter."""

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
    """A class of tensors with DLPack's table of C functions."""

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
    """Arguments of tensors that say they lie on cuda:0; never run."""
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
    """As cuda.core has it."""

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
    with pytest.raises(gemmery.InvalidArgumentError, match="stream of cuda:0, got one of cuda:1") as raised:
        _core.resolve_stream(stream_of(1), args)
    assert raised.value.operand == "stream"
    assert _core.resolve_stream(stream_of(0), args) == gemmery.utils.to_cuda_stream(stream_of(1)), "a handle is a handle"
    if told == "cupy":
        assert _core.resolve_stream(stream_of(-1), args) == 102, "CuPy does not know of whose it is"


def test_streams_of_our_own():
    stream = gemmery.Stream("emulated:h200")
    assert stream.device == "emulated:h200" and stream.__cuda_stream__()[0] == 0
    stream.synchronize()
