# SPDX-License-Identifier: Apache-2.0
"""The tutorials run, and their notebooks consist of the scripts and their output."""

import importlib.util
import json
import pathlib
import subprocess
import sys

import pytest

import gemmery

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPTS = sorted((ROOT / "tutorials").glob("*.py"))


def cells_of(script):
    spec = importlib.util.spec_from_file_location("make_notebooks", ROOT / "tools" / "make_notebooks.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.cells(script.read_text())


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_the_script_runs(script):
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=300)
    if "UnavailableError" in done.stderr:
        pytest.skip(f"no compiler: {done.stderr.splitlines()[-1]}")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_the_notebook_is_the_script(script):
    notebook = json.loads(script.with_suffix(".ipynb").read_text())
    kept = [(cell["cell_type"], "".join(cell["source"])) for cell in notebook["cells"]]
    assert kept == cells_of(script), f"run tools/make_notebooks.py {script}"
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert all(cell["execution_count"] for cell in code) and any(cell["outputs"] for cell in code)
    assert not any(output["output_type"] == "error" for cell in code for output in cell["outputs"])


def test_every_subject_has_one():
    assert [script.stem for script in SCRIPTS] == [
        "01_first_gemm",
        "02_fused_epilogue",
        "03_your_own_kernel",
        "04_host_latency",
        "05_save_and_load",
        "06_residual_block",
    ]
    assert gemmery.version()
