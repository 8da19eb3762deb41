# SPDX-License-Identifier: Apache-2.0
"""Links of the pages lead to files and headings, and the check of links finds what is wrong."""

import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def check(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, ROOT / "tools/check_links.py", *arguments]
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)


def test_every_link_of_the_pages_leads_somewhere():
    done = check()
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("[a](other.md)", None),
        ("[a](other.md#the-place-of-things)", None),
        ("[a](#here)", None),
        ("`[a](nowhere.md)`", None),
        ("[a](nowhere.md)", "nowhere.md: no such file"),
        ("[a](other.md#the-place)", "other.md#the-place: no such heading"),
        ("[a](#there)", "#there: no such heading"),
        ("![a](picture.svg)", "picture.svg: no such file"),
    ],
)
def test_a_link_that_leads_nowhere_is_found(tmp_path, line, fault):
    (tmp_path / "page.md").write_text(f"# Here\n\n{line}\n\n```\n[a](in-code.md)\n```\n")
    (tmp_path / "other.md").write_text("# The `place` of things\n")
    done = check(tmp_path)
    faults = [f"page.md: {fault}"] if fault else []
    assert done.stdout.splitlines()[:-1] == faults
    assert done.returncode == bool(faults)


def test_links_into_folders_that_are_left_out_are_not_followed(tmp_path):
    (tmp_path / "page.md").write_text("[a](tests/page.md) [b](src/page.md)\n")
    assert check(tmp_path, "--without", "tests").stdout.splitlines()[0] == "page.md: src/page.md: no such file"
