# SPDX-License-Identifier: Apache-2.0
"""The interface of the native module. Users import from `gemmery`; the logic is in C++."""

import enum
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, TypeVar, final, overload

from gemmery import kernel as _kernel
from gemmery.arguments import PerformanceControls
from gemmery.metadata import KernelMetadata
from gemmery.scales import ScaledOperand
from gemmery.status import Status
from gemmery.typing import TensorLike

_T = TypeVar("_T")

# What stands for an element type: DType, its name ("float16", "f16", "<f2"), a torch, numpy or ml_dtypes dtype.
DTypeLike = Any
# What stands for a stream: int (a handle), torch, cupy, numba, cuda.core, anything with `__cuda_stream__`.
StreamLike = Any
# "cpu", "cuda:1", "emulated:h200", or an object that prints so (torch.device).
DeviceLike = Any

# --- types, devices ------------------------------------------------------------------------------

class DType(enum.Enum):
    """The element types of tensors."""

    float64 = ...
    float32 = ...
    float16 = ...
    bfloat16 = ...
    float8_e4m3fn = ...
    float8_e5m2 = ...
    float8_e8m0fnu = ...
    float6_e2m3fn = ...
    float6_e3m2fn = ...
    float4_e2m1fn = ...
    int4 = ...
    uint4 = ...
    int8 = ...
    uint8 = ...
    int32 = ...
    uint32 = ...
    @property
    def bits(self) -> int:
        """The bits of one element."""

    @property
    def alias(self) -> str:
        """The short name: "f16"."""

    @property
    def is_floating(self) -> bool:
        """True for floating types."""

def dtype(of: DTypeLike) -> DType:
    """The element type of `of`. ValueError for an unknown word, TypeError for an object that is no element type."""

class DeviceInfo:
    """The facts of a device; rates are peaks by data sheet or driver."""

    @property
    def name(self) -> str:
        """The name of the device: "NVIDIA H100 80GB HBM3"."""

    @property
    def target(self) -> str:
        """What to compile for: "sm_90a"."""

    @property
    def cc(self) -> int:
        """90 for sm_90; 0 for the CPU."""

    @property
    def multiprocessors(self) -> int:
        """The number of multiprocessors; of the CPU, of cores."""

    @property
    def shared_bytes_per_block(self) -> int:
        """Bytes of shared memory that one block may use."""

    @property
    def l2_bytes(self) -> int:
        """Bytes of the L2 cache."""

    @property
    def memory_bytes(self) -> int:
        """Bytes of the device's memory."""

    @property
    def clock_ghz(self) -> float:
        """The highest clock of the multiprocessors in GHz."""

    @property
    def bandwidth_bytes_per_second(self) -> float:
        """The peak bandwidth of memory in bytes per second."""

    @property
    def unconfirmed_facts(self) -> str:
        """The facts that no source confirms, such as "L2, clock"; empty if all are confirmed, as those of a driver are."""

def devices() -> list[str]:
    """The devices of this machine: ["cpu", "cuda:0"]. GPUs are looked for at the first call."""

def device_info(device: DeviceLike | str) -> DeviceInfo:
    """The facts of a device of this machine, or of one of `known_device_names()`, which this machine need not have."""

def known_device_names() -> list[str]: ...
def parse_target(cc: int | str) -> str:
    """The canonical target: "sm_90a" for 90, "90a" and "sm_90a"; "cpu". ValueError for anything else."""

def version() -> str:
    """The version of the library: "0.1.0"."""

def set_leak_warnings(are_wanted: bool) -> None:
    """Enables or disables reports about objects that are alive when the interpreter exits."""

# --- tensors -------------------------------------------------------------------------------------

@final
class Tensor:
    """A view of at most five dimensions; it keeps its memory alive."""

    def __init__(
        self,
        data: int,
        shape: Sequence[int],
        dtype: DTypeLike,
        strides: Sequence[int] | None = None,
        device: DeviceLike = "cuda:0",
        owner: object = None,
    ) -> None:
        """Memory at an address; strides in elements (None: packed, row major). `owner` is kept alive."""

    @property
    def data_ptr(self) -> int:
        """The address of the first element."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents in elements."""

    @property
    def strides(self) -> tuple[int, ...]:
        """Strides in elements; for a batch by pointers only those of rows and columns."""
    @property
    def has_pointers(self) -> bool:
        """True for a batch by pointers; `data_ptr` is then the address of their array."""
    @property
    def dtype(self) -> DType:
        """The type of the elements."""

    @property
    def device(self) -> str:
        """Where the memory is: "cpu", "cuda:0"."""

    @property
    def is_fake(self) -> bool:
        """True for a tensor without memory (torch meta, FakeTensor)."""

    @property
    def is_read_only(self) -> bool:
        """True if the owner forbids writes."""

    @property
    def base(self) -> object:
        """The object that it was made from; None for memory from the library."""

    def copy_from(self, source: TensorLike, stream: StreamLike = None) -> None:
        """Copies from a tensor of the same shape and type on any device; both must be packed. On GPUs it waits for the copy."""

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> object:
        """A capsule of DLPack 1.x if max_version allows it, otherwise of the unversioned form. If a copy is requested (for
        another device, the CPU), it is complete on return. BufferError for a type that DLPack cannot describe or an impossible
        device."""

    def __dlpack_device__(self) -> tuple[int, int]: ...

def as_tensor(of: TensorLike) -> Tensor:
    """A view of a tensor of any framework; nothing is copied. The memory is kept alive by the view."""

def empty(shape: Sequence[int], dtype: DTypeLike, device: DeviceLike = "cpu") -> Tensor:
    """Memory from the library: packed, row major, not initialised."""

def pointer_array(
    pointers: TensorLike,
    shape: tuple[int, ...],
    dtype: DTypeLike,
    strides: tuple[int, int] | None = None,
    alignment: int = 16,
) -> Tensor: ...
def pointer_array_of(matrices: tuple[TensorLike, ...], alignment: int | None = None) -> Tensor: ...

