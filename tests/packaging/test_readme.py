# SPDX-License-Identifier: Apache-2.0
"""The README's program runs, and its picture and its list of what is slower are those of the record. (Its table: tests/cli.)"""

import pathlib
import re
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()
sys.path.insert(0, str(ROOT / "tools"))
import draw_speed  # noqa: E402


def test_the_first_program_runs(capsys):
    pytest.importorskip("numpy")
    program = re.search(r"```python\n(.*?)```", README, re.DOTALL)[1]
    assert len(program.splitlines()) == 5
    names: dict = {}
    exec(compile(program, "README.md", "exec"), names)
    A, B, bias, D = (names[name] for name in ("A", "B", "bias", "D"))
    assert abs(D - (A @ B + bias)).max() < 2e-3  # two sums of 128 products below 1: 2 · 128² · 2⁻²⁴
    assert capsys.readouterr().out.startswith("Kernel(")


def test_the_picture_of_speed_is_what_the_record_gives():
    assert draw_speed.PICTURE.read_text() == draw_speed.picture()


def test_another_record_gives_another_picture(monkeypatch, tmp_path):
    changed = re.sub(r'"ratio_median":[0-9.]+', '"ratio_median":1.4943', draw_speed.RECORD.read_text(), count=1)
    (tmp_path / "record.jsonl").write_text(changed)
    monkeypatch.setattr(draw_speed, "RECORD", tmp_path / "record.jsonl")
    assert draw_speed.PICTURE.read_text() != draw_speed.picture()


def test_what_is_slower_than_the_vendors_library_is_said():
    assert f"Slower than cuBLASLt in the race above: {draw_speed.slower()}." in README
