# SPDX-License-Identifier: Apache-2.0
"""Shared by the tests: random numbers with a printed seed, operands, and the reason if the package cannot be imported."""

from __future__ import annotations

import os
import platform
import random

import pytest

# As in tools/run_tests.py: tests use no files that other processes or earlier runs have kept on disk.
os.environ.setdefault("GEMMERY_CACHE_MAX_BYTES", "0")
# JAX would take most of a GPU's memory for itself.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

try:
    import numpy

    import gemmery

    WHY_UNAVAILABLE = ""
except ModuleNotFoundError as error:  # built for another Python, or numpy is missing; other errors are failures
    WHY_UNAVAILABLE = f"{error} (Python {platform.python_version()})"

SEED = int(os.environ.get("GEMMERY_TEST_SEED", "0")) or random.SystemRandom().randrange(1, 2**32)


def pytest_report_header() -> str:
    return f"GEMMERY_TEST_SEED={SEED}"


def pytest_ignore_collect(collection_path):
    return True if WHY_UNAVAILABLE and collection_path.suffix == ".py" and collection_path.name != "test_available.py" else None


def pytest_collection_modifyitems(items):
    if any(item.get_closest_marker("gpu") for item in items):
        reason = WHY_UNAVAILABLE or why_no_gpu()
        for item in items:
            if reason and item.get_closest_marker("gpu"):
                item.add_marker(pytest.mark.skip(reason=reason))


def why_no_gpu() -> str:
    return "" if any(device.startswith("cuda") for device in gemmery.devices()) else "no GPU here"


@pytest.fixture
def rng(request):
    """Random numbers for one test, determined by the seed, which a failure prints in the header."""
    return numpy.random.default_rng([SEED, *request.node.name.encode()])


@pytest.fixture
def gemm(rng):
    """Makes arguments of random float32 operands: gemm(m, n, k) -> (args, exact result in float64)."""

    def make(m=33, n=47, k=29, **options):
        a = rng.standard_normal((m, k), dtype=numpy.float32)
        b = rng.standard_normal((k, n), dtype=numpy.float32)
        out = numpy.full((m, n), numpy.nan, dtype=numpy.float32)
        exact = a.astype(numpy.float64) @ b.astype(numpy.float64)
        return gemmery.GemmArguments(a, b, out, numpy.float32, **options), exact

    return make


@pytest.fixture
def check():
    """Compares the result in arguments with the library's oracle, within the proven bound."""

    def check(args, kernel):
        report = gemmery.check_result(args, kernel)
        assert report.passed, report.first_failure

    return check