@final
class Stream:
    """A stream of a device, for programs without a framework; destroyed with the object."""

    def __init__(self, device: DeviceLike = "cuda:0") -> None: ...
    @property
    def device(self) -> str:
        """The device of the stream: "cuda:0"."""

    def __cuda_stream__(self) -> tuple[int, int]: ...
    def synchronize(self) -> None:
        """Waits for everything on the stream. LaunchError if work on it failed."""

def synchronize(stream: StreamLike = None, device: DeviceLike = "cuda:0") -> None:
    """Waits for everything on a stream of a device."""

def is_capturing(stream: StreamLike, device: DeviceLike) -> bool:
    """True if a stream of a device is being captured, whoever began the capture: work on it is recorded into a graph instead of
    run. False on the CPU."""

def call_beside_captures(device: DeviceLike, work: Callable[[], _T]) -> _T:
    """Calls a function that may allocate memory and load code although other streams of the process are being captured; their
    captures stay valid."""

def resolve_stream(stream: StreamLike, args: RuntimeArguments | None = None) -> int:
    """The handle of a stream of any framework. None: the stream that the frameworks of args' operands report as current for
    their device. ValueError if two frameworks differ."""

# --- arguments -----------------------------------------------------------------------------------

class RuntimeArguments:
    """The base class of all arguments of operations."""

    def __init__(
        self, *, epilogue: EpilogueArguments | None = None, performance: PerformanceControls | None = None
    ) -> None: ...
    epilogue: EpilogueArguments | None
    """The EpilogueArguments, or None."""
    performance: PerformanceControls | None
    """The PerformanceControls, or None."""

class GemmArguments(RuntimeArguments):
    """Dense GEMM, one or a batch: out = alpha A @ B + beta C, then the epilogue.

    A (M, K) or (L, M, K), B (K, N) or (L, K, N), out (M, N) or (L, M, N); C broadcasts to out. A batch of 1, or a matrix
    without a batch dimension, is repeated for the whole batch. Strides may be any, but the elements of out must not overlap.
    All memory is on one device. Nothing is copied; the object keeps its operands alive. A and B may be a gemmery.ScaledOperand.

    accumulator_type: the type of the accumulators; None: the default for A's and B's types
        (float32 for floating types of up to 32 bits, int32 for integers, float64).
    epilogue: EpilogueArguments; their program replaces alpha A @ B + beta C.
    performance: PerformanceControls.
    math: "native", or a way to compute with other instructions, such as "tf32" for float32.

    Everything is checked here, once. ValueError (InvalidArgumentError) names the operand, what was expected and what was given;
    TypeError for an object that is no tensor.

        args = gemmery.GemmArguments(A, B, out, "float32")
        gemmery.get_kernels(args)[0].run(args)
    """

    def __init__(
        self,
        A: TensorLike | ScaledOperand,
        B: TensorLike | ScaledOperand,
        out: TensorLike,
        accumulator_type: DTypeLike = None,
        *,
        epilogue: EpilogueArguments | None = None,
        performance: PerformanceControls | None = None,
        C: TensorLike | None = None,
        alpha: float = 1.0,
        beta: float = 0.0,
        math: str = "native",
    ) -> None: ...
    A: Any
    """The left operand as it was given; read only."""
    B: Any
    """The right operand as it was given; read only."""
    out: Any
    """The result as it was given; runs write it."""
    C: Any
    """C as it was given, or None."""
    views: dict[str, Tensor]
    """The operands as the library sees them: rank 3, broadcast dimensions with stride 0 (of a convolution A and B: rank 5,
    channels last); by name."""
    accumulator_type: DType
    """The type of the accumulators."""
    epilogue: EpilogueArguments | None
    performance: PerformanceControls | None
    alpha: float
    """The factor of A @ B."""
    beta: float
    """The factor of C."""
    math: str
    """How products are computed: "native", "tf32", …."""
    problem: str
    """The problem in one line of text."""
    problem_size: tuple[int, int, int, int]
    """(M, N, K, L): extents in elements; L is the number of matrices in the batch."""
    device: str
    """Where the operands are: "cpu", "cuda:0"."""
    is_fake: bool
    """True if an operand has no memory (torch meta, FakeTensor): such arguments can be planned for, not run."""
    must_finish: bool
    """True if a run waits until the work is done, because an operand's framework (JAX) may reuse memory at once."""
    def set_data(self, operand: str, tensor: TensorLike | int) -> None:
        """Replaces the memory of an operand by a tensor, or an address, of the same shape, strides, type and device.

        The tensor is kept alive; the memory at an address is not. Runs that have started still use the previous memory.
        ValueError for an unknown operand, another shape, type or device, or a lower alignment.
        """

    @property
    def _identity(self) -> bytes: ...
    def set_scalars(self, alpha: float, beta: float) -> None:
        """Replaces alpha and beta of the default program, for later runs. ValueError with an epilogue."""

    def set_scalar(self, name: str, value: float) -> None:
        """Replaces a number of the epilogue by its name, for later runs. ValueError if the epilogue has no such number."""

    def to_operands_metadata(self) -> Any:
        """The operands as metadata, the form in which kernels declare their requirements: a
        gemmery.metadata.GemmOperandsMetadata or ElementwiseOperandsMetadata."""

    def to_device(self, device: DeviceLike = None) -> GemmArguments:
        """The same arguments with operands copied to a device (default: the first GPU); their `sync()` copies results back."""

    def sync(self, stream: StreamLike = None) -> None:
        """Waits for the work on the stream, and copies the results of staged arguments back to the user's arrays."""

class ElementwiseArguments(GemmArguments):
    """An elementwise operation: out = A + B, or the epilogue's program of A, B and the operands that it names.

    A and B broadcast to out, of rank 2 or 3. Memory is on one device and is kept alive. ValueError names the operand
    that does not fit.
    """

    def __init__(
        self,
        A: TensorLike,
        B: TensorLike,
        out: TensorLike,
        *,
        epilogue: EpilogueArguments | None = None,
        performance: PerformanceControls | None = None,
    ) -> None: ...

