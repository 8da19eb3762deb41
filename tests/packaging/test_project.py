# SPDX-License-Identifier: Apache-2.0
"""pyproject.toml, the lists of requirements, and the messages of builds in which something is missing."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tomllib

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
LISTS = [
    "tools/python-requirements.txt",
    "tools/nvrtc-requirements.txt",
    "tools/site-requirements.txt",
    "cmake/header-requirements.txt",
]


def requirements_of(list_name: str) -> dict[str, tuple[str, list[str]]]:
    """name -> (version, hashes), from a list of pinned requirements."""
    text = (ROOT / list_name).read_text().replace("\\\n", " ")
    found = {}
    for line in text.splitlines():
        if line.strip() and not line.startswith("#"):
            pin = re.match(r"([A-Za-z0-9_.-]+)==(\S+)", line)
            assert pin, f"{list_name}: {line!r} is not pinned"
            found[normalized(pin[1])] = (pin[2], re.findall(r"--hash=sha256:([0-9a-f]{64})\b", line))
    return found


def test_records_have_no_date_in_their_names():
    """The newest of a kind replaces the older one (bench/results/README.md)."""
    records = [path.name for folder in ("bench/results", "tests/results") for path in (ROOT / folder).iterdir()]
    assert len(records) > 10
    assert [name for name in records if re.search(r"20\d\d-\d\d-\d\d", name)] == []


def normalized(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def pins(requirements: list[str]) -> dict[str, str]:
    return {normalized(name): version for name, version in (entry.split("==") for entry in requirements if "==" in entry)}


@pytest.mark.parametrize("list_name", LISTS)
def test_every_requirement_is_pinned_and_hashed(list_name):
    found = requirements_of(list_name)
    assert found
    assert [name for name, (_, hashes) in found.items() if not hashes] == []


def test_one_version_of_each_package_is_asked_for():
    versions: dict[str, set[str]] = {}
    for given in [
        pins(PROJECT["build-system"]["requires"]),
        pins(PROJECT["project"]["optional-dependencies"]["dev"]),
        {name: version for name, (version, _) in requirements_of("tools/python-requirements.txt").items()},
    ]:
        for name, version in given.items():
            versions.setdefault(name, set()).add(version)
    assert {name: found for name, found in versions.items() if len(found) > 1} == {}


def test_the_extra_for_nvrtc_admits_the_version_that_tests_use():
    version, _ = requirements_of("tools/nvrtc-requirements.txt")["nvidia-cuda-nvrtc"]
    (extra,) = PROJECT["project"]["optional-dependencies"]["nvrtc"]
    lowest, above = re.fullmatch(r"nvidia-cuda-nvrtc>=(\d+),<(\d+)", extra).groups()
    assert int(lowest) <= int(version.split(".")[0]) < int(above)


def test_the_package_says_that_it_is_typed():
    assert (ROOT / "python/gemmery/py.typed").is_file()
    assert PROJECT["tool"]["scikit-build"]["wheel"]["packages"] == ["python/gemmery"]
    assert "Typing :: Typed" in PROJECT["project"]["classifiers"]


# --- a build that lacks something -------------------------------------------------------------------------------------


def configure(folder: pathlib.Path, *options: str, **variables: str) -> str:
    """Configures a build of the library and the module, and returns CMake's error."""
    cmake = shutil.which("cmake")
    if cmake is None:
        pytest.skip("cmake is not here")
    off = [f"-DGEMMERY_BUILD_{part}=OFF" for part in ("TESTS", "CLI", "EXAMPLES")]
    command = [cmake, "-S", str(ROOT), "-B", str(folder), f"-DPython_EXECUTABLE={sys.executable}", *off, *options]
    done = subprocess.run(command, env={**os.environ, **variables}, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode != 0, done.stdout
    return " ".join(done.stderr.split())


@pytest.fixture
def hidden(tmp_path):
    """Options that hide this machine's headers from CMake."""
    return [f"-DCMAKE_FIND_ROOT_PATH={tmp_path / 'nothing'}", "-DCMAKE_FIND_ROOT_PATH_MODE_INCLUDE=ONLY"]


def test_a_build_without_the_headers_of_fmt_names_package_and_command(tmp_path, hidden):
    said = configure(tmp_path / "build", *hidden)
    assert "fmt/core.h" in said
    assert "apt-get install libfmt-dev" in said
    assert "tools/setup.sh" in said


def test_a_wheel_build_that_cannot_reach_the_package_index_says_so_too(tmp_path, hidden):
    # Without the index and without pip's configuration.
    alone = {"PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": os.devnull, "PIP_FIND_LINKS": ""}
    said = configure(tmp_path / "build", *hidden, "-DSKBUILD=2", **alone)
    assert "apt-get install libfmt-dev" in said
    assert "cmeel-fmt==12.2.0" in said or "No module named pip" in said


def test_a_wheel_for_all_later_pythons_is_refused_where_its_module_would_be_for_one(tmp_path):
    said = configure(tmp_path / "build", "-DSKBUILD=2", "-DSKBUILD_SABI_VERSION=3.99", "-DGEMMERY_PYTHON=ON")
    assert "A module for all Pythons from 3.99 on takes CMake 3.26 and Python 3.99 or later" in said
