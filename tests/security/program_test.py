#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""RELIABILITY 7.4 on what is built: how program and library are linked (S17), what the sources never call (S13), and that the program takes
nothing from the folder that it runs in, as a user without rights (S9 to S11).

usage: program_test.py PROGRAM LIBRARY [unittest options]
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PROGRAM = ""
LIBRARY = ""
NOBODY = 65534
TIME_LIMIT_S = 300


def output_of(*words):
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, check=True).stdout


class Linking(unittest.TestCase):
    def setUp(self):
        if shutil.which("readelf") is None or shutil.which("nm") is None:
            self.skipTest("no binutils")

    def test_no_library_is_looked_for_in_the_working_directory(self):
        for file in (PROGRAM, LIBRARY):
            for paths in re.findall(r"\((?:RUNPATH|RPATH)\).*\[(.*)\]", output_of("readelf", "-dW", file)):
                for path in paths.split(":"):
                    self.assertTrue(path.startswith(("/", "$ORIGIN")), f"{file}: {paths!r}")

    def test_tables_are_read_only_after_loading_and_stacks_hold_no_code(self):
        for file in (PROGRAM, LIBRARY):
            segments = output_of("readelf", "-lW", file)
            self.assertIn("GNU_RELRO", segments, file)
            self.assertRegex(segments, r"GNU_STACK .* RW ", file)
            self.assertIn("NOW", output_of("readelf", "-dW", file), file)
            self.assertIn("DYN", output_of("readelf", "-hW", file), file)

    def test_functions_with_arrays_notice_that_their_stack_was_overwritten(self):
        for file in (PROGRAM, LIBRARY):
            self.assertIn("__stack_chk_fail", output_of("nm", "-D", "--undefined-only", file), file)

    def test_the_library_exports_its_own_names_only(self):
        for line in output_of("nm", "-DC", "--defined-only", LIBRARY).splitlines():
            kind, name = line.split(maxsplit=2)[-2:]
            # Weak symbols are instances of the standard library's templates, the same in every program.
            self.assertTrue("gemmery" in name or kind in "wWvVu", line)


class Sources(unittest.TestCase):
    def test_call_no_shell_evaluate_no_text_and_guess_no_names_of_files(self):
        banned = re.compile(r"(?<![.\w])(popen|tmpnam|tempnam|mktemp|eval|exec|system)\(|\bos\.(system|popen)\(|\bpickle\b|shell\s*=\s*True|\bmarshal\b")
        for folder in ("src", "cli", "include", "python", "tools"):
            for path in (ROOT / folder).rglob("*"):
                if path.suffix not in {".cpp", ".hpp", ".h", ".cuh", ".py", ".pyi"}:
                    continue
                for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                    self.assertIsNone(banned.search(line), f"{path}:{number}: {line}")


class HostileFolder(unittest.TestCase):
    """The program in a folder with all files that loaders, compilers and caches might use."""

    NAMES = ("compiled_cache.db", "libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc-builtins.so.13.0", "libcuda.so.1", "libstdc++.so.6",
             "libgemmery.so.0", "libdnnl.so.2", "libdnnl.so.3", "cuda_runtime.h", "cstdint", "sitecustomize.py", "nvcc", "gemmery.so", "kernel.cu",
             "nvdisasm", ".gemmery")  # fmt: skip

    def setUp(self):
        if shutil.which("strace") is None or subprocess.run(["strace", "-o", "/dev/null", "true"], check=False, capture_output=True).returncode:
            self.skipTest("strace is not here or may not trace")
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.hostile = self.folder / "hostile"
        self.home = self.folder / "home"
        for made in (self.hostile, self.home):
            made.mkdir()
        for name in self.NAMES:
            (self.hostile / name).write_text("#error hostile\n")
            (self.hostile / name).chmod(0o755)
        self.prefix = self.drop_rights() if os.geteuid() == 0 else []

    def drop_rights(self):
        prefix = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
        for path in (self.folder, *self.folder.rglob("*")):
            os.chown(path, NOBODY, NOBODY)
        if shutil.which("setpriv") is None or subprocess.run([*prefix, PROGRAM, "--version"], check=False, capture_output=True).returncode:
            self.skipTest("the program cannot be run as a user without rights here")
        return prefix

    def opened_by(self, *words):
        trace = self.folder / "trace"
        environment = {
            "HOME": str(self.home), "PATH": ".:" + os.environ.get("PATH", ""),
            "NVCC_PREPEND_FLAGS": "-DHOSTILE", "NVCC_APPEND_FLAGS": "-G", "CPATH": ".", "CPLUS_INCLUDE_PATH": ".", "CUDA_PATH": ".",
        }  # fmt: skip
        done = subprocess.run([*self.prefix, "strace", "-f", "-e", "trace=execve,openat,open", "-o", str(trace), PROGRAM, *words],
                              cwd=self.hostile, env=environment, capture_output=True, text=True, timeout=TIME_LIMIT_S, check=False)  # fmt: skip
        return done, trace.read_text()

    def test_gives_the_program_nothing(self):
        for words in (["--version"], ["run", "--device", "cpu", "gemm", "48x40x56", "a=f32"],
                      ["compile", "gemm", "48x40x56", "a=f32", "--target", "sm_90", "-o", str(self.home / "kernels")]):  # fmt: skip
            with self.subTest(words):
                done, trace = self.opened_by(*words)
                if "NVRTC: expected" in done.stderr:
                    self.skipTest("no NVRTC")
                self.assertEqual(done.returncode, 0, done.stderr)
                for line in trace.splitlines():
                    path = re.search(r'(?:AT_FDCWD, |execve\(|open\()"([^"]*)"', line)
                    if path is None:
                        continue
                    self.assertTrue(path[1].startswith("/"), line)
                    self.assertFalse(path[1].startswith(str(self.hostile)), line)


if __name__ == "__main__":
    PROGRAM, LIBRARY = (str(pathlib.Path(sys.argv.pop(1)).resolve()) for _ in range(2))
    unittest.main()