class GroupedGemmArguments(GemmArguments):
    """Grouped GEMM: G GEMMs whose M, N or K differs. T is the extent that all groups share, gaps between them included.

    M differs: A (T, K), B (G, K, N), out (T, N).    out[s:e] = epilogue(A[s:e] @ B[g])
    N differs: A (G, M, K), B (K, T), out (M, T).    out[:, s:e] = epilogue(A[g] @ B[:, s:e])
    K differs: A (M, T), B (T, N), out (G, M, N).    out[g] = epilogue(A[:, s:e] @ B[s:e])
    masked:    A (G, M, K), B (G, K, N), out (G, M, N); the sizes say how much of each matrix is used, along `ragged`: "m",
               "n" or "k".
    A list of tensors for each of A, B and out (and C): problems with separate extents; alpha and beta may be lists, too.

    The sizes are one of: `offsets`, the end of every group (torch's offs, cutlass's offsets); `prefix`, a 0 and the ends;
    `counts`, the size of every group; `labels`, the group of every row or column, -1 for none; `masked`. Arrays of int32
    or int64 on the operands' device are read when the work runs; they may change between runs and must not share memory with
    out. Numbers in a list, and arrays with read_now, are read when the arguments are made.

    outside: elements of out that belong to no group stay "untouched" or become "zero".
    alignment: a group starts at the next multiple of this after the end of the previous group.
    expected: the average size of a group; a hint for predicted times that changes no result.
    check: checks the sizes, which must be in host memory, when the arguments are made. On the CPU every run checks them.

    gather, scatter: T indices of int32 or int64 on the operands' device, read when the work runs. Row t of all groups (column
    where N differs) is row gather[t] // gather_divide of A, which may have any number of rows, and is stored to row scatter[t]
    of out. A gather index of -1 reads zeros, a scatter index of -1 stores nothing; each row of out must get at most one. The
    epilogue, C included, applies to out's rows. On the CPU every run checks indices before it writes; elsewhere an index out of
    range is treated like -1.

    Operands of an epilogue broadcast to (G, M, N), with T for the extent that differs: (G, 1, N) is one row for every group.
    Kernels of the CPU run every form; docs/grouped.md says what each GPU family runs.
    ValueError names the operand or the first size that does not fit.
    """

    def __init__(
        self,
        A: TensorLike | ScaledOperand | list[TensorLike],
        B: TensorLike | ScaledOperand | list[TensorLike],
        out: TensorLike | list[TensorLike],
        accumulator_type: DTypeLike = None,
        offsets: TensorLike | list[int] | None = None,
        epilogue: EpilogueArguments | None = None,
        *,
        performance: PerformanceControls | None = None,
        C: TensorLike | list[TensorLike] | None = None,
        alpha: float | list[float] = 1.0,
        beta: float | list[float] = 0.0,
        math: str = "native",
        prefix: TensorLike | list[int] | None = None,
        counts: TensorLike | list[int] | None = None,
        labels: TensorLike | list[int] | None = None,
        masked: TensorLike | list[int] | None = None,
        ragged: str = "m",
        outside: str = "untouched",
        alignment: int = 1,
        expected: int = 0,
        read_now: bool = False,
        check: bool = False,
        gather: TensorLike | None = None,
        gather_divide: int = 1,
        scatter: TensorLike | None = None,
    ) -> None: ...
    A: Any
    """The left operand, or the list of them, as it was given; read only."""
    B: Any
    """The right operand, or the list of them, as it was given; read only."""
    out: Any
    """The result, or the list of them, as it was given; runs write it."""
    C: Any
    """The addend, or the list of them, as it was given; or None."""
    offsets: Any
    """The array of sizes as it was given, in any form; None for numbers in a list."""
    gather: TensorLike | None
    """The gather indices as they were given, or None."""
    scatter: TensorLike | None
    """The scatter indices as they were given, or None."""
    def set_data(self, operand: str, tensor: TensorLike | int) -> None:
        """Replaces the tensor or address of an operand; "sizes", "gather" and "scatter" take other arrays of the same
        length."""

    def to_device(self, device: DeviceLike = None) -> GemmArguments:
        """Refused: copy the tensors to the device and make new arguments."""

class ConvArguments(GemmArguments):
    """A convolution in one to three spatial dimensions: kind "fprop", "dgrad" or "wgrad".

    fprop: A is x (N, C, H, W), B is w (K, C/g, R, S), out is y (N, K, P, Q).
    dgrad: A is dy, B is w, out is dx.
    wgrad: A is dy, B is x, out is dw.

    P = (H + 2 padding - dilation (R - 1) - 1) // stride + 1

    Shapes are in torch's order, also (N, C, W) and (N, C, D, H, W); memory is channels last: dimension 1 has stride 1. In
    torch that is `x.contiguous(memory_format=torch.channels_last)`, in NumPy `numpy.moveaxis(array, -1, 1)` of an array
    (N, H, W, C). Strides of extents 0 and 1 do not matter. The pixels of out (taps of dw) must be equally spaced.

    stride, padding, dilation: a number, or one for each spatial dimension; padding may be "same" (stride 1) or "valid".
    upper_padding: the padding after the last pixel, if it differs from that before the first.
    groups: of channels; groups = C is depthwise. mode: "cross_correlation", or "convolution", which reverses the taps of w.

    C and the operands of an epilogue broadcast to out by NumPy's rule in torch's order: bias (K, 1, 1). A reduction's result
    has extents of 1 along reduced dimensions: (K, 1, 1) for a sum per channel. Operands that vary along height but not along
    width are refused, and, with groups, those that vary with the image alone.
    Kernels of the CPU run all of these. On GPUs simt, sm80 and sm90 run all three kinds; docs/convolution.md has their limits.
    Every family runs a convolution that is a plain GEMM (1x1 at stride 1).
    ValueError names the operand.
    """

    def __init__(
        self,
        kind: Literal["fprop", "dgrad", "wgrad"],
        A: TensorLike,
        B: TensorLike,
        out: TensorLike,
        accumulator_type: DTypeLike = None,
        *,
        stride: int | Sequence[int] = 1,
        padding: int | Sequence[int] | Literal["same", "valid"] = 0,
        upper_padding: int | Sequence[int] | None = None,
        dilation: int | Sequence[int] = 1,
        groups: int = 1,
        mode: Literal["cross_correlation", "convolution"] = "cross_correlation",
        epilogue: EpilogueArguments | None = None,
        performance: PerformanceControls | None = None,
        C: TensorLike | None = None,
        alpha: float = 1.0,
        beta: float = 0.0,
        math: str = "native",
    ) -> None: ...
    def to_device(self, device: DeviceLike = None) -> GemmArguments:
        """Refused: copy the tensors to the device and make new arguments."""

