# SPDX-License-Identifier: Apache-2.0
"""The wheels, from a source distribution to their use: built for every Python here with headers, installed where there is
no compiler, no toolkit and no source, and tested with the package's own tests. Also an editable install.

The library is built twice, for Python 3.11 and for those after it: half an hour and more on two cores. A compiler cache is used
where the environment names one (CMAKE_CXX_COMPILER_LAUNCHER=ccache), as all lies in one place, build/soak/wheels.
"""

import glob
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "build" / "soak" / "wheels"
VERSION = re.search(r"project\(gemmery VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text())[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
NVRTC = "nvidia-cuda-nvrtc==13.0.88"
# The libraries that a program of this architecture may need on another machine.
SYSTEM_LIBRARIES = re.compile(r"(libc|libm|libstdc\+\+|libgcc_s|libdl|libpthread|ld-linux.*)\.so\.\d+")


# A wheel has the command line where its headers are here.
HAS_PROGRAM = all(
    any(
        pathlib.Path(root, header).is_file() for root in ("/usr/include", "/usr/local/include", ROOT / ".deps/root/usr/include")
    )
    for header in ("CLI/CLI.hpp", "nlohmann/json.hpp")
)


def clean_environment(**variables: str) -> dict[str, str]:
    """The variables that locate programs, the package index and a compiler cache, but not the build or a toolkit."""
    kept = ("PATH", "HOME", "LANG", "TMPDIR", "SSL_", "PIP_", "REQUESTS_CA", "CMAKE_", "CCACHE_")
    return {name: value for name, value in os.environ.items() if name.startswith(kept)} | variables


def run(*command: object, cwd: pathlib.Path | None = None, **variables: str) -> str:
    words = [str(word) for word in command]
    done = subprocess.run(words, cwd=cwd, env=clean_environment(**variables), capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(words)}\n{done.stdout[-20000:]}\n{done.stderr[-20000:]}"
    return done.stdout


def describe(python: str) -> dict | None:
    """The facts that decide whether a wheel can be built for this Python."""
    code = """import json, os, sys, sysconfig, ensurepip
print(json.dumps({"version": sys.version_info[:2], "headers": os.path.exists(sysconfig.get_path("include") + "/Python.h"),
                  "gil": not sysconfig.get_config_var("Py_GIL_DISABLED")}))"""
    try:
        done = subprocess.run([python, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    except OSError:
        return None
    return json.loads(done.stdout) if done.returncode == 0 else None


def find_pythons() -> dict[tuple[int, int], str]:
    """The first program of each version from 3.11 on that can make a virtual environment and has its headers."""
    named = [shutil.which(f"python3.{minor}") for minor in range(11, 20)]
    managed = sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/3.*/bin/python3")))
    found: dict[tuple[int, int], str] = {}
    for python in ["/usr/bin/python3", *filter(None, named), *managed, getattr(sys, "_base_executable", sys.executable)]:
        facts = describe(python)
        if facts and facts["headers"] and facts["gil"] and tuple(facts["version"]) >= (3, 11):
            found.setdefault(tuple(facts["version"]), python)
    return dict(sorted(found.items()))


def is_stable(version: tuple[int, int]) -> bool:
    return version >= (3, 12)


PYTHONS = find_pythons()
VERSIONS = pytest.mark.parametrize("version", PYTHONS, ids=lambda version: "python{}.{}".format(*version))


def builder_of(version: tuple[int, int]) -> tuple[int, int]:
    """The Python that builds the wheel for this one: of those that share a wheel, the oldest."""
    return min(filter(is_stable, PYTHONS)) if is_stable(version) else version


def make_environment(name: str, version: tuple[int, int]) -> pathlib.Path:
    """An empty virtual environment, and its Python."""
    folder = FOLDER / name
    run(PYTHONS[version], "-m", "venv", folder)
    return folder / "bin" / "python"


@pytest.fixture(scope="session")
def source() -> pathlib.Path:
    """The unpacked source distribution of this tree."""
    if not PYTHONS:
        pytest.skip("no Python with headers and ensurepip here (apt-get install python3-dev python3-venv)")
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    python = make_environment("builder", next(iter(PYTHONS)))
    run(python, "-m", "pip", "install", *PROJECT["build-system"]["requires"])
    run(python, "-c", f"from scikit_build_core.build import build_sdist; build_sdist({str(FOLDER)!r})", cwd=ROOT)
    with tarfile.open(FOLDER / f"gemmery-{VERSION}.tar.gz") as archive:
        archive.extractall(FOLDER)  # our own; filter= is not in every Python 3.11
    return FOLDER / f"gemmery-{VERSION}"


@pytest.fixture(scope="session")
def wheel_of(source):
    """Builds the wheel for a Python, once."""
    built: dict[tuple[int, int], pathlib.Path] = {}

    def wheel_of(version: tuple[int, int]) -> pathlib.Path:
        builder = builder_of(version)
        if builder not in built:
            place = FOLDER / "wheel{}.{}".format(*builder)
            python = make_environment("build{}.{}".format(*builder), builder)
            run(python, "-m", "pip", "wheel", "--no-deps", "--wheel-dir", place, source)
            (built[builder],) = place.glob("*.whl")
        return built[builder]

    return wheel_of


@pytest.fixture(scope="session")
def installed(wheel_of):
    """Installs the wheel into a new environment with the requirements of the package's tests; returns its Python."""
    ready: dict[tuple[int, int], pathlib.Path] = {}

    def installed(version: tuple[int, int]) -> pathlib.Path:
        if version not in ready:
            python = make_environment("use{}.{}".format(*version), version)
            install = [python, "-m", "pip", "install", "--no-deps", "--only-binary", ":all:"]
            run(*install, wheel_of(version))
            run(*install, "--require-hashes", "--requirement", ROOT / "tools/python-requirements.txt")
            ready[version] = python
        return ready[version]

    return installed


# --- the source distribution ------------------------------------------------------------------------------------------


def test_the_source_distribution_holds_what_is_tracked_and_what_a_build_needs(source):
    tracked = set(run("git", "ls-files", cwd=ROOT).splitlines())
    with tarfile.open(FOLDER / f"gemmery-{VERSION}.tar.gz") as archive:
        held = {name.partition("/")[2] for name in archive.getnames()}
    assert held - tracked - {"PKG-INFO"} == set()
    needed = {path for path in tracked if path.startswith(("src/", "include/", "cmake/", "python/"))}
    assert needed - held == set()
    assert {"CMakeLists.txt", "LICENSE", "README.md", "layers.txt", "pyproject.toml"} <= held


# --- what is in a wheel -----------------------------------------------------------------------------------------------


@VERSIONS
def test_a_wheel_serves_the_pythons_that_its_name_says(wheel_of, version):
    tag = "cp312-abi3" if is_stable(version) else "cp{0}{1}-cp{0}{1}".format(*version)
    assert re.fullmatch(rf"gemmery-{re.escape(VERSION)}-{tag}-linux_\w+\.whl", wheel_of(version).name)


@VERSIONS
def test_a_wheel_holds_the_package_one_module_and_nothing_else(wheel_of, version):
    with zipfile.ZipFile(wheel_of(version)) as wheel:
        held = {name for name in wheel.namelist() if not name.endswith("/")}
    packaged = {f"gemmery/{path.relative_to(ROOT / 'python/gemmery')}" for path in (ROOT / "python/gemmery").rglob("*")
                if path.is_file() and path.suffix != ".pyc"}  # fmt: skip
    device = (*(ROOT / "src/device").rglob("*.*"), *(ROOT / "include/gemmery").glob("*.def"))
    packaged |= {f"gemmery/include/{re.sub('^(src|include)/', '', str(path.relative_to(ROOT)))}" for path in device}
    (module,) = {name for name in held if name.endswith(".so")}
    assert re.fullmatch(r"gemmery/_core\.abi3\.so" if is_stable(version) else r"gemmery/_core\.cpython-\d+-[\w-]+\.so", module)
    metadata = f"gemmery-{VERSION}.dist-info"
    described = {
        f"{metadata}/{name}"
        for name in ("METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE", "licenses/NOTICES.txt")
    }
    assert held == packaged | described | {module}
    assert "gemmery/py.typed" in held


@VERSIONS
def test_a_wheels_metadata_is_that_of_the_project(wheel_of, version):
    with zipfile.ZipFile(wheel_of(version)) as wheel:
        text = wheel.read(f"gemmery-{VERSION}.dist-info/METADATA").decode()
        notices = wheel.read(f"gemmery-{VERSION}.dist-info/licenses/NOTICES.txt").decode()
    assert f"\nVersion: {VERSION}\n" in text
    assert "\nRequires-Python: >=3.11\n" in text
    assert {name.strip() for name in re.findall(r"^Provides-Extra:(.*)$", text, re.MULTILINE)} == {
        "torch",
        "tutorials",
        "notebook",
        "nvrtc",
        "dev",
    }
    assert re.findall(r"^Requires-Dist: (?!.*extra ==)(.*)$", text, re.MULTILINE) == [], "nothing is needed at run time"
    owners = ["Wenzel Jakob", "Yann Collet", "Victor Zverovich", "Thibaut Goetghebuer-Planchon"]
    for owner in owners + ["Henry Schreiner", "Niels Lohmann"] * HAS_PROGRAM:
        assert owner in notices


@VERSIONS
def test_a_wheels_module_is_stripped_needs_only_system_libraries_and_knows_no_path_of_the_build(wheel_of, version, tmp_path):
    with zipfile.ZipFile(wheel_of(version)) as wheel:
        (name,) = (name for name in wheel.namelist() if name.endswith(".so"))
        module = pathlib.Path(wheel.extract(name, tmp_path))
    dynamic = run("objdump", "-p", module)
    needed = re.findall(r"NEEDED\s+(\S+)", dynamic)
    assert [library for library in needed if not SYSTEM_LIBRARIES.fullmatch(library)] == []
    assert not re.search(r"R(UN)?PATH", dynamic), dynamic
    assert "no symbols" in run("objdump", "-t", module)
    content = module.read_bytes()
    for place in (str(ROOT), str(FOLDER), "/pip-", os.path.expanduser("~") + "/"):
        assert place.encode() not in content, place
    exported = re.findall(r" \w (\S+)$", run("nm", "-D", "--defined-only", module), re.MULTILINE)
    assert exported == ["PyInit__core"]
    print(f"{wheel_of(version).name}: {wheel_of(version).stat().st_size / 1e6:.2f} MB, the module {len(content) / 1e6:.2f} MB")


# --- what an installed wheel does -------------------------------------------------------------------------------------

PRODUCT = """
import pathlib, sys, numpy, gemmery
assert pathlib.Path(gemmery.__file__).is_relative_to(sys.prefix), gemmery.__file__
a = numpy.random.default_rng().integers(-8, 8, (33, 65)).astype("f4")
b = numpy.random.default_rng().integers(-8, 8, (65, 17)).astype("f4")
assert (gemmery.matmul(a, b) == a @ b).all()
assert (gemmery.matmul(a, b, epilogue="D = relu(accum)") == numpy.maximum(a @ b, 0)).all()
"""


@VERSIONS
def test_an_installed_wheel_multiplies_without_a_compiler(installed, version, tmp_path):
    python = installed(version)
    run(python, "-c", PRODUCT, cwd=tmp_path, PATH=str(python.parent), GEMMERY_HIDE_CUDA="1")


@VERSIONS
def test_an_installed_wheel_has_the_command(installed, version, tmp_path):
    python = installed(version)
    program = python.with_name("gemmery")
    assert program.is_file()
    if not HAS_PROGRAM:
        done = subprocess.run([program, "version"], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (3, "") and "libcli11-dev" in done.stderr
        return
    assert run(program, "version", cwd=tmp_path) == f"gemmery {VERSION}\n"
    assert "verify" in run(program, "--help", cwd=tmp_path)
    said = run(
        program,
        "verify",
        "gemm",
        "33x17x65",
        "a=f32",
        "--device",
        "cpu",
        cwd=tmp_path,
        PATH=str(python.parent),
        GEMMERY_HIDE_CUDA="1",
    )
    assert "of what is allowed: ok" in said


@VERSIONS
def test_an_installed_wheel_passes_the_packages_own_tests(installed, version):
    python = installed(version)
    said = run(python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not gpu", "tests/python", cwd=ROOT,
               GEMMERY_CACHE_MAX_BYTES="0")  # fmt: skip
    print("Python {}.{}:".format(*version), said.strip().splitlines()[-1])
    assert re.search(r"\d+ passed", said)


@VERSIONS
def test_an_installed_wheel_finds_the_nvrtc_of_the_package_index(installed, version, tmp_path):
    python = installed(version)
    run(python, "-m", "pip", "install", "--no-deps", "--only-binary", ":all:", NVRTC)
    code = """
import gemmery, numpy
a = numpy.zeros((256, 256), "f2")
args = gemmery.GemmArguments(a, a.copy(), a.copy(), "f32")
kernel = gemmery.get_kernels(args, cc="h200")[0]
kernel.compile(args, cc="h200")
print(gemmery.doctor())
"""
    said = run(python, "-c", code, cwd=tmp_path, GEMMERY_HIDE_CUDA="1", GEMMERY_CACHE_DIR=str(tmp_path / "cache"))
    found = re.search(r"NVRTC +13\.0 at (\S+)", said)
    assert found and pathlib.Path(found[1]).is_relative_to(python.parent.parent), said


# --- an editable install ----------------------------------------------------------------------------------------------


def test_an_editable_install_follows_the_source(wheel_of, source):
    version = next(iter(PYTHONS))
    wheel_of(version)  # its build folder is used again
    python = make_environment("editable", version)
    run(python, "-m", "pip", "install", "--editable", source, "numpy")
    where = "import gemmery; print(gemmery.__file__)"
    assert pathlib.Path(run(python, "-c", where, cwd=FOLDER).strip()).is_relative_to(source)
    run(python, "-c", PRODUCT.replace("assert pathlib", "# assert pathlib"), cwd=FOLDER)
    init = source / "python/gemmery/__init__.py"
    init.write_text(init.read_text() + "\nedited = True\n")
    assert run(python, "-c", "import gemmery; print(gemmery.edited)", cwd=FOLDER).strip() == "True"
