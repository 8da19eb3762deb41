# SPDX-License-Identifier: Apache-2.0
"""The errors of this package. Each names the operand, what was expected, what was found and what to do."""

import errno
import os
from typing import Any


class Error(Exception):
    """The base class of all errors of gemmery; unused fields are empty."""

    kind: str = ""
    operand: str = ""
    expected: str = ""
    got: str = ""
    hint: str = ""
    cause: str = ""

    def __init_subclass__(cls, kind: str = "", **options: Any) -> None:
        """`kind` is the library's name of the error kind; by default that of the base class."""
        super().__init_subclass__(**options)
        cls.kind = kind or cls.kind


class InvalidArgumentError(Error, ValueError, kind="invalid_argument"):
    """The caller's values contradict each other or the documentation."""


class UnsupportedError(Error, ValueError, kind="unsupported"):
    """Legal, but not supported by the kernel or file."""


class UnavailableError(Error, RuntimeError, kind="unavailable"):
    """A required library, device or service is missing."""


class CompileError(Error, RuntimeError, kind="compile"):
    """The compiler rejected the source of a kernel, or the compilation was cancelled."""


class LaunchError(Error, RuntimeError, kind="launch"):
    """The driver refused or lost a launch."""


class OutOfMemoryError(Error, MemoryError, kind="out_of_memory"):
    """Memory of the host or of a device was exhausted."""


class FileError(Error, OSError, kind="io"):
    """A file could not be read or written, or is damaged. `errno`, `strerror` and `filename` are set if the system gave a
    reason, as for other OSErrors."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class MissingFileError(FileError, FileNotFoundError):
    """There is no such file."""


class VerificationError(Error, ArithmeticError, kind="verification"):
    """A result is outside its proven bound: the kernel is wrong."""


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
# The numbers of the system's reasons, which the library's errors have as text.
_ERRNO_OF = {os.strerror(number): number for number in errno.errorcode}


def _make(kind: int, message: str, operand: str, expected: str, got: str, hint: str, cause: str) -> Error:
    """Makes the exception for an error of the library; the native module calls it."""
    number = _ERRNO_OF.get(got) if _CLASSES[kind] is FileError else None
    error = (MissingFileError if number == errno.ENOENT else _CLASSES[kind])(message)
    if isinstance(error, FileError) and number is not None:
        error.errno, error.strerror, error.filename = number, got, operand
    error.operand, error.expected = operand, expected
    error.got, error.hint, error.cause = got, hint, cause
    return error