# --- discovery -----------------------------------------------------------------------------------

# A registered subclass, which overrides what is final for users.
class Kernel(_kernel.Kernel):  # type: ignore[misc]
    """A kernel of the library (own kernels in Python: gemmery.Kernel)."""

    @property
    def name(self) -> str:
        """Stable and unique; find_kernel reads it back."""

    @property
    def provider(self) -> str:
        """The name of the provider."""

    @property
    def family(self) -> str:
        """The family of kernels: "simt", "sm90"."""

    @property
    def is_default_epilogue(self) -> bool:
        """True if the epilogue is alpha * accum + beta * C."""

    @property
    def is_deterministic(self) -> bool:
        """True if equal inputs give equal bits."""

    @property  # type: ignore[misc]
    def metadata(self) -> KernelMetadata:
        """Operands, design, epilogue and targets, as filters see them."""

    @property
    def predicted_us(self) -> float | None:  # type: ignore[override]
        """Predicted microseconds for the problem of the query."""

    @property
    def is_measured(self) -> bool:  # type: ignore[override]
        """True if the time was measured on this device, not predicted."""

    @property
    def design(self) -> dict[str, str]:
        """The design of the kernel as text: tile, stages, …."""

    @property
    def targets(self) -> list[str]:
        """The targets that it can be compiled for: ["sm_90a"]."""

    @property
    def _rules_key(self) -> bytes: ...
    @property
    def operand_rules(self) -> dict[str, Any]:
        """Type, layout and alignment (bytes) of each operand."""

    @property
    def epilogue_text(self) -> str:
        """The program of the epilogue as text."""

    def supports(self, args: RuntimeArguments, cc: int | str | None = None) -> Status:  # type: ignore[misc]
        """True if `run` supports these arguments, on their device or on one of `cc`; otherwise a Status with the reason."""

    def compile(self, args: RuntimeArguments | None = None, cc: int | str | None = None) -> CompiledArtifact:
        """Compiles for the device of the arguments, or for `cc`, and returns the artifact; takes cached code if there is any.

        UnsupportedError if the kernel does not support the arguments, CompileError if the compiler rejects the source,
        UnavailableError without a compiler. Ctrl-C ends it.
        """

    def run(  # type: ignore[misc]
        self,
        args: RuntimeArguments,
        compiled_artifact: CompiledArtifact | None = None,
        stream: StreamLike = None,
        workspace: TensorLike | None = None,
        assume_supported_args: bool = False,
        *,
        max_sms: int = 0,
        verify: bool = False,
    ) -> None:
        """verify: waits, and raises VerificationError if an element is outside its proven bound."""

    def get_workspace_size(self, args: RuntimeArguments) -> int:
        """Bytes of scratch memory that `run` needs for these arguments."""

    def initialize_workspace(self, args: RuntimeArguments, workspace: TensorLike) -> None:
        """Does nothing: no kernel of the library needs it."""

    def __eq__(self, other: object) -> bool: ...
    def __hash__(self) -> int: ...

def get_kernels(
    args: GemmArguments | None = None,
    metadata_filter: Callable[[KernelMetadata], bool] | None = None,
    cc: int | str | None = None,
    providers: Iterable[str] | None = None,
) -> list[Kernel]: ...
def find_kernel(name: str) -> Kernel | None:
    """The kernel with this name; None if no family has it."""

def provider_names() -> list[str]:
    """Names of the providers, best first."""

class Reason:
    provider: str
    family: str
    design_class: str
    failed: str  # the first constraint that failed; "" where it fits
    fitting: int
    nearest: list[Kernel]

class Explanation:
    problem: str
    device: str
    reasons: list[Reason]

def explain(args: GemmArguments, cc: int | str | None = None) -> Explanation: ...

# --- artifacts -----------------------------------------------------------------------------------

class CompiledArtifact:
    """A compiled kernel. Immutable."""

    def __init__(self, compiled_obj: object, kernel_obj: object) -> None:
        """The artifact of a user's kernel; those of the library come from `Kernel.compile`."""

    @property
    def compiled_obj(self) -> object:
        """What the user's kernel returned from `compile`; for a kernel of the library, the artifact itself."""

    @property
    def kernel_obj(self) -> Any:
        """The kernel that was compiled."""

    @property
    def is_native(self) -> bool:
        """True for a kernel of the library. The members below are for these; others raise ValueError."""

    @property
    def targets(self) -> list[str]:
        """The targets for which it has code: ["sm_90a"]. Only an artifact from a file has more than one."""

    @property
    def source(self) -> str:
        """The CUDA C++ that is compiled for the first target; empty for kernels of the CPU."""

    @property
    def source_with_headers(self) -> str:
        """The source with the text of the device headers in place of its #include lines: one file."""

    @property
    def ptx(self) -> str:
        """PTX for the first target; compiled now if the artifact lacks it. UnsupportedError for kernels of the CPU."""

    @property
    def cubin(self) -> bytes:
        """The ELF file of machine code for the first target; empty if there is PTX only. UnsupportedError as `ptx`."""

    def sass(self) -> str:
        """The machine code as text, by nvdisasm, which GEMMERY_NVDISASM may name. UnavailableError without one."""

    @property
    def log(self) -> str:
        """The compiler's log."""

    @property
    def compile_ms(self) -> float:
        """Milliseconds that the compilation took; 0 for code from a cache or a file."""

    @property
    def resources(self) -> dict[str, int] | None:
        """Registers of a thread; bytes of static shared memory, spilled stores and loads, and stack. None for the CPU."""

    def load_on(self, device: DeviceLike) -> None:
        """Loads the code on a device now instead of in the first run; required before a capture."""

    def bind(self, args: GemmArguments) -> PreparedLaunch:
        """Packs a launch for these arguments, whose memory it keeps alive, and reserves the workspace that it needs."""

    def save(self, path: str | os.PathLike[str], *, problems: Sequence[str] = (), with_ptx: bool = False) -> None:
        """Writes a file that `gemmery.artifact.load` loads without a compiler; `problems` are kept for people to read."""

