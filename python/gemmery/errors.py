# SPDX-License-Identifier: Apache-2.0
"""The errors of this package. Each says what it is about, what was expected, what was found and what to do."""


class Error(Exception):
    """What every error of gemmery derives from; fields that say nothing are empty."""

    kind: str = ""
    operand: str = ""
    expected: str = ""
    got: str = ""
    hint: str = ""
    cause: str = ""


class InvalidArgumentError(Error, ValueError):
    """The caller's values contradict each other or the documentation."""

    kind = "invalid_argument"


class UnsupportedError(Error, ValueError):
    """Legal, but not served by what was asked to serve it."""

    kind = "unsupported"


class UnavailableError(Error, RuntimeError):
    """A library, device or service that is needed is not there."""

    kind = "unavailable"


class CompileError(Error, RuntimeError):
    """The source of a kernel was refused by its compiler, or its compilation was cancelled."""

    kind = "compile"


class LaunchError(Error, RuntimeError):
    """The driver refused or lost a launch."""

    kind = "launch"


class OutOfMemoryError(Error, MemoryError):
    """Memory of the host or of a device was exhausted."""

    kind = "out_of_memory"


class FileError(Error, OSError):
    """A file could not be read or written, or is damaged."""

    kind = "io"


class VerificationError(Error, ArithmeticError):
    """A result is outside its proven bound: the kernel is wrong."""

    kind = "verification"


# In the order of the library's kinds.
_CLASSES: tuple[type[Error], ...] = (
    InvalidArgumentError,
    UnsupportedError,
    UnavailableError,
    CompileError,
    LaunchError,
    OutOfMemoryError,
    FileError,
)


def _make(kind: int, message: str, operand: str, expected: str, got: str, hint: str, cause: str) -> Error:
    """The exception of an error of the library, as the native module makes it."""
    error = _CLASSES[kind](message)
    error.operand, error.expected = operand, expected
    error.got, error.hint, error.cause = got, hint, cause
    return error
