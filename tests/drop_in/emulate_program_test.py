#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`gemmery emulate PROGRAM`: a CUDA program runs unchanged, its faults are reported, what lacks is refused by name.

usage: emulate_program_test.py GEMMERY PROGRAM
"""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

GEMMERY, PROGRAM = sys.argv[1:3]


def emulate(*words, options=()):
    return subprocess.run([GEMMERY, "emulate", *options, PROGRAM, *words], capture_output=True, text=True, timeout=300)


class EmulateProgram(unittest.TestCase):
    def expect_right(self, *words, options=()):
        run = emulate(*words, options=options)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        self.assertEqual(run.stdout, "right\n")
        self.assertIn("no findings", run.stderr)

    def test_streams_events_and_symbols(self):
        self.expect_right("right")

    def test_compressed_fat_binaries(self):
        for compression in ("lz4", "zstd"):
            run = emulate("right", compression)
            if run.returncode == 77:
                self.skipTest(f"no library for {compression} here")
            self.assertEqual((run.returncode, run.stdout), (0, "right\n"), run.stderr)

    def test_managed_memory(self):
        self.expect_right("managed")

    def test_graphs(self):
        self.expect_right("captured")
        self.expect_right("graph")

    def test_memory_of_graphs(self):
        run = emulate("graph_memory")
        self.assertEqual((run.returncode, run.stdout), (0, "right\n"), run.stderr)
        self.assertNotIn("is not the start of an allocation", run.stderr)

    def test_virtual_memory(self):
        run = emulate("virtual")
        self.assertEqual((run.returncode, run.stdout), (0, "right\n"), run.stderr)

    def test_linked_ptx(self):
        self.expect_right("linked")

    def test_several_devices_with_peer_access(self):
        self.expect_right("peers", options=["--device", "h200,a100"])

    def test_repeated_registration(self):
        self.expect_right("right", "none", "1000" if os.environ.get("GEMMERY_SOAK") == "1" else "20")

    def test_start_ups_leak_nothing(self):
        libraries = pathlib.Path(GEMMERY).resolve().parent / "lib/gemmery/emulated"
        needed = subprocess.run(["ldd", libraries / "libcuda.so.1"], capture_output=True, text=True, check=True).stdout
        if shutil.which("valgrind") is None or "libasan" in needed or "libtsan" in needed:
            self.skipTest("no valgrind, or a build with sanitizers, which it cannot run")
        kinds = "definite,indirect"
        run = subprocess.run(
            ["valgrind", "--leak-check=full", f"--errors-for-leak-kinds={kinds}", f"--show-leak-kinds={kinds}"]
            + ["--error-exitcode=9", PROGRAM, "right", "none", "1000" if os.environ.get("GEMMERY_SOAK") == "1" else "2"],
            capture_output=True,
            text=True,
            timeout=1200,
            env=dict(os.environ, LD_LIBRARY_PATH=str(libraries)),
        )
        self.assertEqual((run.returncode, run.stdout), (0, "right\n"), run.stderr)

    def test_a_race_is_reported_and_the_program_goes_on(self):
        run = emulate("race")
        self.assertEqual(run.returncode, 1, run.stderr)
        self.assertEqual(run.stdout, "right\n")
        self.assertIn("race: ", run.stderr)
        self.assertIn("st.global.f32 [%rd1]", run.stderr)

    def test_what_ends_it_ends_the_program_too(self):
        for ending in (signal.SIGINT, signal.SIGTERM):
            run = subprocess.Popen(
                [GEMMERY, "emulate", "sh", "-c", "echo $$; exec sleep 100"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
            )  # fmt: skip
            program = int(run.stdout.readline())
            run.send_signal(ending)
            _, said = run.communicate(timeout=60)
            self.assertEqual(run.returncode, -ending, said)
            self.assertIn("no findings", said)
            with self.assertRaises(ProcessLookupError):
                os.kill(program, 0)

    def test_killing_it_ends_the_program_too(self):
        run = subprocess.Popen(
            [GEMMERY, "emulate", "sh", "-c", "echo; exec sleep 100"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        run.stdout.readline()
        run.kill()
        run.communicate(timeout=60)  # to the end of the program's output

    def test_a_program_that_cannot_be_started_is_named(self):
        with tempfile.NamedTemporaryFile("w", suffix=".sh") as script:
            script.write("#!/nowhere/interpreter\n")
            script.flush()
            os.chmod(script.name, 0o755)
            run = subprocess.run([GEMMERY, "emulate", script.name], capture_output=True, text=True, timeout=60)
        self.assertNotEqual(run.returncode, 0)
        self.assertIn(script.name, run.stderr)

    def test_records(self):
        run = emulate("race", options=["--json", "--seeds", "2", "--seed", "5"])
        records = [json.loads(line) for line in run.stdout.splitlines()]
        self.assertEqual(records[-1]["record"], "summary")
        self.assertEqual((records[-1]["runs"], records[-1]["launches"], records[-1]["exit_code"]), (2, 2, 0))
        findings = [record for record in records if record["record"] == "finding"]
        self.assertTrue(any(finding["kind"] == "race" and finding["seeds"] == [5, 6] for finding in findings))
        self.assertEqual(run.stderr.count("right\n"), 2)  # what the program prints leaves the records alone

    def test_rules_suppress(self):
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as rules:
            rules.write("race, ptx, race\n")
            rules.flush()
            run = emulate("race", options=["--suppress", rules.name])
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("suppressed", run.stderr)

    def test_a_trap_is_an_error_of_the_program(self):
        run = emulate("trap")
        self.assertEqual(run.returncode, 1, run.stderr)
        self.assertIn("cudaDeviceSynchronize(): cudaErrorLaunchFailure", run.stdout)
        self.assertIn("trap", run.stderr)

    def test_unknown_instructions_are_refused_by_name(self):
        run = emulate("unknown")
        self.assertEqual(run.returncode, 4, run.stderr)
        self.assertIn("cudaErrorNotSupported", run.stdout)
        self.assertRegex(run.stderr, r"gemmery: cuKernelGetFunction: .*PTX line \d+.* got alloca")

    def test_what_lacks_is_refused_by_name(self):
        run = emulate("absent")
        self.assertEqual(run.returncode, 4, run.stderr)
        self.assertIn("cudaErrorNotSupported", run.stdout)
        self.assertIn("gemmery: cudaCreateTextureObject is not emulated", run.stderr)

    def test_machine_code_alone_is_refused_by_name(self):
        run = emulate("machine")
        self.assertEqual(run.returncode, 4, run.stderr)
        self.assertIn("cudaErrorNoKernelImageForDevice", run.stdout)
        self.assertIn("machine code for sm_80; expected PTX that sm_90 runs: compile with -gencode", run.stderr)

    def test_destructors_of_static_objects_may_free_memory(self):
        self.assertEqual(emulate("static").returncode, 0)

    def test_null_pointers_are_answered(self):
        self.expect_right("null")

    def test_copies_out_of_bounds_are_explained(self):
        run = emulate("bounds")
        self.assertEqual(run.returncode, 4, run.stderr)
        self.assertIn("cudaErrorInvalidValue", run.stdout)
        self.assertIn("copy to 1028 bytes", run.stderr)

    def test_options_of_kernels_and_unknown_devices_are_refused(self):
        self.assertEqual(emulate("right", options=["--grid", "4"]).returncode, 2)
        self.assertEqual(emulate("right", options=["--device", "abacus"]).returncode, 2)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