class PreparedLaunch:
    """A launch with all parameters packed. Only one thread at a time may use it."""

    def __call__(self, stream: StreamLike = None) -> None: ...
    def launch(self, stream: StreamLike = None) -> None:
        """Enqueues the kernel on a stream and returns; the same as calling the object.

        None is the stream that the operands' framework reports as current. The call checks nothing and allocates nothing, so it
        may be captured into a graph. LaunchError if the driver refuses the launch.
        """

    def set_data(self, operand: str, tensor: TensorLike | int) -> None:
        """As GemmArguments.set_data; the arguments from which it was made do not change."""

    def set_scalars(self, alpha: float, beta: float) -> None:
        """Replaces alpha and beta for later launches."""

    def set_scalar(self, name: str, value: float) -> None:
        """Replaces a number of the epilogue by its name for later launches."""

    @property
    def args(self) -> GemmArguments:
        """The arguments from which it was made; it keeps them alive."""

def save_artifacts(path: str | os.PathLike[str], artifacts: Sequence[CompiledArtifact], *, with_ptx: bool = False) -> None: ...
def load_artifacts(path: str | os.PathLike[str]) -> list[CompiledArtifact]: ...
def compile_all(
    kernels: Sequence[Kernel],
    cc: int | str,
    jobs: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> list[CompiledArtifact | Exception]: ...

# --- kernels of users (gemmery.own_kernels) -------------------------------------------------------

def register_kernel(fields: Mapping[str, Any]) -> Kernel:
    """Registers a user's kernel from the fields that gemmery.own_kernels collects."""

def withdraw_kernel(kernel: Kernel) -> None: ...

# --- epilogues -----------------------------------------------------------------------------------

class Expression:
    """A value of a program. Copies share structure; building one has no side effects.

    + - * / unary - ** abs() < <= > >= == != & | ~ (of truth values), with numbers on either side.
    `bool(value)` raises TypeError.
    """

    def __init__(self, constant: float) -> None: ...
    def __add__(self, other: Expression | float) -> Expression: ...
    def __radd__(self, other: Expression | float) -> Expression: ...
    def __sub__(self, other: Expression | float) -> Expression: ...
    def __rsub__(self, other: Expression | float) -> Expression: ...
    def __mul__(self, other: Expression | float) -> Expression: ...
    def __rmul__(self, other: Expression | float) -> Expression: ...
    def __truediv__(self, other: Expression | float) -> Expression: ...
    def __rtruediv__(self, other: Expression | float) -> Expression: ...
    def __pow__(self, other: Expression | float) -> Expression: ...
    def __rpow__(self, other: Expression | float) -> Expression: ...
    def __neg__(self) -> Expression: ...
    def __pos__(self) -> Expression: ...
    def __abs__(self) -> Expression: ...
    def __lt__(self, other: Expression | float) -> Expression: ...
    def __le__(self, other: Expression | float) -> Expression: ...
    def __gt__(self, other: Expression | float) -> Expression: ...
    def __ge__(self, other: Expression | float) -> Expression: ...
    def __eq__(self, other: object) -> Expression: ...  # type: ignore[override]
    def __ne__(self, other: object) -> Expression: ...  # type: ignore[override]
    def __and__(self, other: Expression) -> Expression: ...
    def __or__(self, other: Expression) -> Expression: ...
    def __invert__(self) -> Expression: ...
    def __hash__(self) -> int: ...
    def __bool__(self) -> bool: ...

def accum() -> Expression: ...
def operand(name: str) -> Expression: ...
def cast(
    x: Expression,
    dtype: DTypeLike,
    rounding: Literal["nearest_even", "toward_zero"] = "nearest_even",
    overflow: Literal["natural", "saturate"] = "natural",
) -> Expression: ...
def call(function: str, operands: Sequence[Expression | float]) -> Expression:
    """Calls a function of the text form by name. ValueError for an unknown name or a wrong number of operands."""

def functions() -> dict[str, int]:
    """The rows of ops.def: names with the numbers of their operands."""

def function_names() -> list[str]:
    """The functions of the text form: rows of ops.def, their other names, those of define_op, the reductions, cast."""

def define_op(name: str, expression: str) -> None: ...

class Program:
    """A whole program. Immutable."""

    @overload
    def __init__(self, text: str) -> None: ...
    @overload
    def __init__(self, results: Sequence[tuple[str, Expression] | tuple[str, Expression, str]]) -> None:
        """(name, value) or (name, value, reduction), reduction "sum", "max", "min" or "amax"."""

    @property
    def text(self) -> str:
        """The program as text: "D = relu(accum)"."""

    @property
    def inputs(self) -> list[str]:
        """The names of the tensors and numbers that it reads."""

    @property
    def outputs(self) -> list[str]:
        """The names of the tensors that it writes."""

    def __eq__(self, other: object) -> bool: ...
    def __hash__(self) -> int: ...

class EpilogueArguments:
    """A program with its operands. `gemmery.EpilogueArguments` derives from it and traces callables."""

    def __init__(self, program: Program | str, operands: Mapping[str, TensorLike | float] = ...) -> None:
        """Tensors and numbers by name. If D is among them, runs write to it instead of `out`, which then gives only
        type and shape."""

    @property
    def program(self) -> Program:
        """The program that is applied to the accumulators."""

    @property
    def operands(self) -> dict[str, TensorLike | float]:
        """The tensors and numbers by name, as they were given."""

# --- verification, measurement -------------------------------------------------------------------

class VerifyReport:
    """The result of a check. `passed`: every element is within its bound, and nothing else was written. `without_bound`:
    elements without a bound."""

    passed: bool
    """True if every element is within its bound and nothing else was written."""
    seed: int
    """The seed of the random operands."""
    elements: int
    """The number of elements that were compared."""
    mismatches: int
    """The number of elements outside their bounds."""
    without_bound: int
    """The number of elements that have no bound and were not compared."""
    open: int
    """The former name of `without_bound`, until the next version."""
    worst_ratio: float
    """The largest error divided by its bound; at most 1 if it passed."""
    worst_error: float
    """The largest absolute error."""
    guard_violations: int
    """The number of bytes outside the result that were written."""
    method: str
    """How the exact result was computed."""
    first_failure: str
    """The first element outside its bound, with its values; "" if there is none."""

def verify(
    kernel: Kernel,
    problem: str | GemmArguments,
    *,
    fill: Literal["normal", "uniform", "integers"] = "normal",
    seed: int = 0,
    device: DeviceLike = None,
) -> VerifyReport:
    """Runs a kernel on random operands and checks every element against its proven bound.

    problem: a line of text, or arguments, of which only the problem is used; their memory is neither read nor written.
    device: where to run; None: the arguments' device, or the CPU for a line of text. The call waits for the result.
    UnsupportedError if the kernel does not support the problem.
    """

def check_result(args: GemmArguments, kernel: Kernel, stream: StreamLike = None) -> VerifyReport:
    """Checks the result in `out` against the reference, element by element; if it is on a GPU, it is copied first."""

def measure(
    kernel: Kernel, problem: str | GemmArguments, *, device: DeviceLike = None, samples: int = 11, sample_ms: float = 5.0
) -> dict[str, float]:
    """Times of a kernel on random data, in buffers that rotate and are larger than the cache; microseconds.

    problem, device: as in `verify`. samples: the number of timed batches; sample_ms: the minimum duration of a batch.
    Keys: median_us, minimum_us, maximum_us, quartile_low_us, quartile_high_us, flops_per_second, roofline_us (the minimum
    time by the device's peaks), roofline_share (roofline_us / median_us).
    """

def tune(
    problem: str | GemmArguments,
    *,
    budget_s: float = 30.0,
    candidates: int = 12,
    force: bool = False,
    device: DeviceLike = None,
    providers: Any = None,
    progress: Callable[[str, str, float], object] | None = None,
) -> dict[str, Any]: ...
def tuning_file() -> str: ...
def list_tunings() -> list[dict[str, Any]]: ...
def forget_tunings(problems: list[Any]) -> int: ...
def forget_all_tunings() -> int: ...
def doctor() -> str:
    """The libraries, devices and cache of this machine, as text."""

def run_program(words: list[str]) -> int:
    """The program `gemmery` in this process: obeys the words of a command line, the first of which is its name, and returns the
    exit code. UnavailableError where the package was built without the command line."""

# --- kernels on emulated devices; gemmery.emulate converts ----------------------------------------

class EmulatedPlace:
    """A place in the kernel, and the block and threads that were there. Unknown fields are -1, 0 or ""."""

    kernel: str
    """The name of the kernel, as in the source."""
    block: tuple[int, int, int]
    """The index of the block: (x, y, z)."""
    warp: int
    """The number of the warp in its block."""
    lane: int
    """The number of the lane in its warp."""
    ptx_line: int
    """The line of the PTX; the first is 1."""
    ptx: str
    """The instruction."""
    file: str
    """The source file."""
    line: int
    """The line of the source file."""
    call_file: str
    """The file that calls the outermost function that was inlined there."""
    call_line: int
    """The line of this call."""

class EmulatedLine:
    """An instruction of the kernel, and whether a lane has executed it."""

    ptx_line: int
    """The line of the PTX; the first is 1."""
    ptx: str
    """The instruction."""
    file: str
    """The source file, or ""."""
    line: int
    """The line of the source file, or 0."""
    has_run: bool
    """True if a lane has executed it."""

class EmulationFinding:
    """A fault at one place, under one or more schedules; str() is the report for people."""

    kind: str
    """ "race", "out of bounds", …; "results differ" of schedules."""
    message: str
    """What is wrong, and what to do."""
    place: EmulatedPlace | None
    """The EmulatedPlace of the fault, or None."""
    other: EmulatedPlace | None
    """The EmulatedPlace of the other access of a race, or None."""
    report: str
    """The report for people, as str() gives it."""
    is_by_the_letter: bool
    """True if a required order is missing, but no other result was possible in this run."""
    ended_block: bool
    """True if the block could not continue."""
    count: int
    """How often it was found."""
    seeds: list[int]
    """The seeds of the schedules that have it."""
    rule: str
    """The rule that suppresses it; "" without one."""

class EmulationReport:
    """The result of `gemmery.emulate`: true if no wrong result is possible and time did not run out; str() is the whole
    report."""

    kernel: str
    """The name of the kernel, as in the source."""
    findings: list[EmulationFinding]
    """The faults, one for each place."""
    outputs: list[tuple[int, bytes, int]]
    """Of each buffer: its argument, its contents after the first schedule, and the number of bytes never written."""
    schedules: int
    """The number of schedules that were run."""
    timed_out: bool
    """True if time ran out before the last schedule ended."""
    warp_instructions: int
    """Instructions executed, counted once for a warp."""
    lane_instructions: int
    """Instructions executed, counted for each lane."""
    coverage: list[EmulatedLine]
    """An EmulatedLine for each instruction, if coverage was requested."""
    unused_rules: list[str]
    """Rules that suppressed nothing."""
    passed: bool
    """True if no wrong result is possible and time did not run out."""

    def __bool__(self) -> bool: ...

def emulate(
    *,
    code: str,
    file: str,
    options: list[str],
    entry: str,
    device: str,
    grid: tuple[int, int, int],
    block: tuple[int, int, int],
    cluster: tuple[int, int, int],
    shared_bytes: int,
    arguments: list[tuple[Any, ...]],
    seed: int,
    seeds: int,
    stops_at_first: bool,
    timeout_s: float,
    sampled_blocks: int,
    wants_coverage: bool,
    rules: str,
) -> EmulationReport: ...

# --- the cache of compiled code ------------------------------------------------------------------

def cache_report() -> dict[str, Any]: ...
def list_cache() -> list[dict[str, Any]]: ...
def verify_cache() -> tuple[int, list[str]]: ...
def prune_cache(most_bytes: int) -> tuple[int, int]: ...
def clear_cache() -> tuple[int, int]: ...
def forward_logs(receiver: Callable[[int, str], None] | None, level: int = 30) -> None:
    """Calls receiver(level, text) in the main thread for each message of the library; None stops this."""

# --- the explicit description; gemmery.describe has the classes that users make ------------------

class OpcodeClass(enum.Enum):
    Simt = 0
    TensorOp = 1

class MathOperation(enum.Enum):
    multiply_add = 0
    multiply_add_saturate = 1
    multiply_add_fast_f32 = 2
    multiply_add_fast_f16 = 3
    multiply_add_fast_bf16 = 4
    xor_popc = 5
    multiply_add_complex = 6
    multiply_add_complex_gaussian = 7
    multiply_add_complex_fast_f32 = 8
    multiply_add_mixed_input_upcast = 9

class Element(enum.Enum):
    int8 = 0
    uint8 = 1
    int32 = 2
    float16 = 3
    bfloat16 = 4
    float32 = 5
    tfloat32 = 6
    float64 = 7
    float8_e4m3fn = 8
    float8_e5m2 = 9
    @property
    def dtype(self) -> DType: ...

class Layout(enum.Enum):
    RowMajor = 0
    ColumnMajor = 1
    RowMajorInterleaved32 = 2
    ColumnMajorInterleaved32 = 3
    TensorNHWC = 4
    TensorNC32HW32 = 5
    TensorC32RSK32 = 6

class SwizzlingFunctor(enum.Enum):
    IdentitySwizzle1 = 0
    IdentitySwizzle2 = 1
    IdentitySwizzle4 = 2
    IdentitySwizzle8 = 3
    HorizontalSwizzle = 4
    BatchedIdentitySwizzle = 5
    StridedDgradIdentitySwizzle1 = 6
    StridedDgradIdentitySwizzle4 = 7
    StridedDgradHorizontalSwizzle = 8

class SchedulerMode(enum.Enum):
    Device = 0
    Host = 1

class GemmMode(enum.Enum):
    Gemm = 0
    GemmSplitKParallel = 1
    Batched = 2
    Array = 3

class ConvOperator(enum.Enum):
    fprop = 0
    dgrad = 1
    wgrad = 2

class ConvMode(enum.Enum):
    cross_correlation = 0
    convolution = 1

class IteratorAlgorithm(enum.Enum):
    analytic = 0
    optimized = 1
    fixed_channels = 2
    few_channels = 3

class StrideSupport(enum.Enum):
    Strided = 0
    Unity = 1

class SplitKMode(enum.Enum):
    None_ = 0
    Serial = 1
    Parallel = 2

class Activation(enum.Enum):
    identity = 0
    relu = 1
    leaky_relu = 2
    tanh = 3
    sigmoid = 4
    silu = 5
    hardswish = 6
    gelu = 7

class MathInstruction:
    def __init__(
        self,
        instruction_shape: Sequence[int],
        element_a: Element,
        element_b: Element,
        element_accumulator: Element,
        opcode_class: OpcodeClass,
        math_operation: MathOperation,
    ) -> None: ...

class TileDescription:
    def __init__(
        self,
        threadblock_shape: Sequence[int],
        stages: int,
        warp_count: Sequence[int],
        math_instruction: MathInstruction,
        cluster_shape: Sequence[int],
    ) -> None: ...

class TensorDescription:
    def __init__(self, element: Element, layout: Layout, alignment: int) -> None: ...

class EpilogueFunctor:
    @property
    def element_accumulator(self) -> Element: ...
    @property
    def element_compute(self) -> Element: ...

def linear_combination(
    element_output: Element, count: int, element_accumulator: Element | None, element_compute: Element | None
) -> EpilogueFunctor: ...
def linear_combination_clamp(
    element_output: Element, count: int, element_accumulator: Element | None, element_compute: Element | None
) -> EpilogueFunctor: ...
def fast_linear_combination_clamp(element_output: Element, count: int) -> EpilogueFunctor: ...
def linear_combination_generic(
    activation: Activation,
    element_output: Element,
    count: int,
    element_accumulator: Element | None,
    element_compute: Element | None,
) -> EpilogueFunctor: ...
def epilogue_visit_tree(
    program: Program,
    operands: Sequence[tuple[str, str, Element]],
    element_output: Element,
    epilogue_vector_length: int,
    element_accumulator: Element,
) -> EpilogueFunctor: ...

class OutputOp:
    @staticmethod
    def of_operands(operands: Mapping[str, Tensor | float]) -> OutputOp: ...
    @property
    def alpha(self) -> float: ...
    @property
    def beta(self) -> float: ...
    @property
    def activation_args(self) -> list[float]: ...

class GemmOperationUniversal(Kernel):  # type: ignore[misc]
    def __init__(
        self,
        compute_capability: int,
        tile: TileDescription,
        a: TensorDescription,
        b: TensorDescription,
        c: TensorDescription,
        functor: EpilogueFunctor,
        swizzle: SwizzlingFunctor,
        visitor: bool,
    ) -> None: ...
    def emit(self) -> str: ...
    def describe(self) -> str: ...
    def has_same_description(self, other: GemmOperationUniversal) -> bool: ...
    def output_op(self, alpha: float, beta: float, activation_args: Sequence[float]) -> OutputOp: ...
    def launch(self, arguments: DescribedArguments, stream: StreamLike = None) -> None: ...

class DescribedArguments:
    def __init__(
        self,
        operation: GemmOperationUniversal,
        size: tuple[int, ...],
        a: Sequence[int],
        b: Sequence[int],
        c: Sequence[int],
        d: Sequence[int],
        device: DeviceLike,
        mode: GemmMode,
        op: OutputOp,
        slices: int,
        batch: int,
        bias: bool,
    ) -> None: ...
    @property
    def kernels(self) -> list[Kernel]: ...
    @property
    def partials(self) -> Partials: ...

class DescribedGroupedArguments:
    def __init__(
        self,
        operation: GemmOperationUniversal,
        mode: SchedulerMode,
        sizes: Sequence[tuple[int, ...]],
        operands: tuple[Sequence[int], ...],
        device: DeviceLike,
        op: OutputOp,
    ) -> None: ...
    def launch(self, stream: StreamLike = None) -> None: ...
    @property
    def kernels(self) -> list[Kernel]: ...

class Conv2dOperation(Kernel):  # type: ignore[misc]
    def __init__(
        self,
        conv_kind: ConvOperator,
        iterator_algorithm: IteratorAlgorithm,
        compute_capability: int,
        tile_description: TileDescription,
        operands: tuple[TensorDescription, TensorDescription, TensorDescription],
        stride_support: StrideSupport,
        epilogue_functor: EpilogueFunctor,
        swizzling_functor: SwizzlingFunctor,
    ) -> None: ...
    def emit(self) -> str: ...
    def describe(self) -> str: ...
    def has_same_description(self, other: Conv2dOperation) -> bool: ...
    def output_op(self, alpha: float, beta: float, activation_args: Sequence[float]) -> OutputOp: ...
    def launch(self, arguments: DescribedConvArguments, stream: StreamLike = None) -> None: ...

class Conv2dSize:
    def __init__(self, numbers: tuple[int, ...], mode: ConvMode, output: tuple[int, int] | None) -> None: ...
    @property
    def output(self) -> tuple[int, int]: ...
    def gemm(self, kind: ConvOperator) -> tuple[int, int, int]: ...

class DescribedConvArguments:
    def __init__(
        self,
        operation: Conv2dOperation,
        size: Conv2dSize,
        addresses: tuple[int, ...],
        device: DeviceLike,
        mode: SplitKMode,
        op: OutputOp,
        slices: int,
        bias: bool,
    ) -> None: ...
    @property
    def kernels(self) -> list[Kernel]: ...
    @property
    def partials(self) -> Partials: ...

def add_module(operations: Sequence[GemmOperationUniversal | Conv2dOperation], target: str | None) -> list[Exception | None]:
    """Compiles operations; returns None for each one that succeeded, or the error text."""

class Partials:
    def __init__(self, data: int, dtype: DTypeLike, slices: int, rows: int, columns: int, device: DeviceLike) -> None: ...
    @property
    def data_ptr(self) -> int: ...
    @property
    def dtype(self) -> DType: ...
    @property
    def slices(self) -> int: ...
    @property
    def rows(self) -> int: ...
    @property
    def columns(self) -> int: ...
    @property
    def device(self) -> str: ...

class ReductionOperation:
    def __init__(
        self,
        shape: Sequence[int],
        c: TensorDescription,
        accumulator: Element,
        compute: Element,
        functor: EpilogueFunctor,
        count: int,
        partitions_per_stage: int,
    ) -> None: ...
    def describe(self) -> str: ...
    def output_op(self, alpha: float, beta: float, activation_args: Sequence[float]) -> OutputOp: ...
    def launch(self, arguments: ReductionArguments, device: DeviceLike, stream: StreamLike = None) -> None: ...

class ReductionArguments:
    def __init__(
        self, operation: ReductionOperation, workspace: Partials, destination: int, source: int, op: OutputOp, bias: bool
    ) -> None: ...

def configure_pool(device: DeviceLike, initial_bytes: int = 0, limit_bytes: int = 0) -> None:
    """Configures the library's memory pool of a GPU; a limit of 0 bytes means none."""

def pool_statistics(device: DeviceLike) -> dict[str, int]:
    """The bytes that the library's memory pool of a GPU holds, and the bytes that are allocated from it."""

def current_stream(tensors: Sequence[Tensor], roles: Sequence[str]) -> int:
    """The handle of the stream that the frameworks of tensors report as current."""

def parse_scale_block(word: str) -> tuple[int, int]:
    """(rows, k) of a scale's block by its name, 0 for all; ValueError for unknown names."""

def scale_count(rows: int, k: int, block_rows: int, block_k: int, is_swizzled: bool) -> int:
    """The number of scales of an operand of rows x k, with padding if they are swizzled."""

def parse_code_table(word: str) -> tuple[float, ...]:
    """The sixteen numbers of a named code table."""

def parse_operand_program(text: str) -> tuple[Program, str]:
    """The program of a text that assigns A or B, and "a" or "b"; see gemmery.OperandProgram."""

def operand_program_text(program: Program, operand: str) -> str:
    """The program of operand "a" or "b" as text."""

def copy_to_device(tensor: TensorLike, device: DeviceLike) -> Tensor:
    """A copy of a packed tensor on another device, with the same strides; it waits for the copy."""

def prepare_codes(codes: TensorLike, table: Sequence[float] | None, kernel: Kernel | None) -> Tensor:
    """Codes in the order of fragments; see gemmery.prepare_operand."""

def import_gptq(
    qweight: TensorLike, qzeros: TensorLike | None, g_idx: TensorLike | None, group: int, version: int
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """Codes, zero points and the order of k of a GPTQ weight; see gemmery.checkpoints.gptq."""

def import_awq(qweight: TensorLike, qzeros: TensorLike, group: int) -> tuple[Tensor, Tensor]:
    """Codes and zero points of an AWQ weight; see gemmery.checkpoints.awq."""

def import_marlin(qweight: TensorLike, scales: TensorLike, group: int) -> tuple[Tensor, Tensor]:
    """Codes and scales of a weight in Marlin's layout; see gemmery.checkpoints.marlin."""

def import_blockwise(
    codes: TensorLike,
    absmax: TensorLike,
    n: int,
    k: int,
    block: int,
    nested_code: TensorLike | None,
    nested_absmax: TensorLike | None,
    nested_block: int,
    offset: float,
) -> tuple[Tensor, Tensor, int]:
    """Codes, scales and the elements of k that share one, of a weight of bitsandbytes; see gemmery.checkpoints.bitsandbytes."""

def swizzle_scales(scales: TensorLike, out: TensorLike | None = None) -> Any:
    """Copies scales (rows, blocks of k) to the swizzled layout; see gemmery.swizzle_scales."""

def unswizzle_scales(swizzled: TensorLike, out: TensorLike) -> Any:
    """The inverse of swizzle_scales."""
