#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The program `gemmery` from outside: exit codes, output streams, JSON, CSV, closed pipes.

usage: cli_test.py PROGRAM [unittest options]
"""

import csv
import fcntl
import io
import json
import os
import pathlib
import pty
import random
import re
import resource
import signal
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
import time
import tomllib
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PROGRAM = ""
TIME_LIMIT_S = 300
SMALL = ["gemm", "48x40x56", "a=f32"]
SERVED, NOT_SERVED, BAD_INPUT, UNAVAILABLE, FAILED = 0, 1, 2, 3, 4


def run(*words, **options):
    return subprocess.run(
        [PROGRAM, *words], cwd=ROOT, capture_output=True, text=True, timeout=TIME_LIMIT_S, check=False, **options
    )


def on_terminal(columns, *words, **environment):
    """The lines on standard output if it is a terminal of this width."""
    control, terminal = pty.openpty()
    try:
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        program = subprocess.Popen([PROGRAM, *words], cwd=ROOT, stdout=terminal, stderr=subprocess.DEVNULL, env={**os.environ, **environment})
        os.close(terminal)
        text = b""
        while True:
            try:
                part = os.read(control, 1 << 16)
            except OSError:  # the program has ended
                break
            if not part:
                break
            text += part
        program.wait(timeout=TIME_LIMIT_S)
    finally:
        os.close(control)
    return text.decode().splitlines()


def json_lines(text):
    return [json.loads(line) for line in text.splitlines()]


def manual():
    return (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")


def words_of(text):
    """The words of help: without the marks of Markdown and line breaks."""
    return re.sub(r"^#+ ", "", text, flags=re.MULTILINE).replace("`", "").split()


class Readme(unittest.TestCase):
    def test_the_table_of_what_is_supported_is_what_list_gives(self):
        done = subprocess.run([sys.executable, "tools/write_support.py", PROGRAM, "--check"], cwd=ROOT, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


class Colours(unittest.TestCase):
    def first_line(self, **environment):
        return on_terminal(100, "verify", *SMALL, **environment)[0]

    def test_are_on_terminals_that_have_them_unless_NO_COLOR_is_set(self):
        self.assertTrue(self.first_line(TERM="xterm", NO_COLOR="").startswith("\033[32mok\033[0m      "))
        self.assertTrue(self.first_line(TERM="xterm", NO_COLOR="1").startswith("ok      "))
        self.assertTrue(self.first_line(TERM="dumb", NO_COLOR="").startswith("ok      "))
        self.assertTrue(run("verify", *SMALL).stdout.startswith("ok      "))


class Terminal(unittest.TestCase):
    def test_output_fits_its_width(self):
        with tempfile.TemporaryDirectory() as folder:
            variables = {"GEMMERY_TUNING_FILE": os.path.join(folder, "tuning.toml"), "TERM": "dumb"}
            for words in (
                ["explain", "--device", "h200", *SMALL],
                ["explain", "--device", "h200", "gemm", "10x200x300", "a=f16", "b=f32"],
                ["tune", "--device", "cpu", "--budget", "20s", *SMALL],
                ["tune", "--list"],
                ["bench", "--device", "cpu", "--top", "0", "--samples", "3", "--sample-ms", "0.1", *SMALL],
                ["run", "--device", "cpu", *SMALL],
                ["verify", "--device", "cpu", *SMALL],
                ["doctor"],
                ["help"],
                *(["help", verb] for verb in ("list", "explain", "bench", "compile", "inspect", "emulate")),
            ):
                lines = on_terminal(80, *words, **variables)
                self.assertGreater(len(lines), 0, words)
                for line in lines:
                    if " " in line.strip():  # a path or a name alone may be wider
                        self.assertLessEqual(len(line), 80, words)

    def test_a_bar_is_erased_before_anything_else_is_printed(self):
        control, terminal = pty.openpty()
        try:
            words = ["bench", "--device", "cpu", "--samples", "3", "--sample-ms", "0.1", *SMALL, "--csv"]
            done = subprocess.run([PROGRAM, *words], cwd=ROOT, stdout=terminal, stderr=terminal, check=False, timeout=TIME_LIMIT_S)
            self.assertEqual(done.returncode, SERVED)
            text = os.read(control, 1 << 16).decode()
        finally:
            os.close(terminal)
            os.close(control)
        self.assertRegex(text, r"a=f32\r\x1b\[Kid,problem,")


class Tune(unittest.TestCase):
    """Each test has a file of its own."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.file = pathlib.Path(folder.name, "tuning.toml")
        self.environment = {**os.environ, "GEMMERY_TUNING_FILE": str(self.file)}

    def gemmery(self, *words):
        return run(*words, env=self.environment)

    def tuned(self, *words):
        ran = self.gemmery("tune", *words, "--device", "cpu", "--json")
        self.assertEqual(ran.returncode, SERVED, ran.stderr)
        return json_lines(ran.stdout)

    def stored(self):
        return json_lines(self.gemmery("tune", "--list", "--json").stdout)

    def test_other_processes_rank_the_winner_first_and_say_why(self):
        (result,) = self.tuned(*SMALL, "--budget", "120s")
        self.assertEqual(result["outcome"], "stored")
        self.assertIn(result["kernel_name"], [row["kernel_name"] for row in result["candidates"]])
        ranked = json_lines(self.gemmery("list", *SMALL, "--device", "cpu", "--json").stdout)
        self.assertEqual(ranked[0]["kernel_name"], result["kernel_name"])
        self.assertEqual([row["is_measured"] for row in ranked], [True] + [False] * (len(ranked) - 1))
        self.assertAlmostEqual(ranked[0]["predicted_us"], result["median_us"], delta=1e-5 * result["median_us"])
        explained = self.gemmery("explain", *SMALL, "--device", "cpu").stdout
        self.assertIn("tuned: first: " + result["kernel_name"], explained)
        ignored = run("explain", *SMALL, "--device", "cpu", env={**self.environment, "GEMMERY_TUNING": "0"}).stdout
        self.assertNotIn("tuned:", ignored)

    def test_the_file_is_TOML_and_names_its_conditions(self):
        self.tuned(*SMALL, *SMALL[:1], "40x40x40", "a=bf16", "--budget", "120s")
        tables = tomllib.loads(self.file.read_text(encoding="utf-8"))["tuning"]
        self.assertEqual([table["problem"] for table in tables], ["gemm 48x40x56 a=f32", "gemm 40x40x40 a=bf16"])
        for table, row in zip(tables, self.stored(), strict=True):
            self.assertIn("(cpu, ", table["device"])
            self.assertIn("oneDNN", table["driver"])
            self.assertEqual(table["kernel"], row["kernel_name"])
            self.assertIn("winner", [candidate["outcome"] for candidate in table["candidates"]])
            self.assertTrue(row["holds_here"])

    def test_results_are_forgotten_on_demand(self):
        self.tuned(*SMALL, "gemm", "40x40x40", "a=f32", "--budget", "120s")
        self.assertEqual(self.tuned(*SMALL)[0]["outcome"], "stored_before")
        self.assertEqual(self.gemmery("tune", "--forget").returncode, BAD_INPUT)
        self.assertIn("removed 1 result", self.gemmery("tune", "--forget", *SMALL).stdout)
        self.assertEqual([row["problem"] for row in self.stored()], ["gemm 40x40x40 a=f32"])
        self.assertIn("removed 1 result", self.gemmery("tune", "--forget", "--all").stdout)
        self.assertEqual(self.stored(), [])

    def test_text_says_what_became_of_the_candidates(self):
        ran = self.gemmery("tune", *SMALL, "--device", "cpu", "--budget", "120000ms")
        self.assertEqual(ran.returncode, SERVED, ran.stderr)
        self.assertIn("  stored: ", ran.stdout)
        self.assertIn(" winner ", ran.stdout)
        self.assertIn("--force measures again", self.gemmery("tune", *SMALL, "--device", "cpu").stdout)
        self.assertIn("holds", self.gemmery("tune", "--list").stdout)

    def test_what_cannot_be_tuned_is_refused(self):
        self.assertEqual(self.gemmery("tune").returncode, BAD_INPUT)
        self.assertEqual(self.gemmery("tune", *SMALL, "--budget", "soon").returncode, BAD_INPUT)
        self.assertEqual(self.gemmery("tune", *SMALL, "--budget", "0s").returncode, BAD_INPUT)
        self.assertEqual(self.gemmery("tune", *SMALL, "--device", "emulated:h200").returncode, NOT_SERVED)
        self.assertEqual(self.gemmery("tune", "--all", *SMALL).returncode, BAD_INPUT)
        self.assertFalse(self.file.exists())

    def test_a_program_that_is_killed_keeps_what_it_told_and_goes_on_there(self):
        kills = 50 if os.environ.get("GEMMERY_SOAK") else 5
        problems = [f"gemm {8 + number}x24x40 a=f32" for number in range(4 * kills)]
        words = [word for line in problems for word in line.split()]
        command = [PROGRAM, "tune", *words, "--device", "cpu", "--budget", "200s", "--json"]
        told = set()
        for _ in range(kills):
            with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=self.environment) as program:
                time.sleep(random.uniform(0, 0.3))
                program.kill()
                lines = program.communicate(timeout=TIME_LIMIT_S)[0].split("\n")[:-1]
            results = [json.loads(line) for line in lines]
            again = {row["problem"] for row in results if row["outcome"] == "stored"} & told
            self.assertEqual(again, set(), "stored before, measured again")
            told |= {row["problem"] for row in results if row["outcome"].startswith("stored")}
            self.assertLessEqual(told, {row["problem"] for row in self.stored()})


class Report(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def bench(self, *words):
        done = run("bench", *SMALL, "--device", "cpu", "--samples", "3", "--sample-ms", "0.1", *words)
        self.assertEqual(done.returncode, SERVED, done.stderr)
        return done.stdout

    def test_is_written_beside_the_usual_output(self):
        page = self.folder / "report.html"
        records = json_lines(self.bench("--top", "2", "--json", "--report", page))
        text = page.read_text(encoding="utf-8")
        for record in records:
            self.assertIn(record["kernel_name"], text)
            self.assertEqual(len(record["samples_us"]), 3)
            self.assertEqual(max(record["arithmetic_us"], record["memory_us"]), record["roofline_us"])
        self.assertEqual([path.name for path in self.folder.iterdir()], ["report.html"])
        self.assertIn("median", self.bench("--report", page))

    def test_two_records_are_compared(self):
        before, after = self.folder / "a.json", self.folder / "b.json"
        before.write_text(self.bench("--top", "2", "--json"), encoding="utf-8")
        after.write_text(self.bench("--json"), encoding="utf-8")
        page = self.folder / "comparison.html"
        done = run("bench", "--compare", before, after, "--report", page, "--json")
        (row,) = json_lines(done.stdout)
        self.assertAlmostEqual(row["ratio"], row["after_us"] / row["before_us"])
        self.assertLessEqual(row["least_ratio"], row["ratio"])
        self.assertIn("Only in a.json", page.read_text(encoding="utf-8"))

    def test_a_race_becomes_a_page_with_the_ratio_to_the_competitor(self):
        page = self.folder / "race.html"
        record = "bench/results/h200-races.jsonl"
        done = run("bench", "--from", record, "--report", page)
        self.assertEqual(done.returncode, SERVED, done.stderr)
        self.assertIn("gemm 4096x4096x4096 a=bf16 b=bf16:c: cublaslt", done.stdout)
        text = page.read_text(encoding="utf-8")
        first = json.loads((ROOT / record).read_text(encoding="utf-8").splitlines()[0])
        low, high = first["ratio_quartiles"]
        ratio = f"{first['ratio_median']:.3g}, from {low:.3g} to {high:.3g} by quartiles"
        for words in ("cublaslt over sm90", "NVIDIA H200", first["peer_version"], ratio):
            self.assertIn(words, text)

    def test_what_cannot_be_compared_or_written_is_refused(self):
        self.assertEqual(run("bench", "--compare", "a.json").returncode, BAD_INPUT)
        self.assertEqual(run("bench", "--compare", "/none", "/none").returncode, FAILED)
        self.assertEqual(run("bench", "--compare", "README.md", "README.md").returncode, BAD_INPUT)
        self.assertEqual(run("bench", "--compare", "a.json", "b.json", *SMALL).returncode, BAD_INPUT)
        words = ["--samples", "1", "--sample-ms", "0.1", "--report", "/nowhere/report.html"]
        self.assertEqual(run("bench", *SMALL, "--device", "cpu", *words).returncode, FAILED)


class NewKernel(unittest.TestCase):
    def test_files_are_written_once_and_bear_the_name(self):
        with tempfile.TemporaryDirectory() as folder:
            write = [PROGRAM, "new", "kernel", "swift"]
            ran = subprocess.run(write, cwd=folder, capture_output=True, text=True, check=True)
            files = sorted(path.name for path in pathlib.Path(folder, "swift").iterdir())
            self.assertEqual(files, ["swift.cu", "swift.py", "test_swift.py"])
            self.assertIn("cd swift && python -m pytest", ran.stdout)
            for name in files:
                text = pathlib.Path(folder, "swift", name).read_text()
                self.assertIn("swift", text)
                self.assertNotIn("NAME", text)
            again = subprocess.run(write, cwd=folder, capture_output=True, text=True, check=False)
            self.assertEqual(again.returncode, FAILED)
            self.assertIn("something of this name", again.stderr)

    def test_names_that_no_compiler_takes_are_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in ("class", "Swift", "a-b", "../up", "9lives", "lambda", ""):
                write = [PROGRAM, "new", "kernel", name]
                ran = subprocess.run(write, cwd=folder, capture_output=True, text=True, check=False)
                self.assertEqual(ran.returncode, BAD_INPUT, name)
                self.assertEqual(list(pathlib.Path(folder).iterdir()), [])
        self.assertEqual(run("new").returncode, BAD_INPUT)
        self.assertEqual(run("new", "kernle", "swift").returncode, BAD_INPUT)


class WithNvrtc(unittest.TestCase):
    """Skipped if kernels cannot be compiled. Each test has its own folder."""

    def setUp(self):
        report = json_lines(run("doctor", "--json").stdout)[0]
        if not any(library["found"] for library in report["libraries"] if library["name"] == "NVRTC"):
            self.skipTest("no NVRTC")
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)


class Help(unittest.TestCase):
    def test_without_a_verb_is_the_manual_up_to_the_first_verb(self):
        for words in (["--help"], ["-h"], ["help"], ["help", "--help"], ["help", "version"], ["version", "-h"]):
            done = run(*words)
            self.assertEqual(done.returncode, SERVED)
            self.assertEqual(words_of(done.stdout), words_of(manual().split("\n## gemmery ")[0]))

    def test_of_each_verb_begins_with_its_section(self):
        for section in manual().split("\n## gemmery ")[1:]:
            verb = section.split("\n")[0]
            done = run(verb, "--help")
            self.assertEqual(done.returncode, SERVED, verb)
            wanted = words_of("## gemmery " + section)
            self.assertEqual(words_of(done.stdout)[: len(wanted)], wanted, verb)
            self.assertEqual(run("help", verb).stdout, done.stdout)

    def test_of_a_verb_describes_every_option_once(self):
        for section in manual().split("\n## gemmery ")[1:]:
            verb = section.split("\n")[0]
            usage = section.split("\n\n")[1]
            said = run("help", verb).stdout
            for option in set(re.findall(r"--[a-z][a-z-]*", usage)):
                self.assertEqual(len(re.findall(rf"^    {option} ", said, re.MULTILINE)), 1, (verb, option))

    def test_fits_the_width_but_for_examples(self):
        for columns in (60, 80, 100):
            for words in (["help"], *(["help", verb] for verb in ("list", "bench", "compile", "emulate", "cache"))):
                done = run(*words, env={**os.environ, "COLUMNS": str(columns)})
                for line in done.stdout.splitlines():
                    if not re.match(r" {4,}\S*gemm|.* {2,}#", line) and " " in line.strip():
                        self.assertLessEqual(len(line), columns, (words, line))
                self.assertNotRegex(done.stdout, r"(?m)^#|`")

    def test_is_offered_where_nothing_is_asked(self):
        done = run()
        self.assertEqual((done.returncode, done.stdout), (BAD_INPUT, ""))
        self.assertIn("gemmery help [VERB]", done.stderr)

    def test_of_no_verb_is_refused(self):
        done = run("help", "lst")
        self.assertEqual(done.returncode, BAD_INPUT)
        self.assertIn("did you mean list?", done.stderr)

    def test_needs_no_problem_beside_it(self):
        self.assertEqual(run("run", "--help").returncode, SERVED)

    def test_version_is_the_librarys(self):
        for word in ("--version", "-V", "version"):
            done = run(word)
            self.assertEqual(done.returncode, SERVED)
            self.assertRegex(done.stdout, r"^gemmery \d+\.\d+\.\d+\n$")


class Quiet(unittest.TestCase):
    def test_leaves_results_and_errors_and_no_note(self):
        words = ["list", "gemm", "64x64x64", "a=f32", "--json"]
        loud, quiet = run(*words), run(*words, "--quiet")
        self.assertTrue(loud.stderr)
        self.assertEqual((quiet.returncode, quiet.stderr), (SERVED, ""))
        names = [[record["kernel_name"] for record in json_lines(done.stdout)] for done in (loud, quiet)]
        self.assertEqual(*names)
        refused = run("list", "gemm", "64x64", "a=f32", "-q")
        self.assertEqual(refused.returncode, BAD_INPUT)
        self.assertTrue(refused.stderr)


class Completion(unittest.TestCase):
    def complete(self, *words):
        """The completions of bash after these words, which COMP_WORDBREAKS splits."""
        script = run("completion", "bash").stdout + (
            "COMP_WORDS=(gemmery \"$@\"); COMP_CWORD=$#; _gemmery; printf '%s\\n' \"${COMPREPLY[@]}\""
        )
        done = subprocess.run(["bash", "-c", script, "bash", *words], capture_output=True, text=True, check=True)
        self.assertEqual(done.stderr, "")
        return done.stdout.split()

    def test_bash_completes_verbs_options_devices_and_problems(self):
        self.assertEqual(self.complete("ver"), ["verify", "version"])
        self.assertEqual(self.complete("help", "ben"), ["bench"])
        self.assertEqual(self.complete("list", "--pro"), ["--provider"])
        self.assertEqual(self.complete("run", "--device", "h2"), ["h200"])
        self.assertEqual(self.complete("run", "--device", "emulated", ":", "h2"), ["h200"])
        self.assertEqual(self.complete("list", "--target", "sm_90"), ["sm_90", "sm_90a"])
        self.assertEqual(self.complete("explain", "conv2d_w"), ["conv2d_wgrad"])
        self.assertEqual(self.complete("cache", "pr"), ["prune"])
        self.assertEqual(self.complete("compile", "--output", ""), [])

    def test_every_option_of_every_verb_is_completed(self):
        for section in manual().split("\n## gemmery ")[1:]:
            verb = section.split("\n")[0]
            usage = section.split("\n\n")[1]
            self.assertLessEqual(set(re.findall(r"--[a-z][a-z-]*", usage)), set(self.complete(verb, "--")), verb)

    def test_every_shell_has_a_script_that_it_reads(self):
        for shell, check in (("bash", ["-n"]), ("zsh", ["-n"]), ("fish", ["--no-execute"])):
            script = run("completion", shell)
            self.assertEqual(script.returncode, SERVED, shell)
            self.assertIn("gemmery", script.stdout)
            if shutil.which(shell):
                read = subprocess.run([shell, *check], input=script.stdout, capture_output=True, text=True)
                self.assertEqual((read.returncode, read.stderr), (0, ""), shell)
        for words in ((), ("tcsh",)):
            self.assertEqual(run("completion", *words).returncode, BAD_INPUT)

    def test_the_page_for_man_has_every_section_of_the_manual(self):
        page = run("help", "--man").stdout
        for heading in re.findall(r"^## (.*)$", manual(), re.MULTILINE):
            self.assertIn(".SH " + heading.replace("-", "\\-") + "\n", page)
        for line in page.splitlines():
            self.assertNotRegex(line, r"^\.(?!TH |SH |nf$|fi$)")


class Documentation(unittest.TestCase):
    def test_problems_that_it_shows_are_read(self):
        lines = [
            line.strip()
            for page in ("docs/problems.md", "docs/cli.md", "README.md")
            for line in re.findall(r"^    (?:gemmery \w+ )?(gemm \d[^\n]*)", (ROOT / page).read_text(encoding="utf-8"), re.MULTILINE)
        ]
        self.assertGreater(len(lines), 4)
        for line in lines:
            problem = re.split(r"\s{2,}| --| \\$", line)[0]
            with self.subTest(problem):
                done = run("explain", "--device", "cpu", problem)
                self.assertEqual(done.returncode, SERVED, done.stderr)


class BadInput(unittest.TestCase):
    """Each row gives its exit code, one line on standard error that contains its text, and nothing on standard output."""

    ROWS = [
        (["dance"], BAD_INPUT, "expected one of list, explain, run, verify, bench, tune, compile, inspect, emulate, new, cache, doctor, completion, got 'dance'"),
        (["--loud"], BAD_INPUT, "--loud"),
        (["lst"], BAD_INPUT, "did you mean list?"),
        (["versoin"], BAD_INPUT, "did you mean version?"),
        (["--versoin"], BAD_INPUT, "did you mean --version?"),
        (["list", "--devcie", "cpu", *SMALL], BAD_INPUT, "did you mean --device? see gemmery list --help"),
        (["verify", "--tpo=3", *SMALL], BAD_INPUT, "did you mean --top?"),
        (["list", "--device", "hopper", *SMALL], BAD_INPUT, "did you mean h200?"),
        (["list", "--device", "sm90", *SMALL], BAD_INPUT, "did you mean sm_90?"),
        (["list", "--device", "rtx490", *SMALL], BAD_INPUT, "did you mean rtx4090?"),
        (["list", "--device", "H2O0", *SMALL], BAD_INPUT, "did you mean h200?"),
        (["list", "--target", "sm90a", *SMALL], BAD_INPUT, "did you mean sm_90a?"),
        (["list", "--provider", "cublas", *SMALL], BAD_INPUT, "did you mean cublaslt?"),
        (["list", "gemm", "8x8x8", "a=fp8"], BAD_INPUT, "did you mean e4m3 or e5m2?"),
        (["list", "gemm", "8x8x8", "a=bf17"], BAD_INPUT, "did you mean bf16?"),
        (["list", "gemm", "8x8x8", "a=f32", "epilogue=D = softmax(accum)"], BAD_INPUT, "examples/14_softmax_statistics.cpp"),
        (["list", "gemm", "8x8x8", "a=f32", "epilogue=relu(accum)"], BAD_INPUT, "D = relu(accum)"),
        (["completion", "fis"], BAD_INPUT, "did you mean fish?"),
        (["cache", "stats"], BAD_INPUT, "did you mean stat? see gemmery cache --help"),
        (["run", "--hlep", *SMALL], BAD_INPUT, "did you mean --help? see gemmery run --help"),
        (["explain", "gem", "8x8x8", "a=f32"], BAD_INPUT, "did you mean gemm?"),
        (["inspect", "missing.gemmery"], FAILED, "no such file"),
        (["emulate", "missing.cu"], FAILED, "No such file"),
        (["emulate", "missing.cu", "--arg", "missing.npy"], FAILED, "missing.npy: expected a file that can be read, got No such file"),
        (["emulate", "."], FAILED, "Is a directory"),
        (["bench", "--from", "/nowhere/race.jsonl"], FAILED, "No such file"),
        (["bench", "--from", "docs/cli.md"], BAD_INPUT, "a line that gemmery bench --json or a race wrote"),
        (["bench", "--from", "a.json", *SMALL], BAD_INPUT, "a problem"),
        (["run"], BAD_INPUT, "problem: expected one, got none"),
        (["verify"], BAD_INPUT, "problem: expected one, got none"),
        (["explain"], BAD_INPUT, "problem: expected one, got none"),
        (["bench"], BAD_INPUT, "at least one, or --file"),
        (["run", "--loud", *SMALL], BAD_INPUT, "--loud"),
        (["run", "8x8x8", "a=f32"], BAD_INPUT, "8x8x8"),
        (["run", "gem", "8x8x8"], BAD_INPUT, "gem"),
        (["run", "gemm"], BAD_INPUT, "gemm"),
        (["run", "gemm", "8x8"], BAD_INPUT, "8x8"),
        (["run", "gemm", "8x8xq", "a=f32"], BAD_INPUT, "8x8xq"),
        (["run", "gemm", "8x8x8", "a=f33"], BAD_INPUT, "f33"),
        (["run", "gemm", "8x8x8", "a=f32", "colour=red"], BAD_INPUT, "colour"),
        (["run", "gemm", "8x8x8", "a=f32", "beta=1"], BAD_INPUT, "c"),
        (["run", "gemm", "8x8x8", "a=f32", "a=f32"], BAD_INPUT, "a"),
        (["run", "gemm", "8x8x8", "a=f32", "alpha=much"], BAD_INPUT, "much"),
        (["run", *SMALL, "gemm", "4x4x4", "a=f32"], BAD_INPUT, "expected one, got 2"),
        (["run", "--device", "toaster", *SMALL], BAD_INPUT, "h100, h200"),
        (["run", "--device", "-1", *SMALL], BAD_INPUT, ""),
        (["run", "--device", "h200", *SMALL], UNAVAILABLE, "list, explain, compile and inspect"),
        (["run", "--device", "63", *SMALL], UNAVAILABLE, ""),
        (["list", "--target", "sm_7", *SMALL], BAD_INPUT, "sm_7"),
        (["list", "--target", "sm_80a", *SMALL], BAD_INPUT, "sm_80a"),
        (["list", "--provider", "nobody"], BAD_INPUT, "nobody"),
        (["list", "--device", "toaster"], BAD_INPUT, "h100, h200"),
        (["explain", "--limit", "3", *SMALL], BAD_INPUT, "--ranking"),
        (["explain", "--ranking", "--kernel", "any", *SMALL], BAD_INPUT, "--kernel"),
        (["run", "--provider", "nobody", "--device", "cpu", *SMALL], BAD_INPUT, "nobody"),
        (["list", "--kernel", "no_such_kernel"], BAD_INPUT, "no_such_kernel"),
        (["run", "--kernel", "no_such_kernel", "--device", "cpu", *SMALL], BAD_INPUT, "no_such_kernel"),
        (["run", "--kernel", "x", "--kernel", "y", *SMALL], BAD_INPUT, "twice"),
        (["list", "--limit", "-3"], BAD_INPUT, "--limit"),
        (["list", "--limit", "many"], BAD_INPUT, "--limit"),
        (["list", "--json", "--csv"], BAD_INPUT, "--"),
        (["list", "--device"], BAD_INPUT, "--device"),
        (["verify", "--fill", "zeros", *SMALL], BAD_INPUT, "zeros"),
        (["verify", "--seed", "soon", *SMALL], BAD_INPUT, "--seed"),
        (["bench", "--samples", "0", *SMALL], BAD_INPUT, "--samples"),
        (["bench", "--sample-ms", "-5", *SMALL], BAD_INPUT, "--sample-ms"),
        (["bench", "--file", "/nowhere/list.csv"], BAD_INPUT, "/nowhere/list.csv"),
        (["bench", "--file", "docs/cli.md"], BAD_INPUT, "docs/cli.md"),
        (["bench", "--dtype", "f32", *SMALL], BAD_INPUT, "--dtype"),
        (["compile", *SMALL], BAD_INPUT, "--output"),
        (["compile", "-o", "/tmp/x"], BAD_INPUT, "at least one, or --inspect FILE"),
        (["compile", *SMALL, "-o", "/tmp/x", "--device", "cpu"], BAD_INPUT, "the target of a GPU"),
        (["compile", *SMALL, "-o", "/tmp/x", "--target", "sm_1"], BAD_INPUT, "sm_1"),
        (["compile", "--inspect", "/tmp/x", "-o", "/tmp/y"], BAD_INPUT, "--inspect"),
        (["compile", "--inspect", "/nowhere/file"], FAILED, "/nowhere/file"),
        (["compile", "--inspect", "docs/cli.md"], FAILED, "an artifact file"),
        (["doctor", "--loud"], BAD_INPUT, "--loud"),
        (["doctor", "gemm"], BAD_INPUT, "gemm"),
    ]

    def test_is_refused_in_one_line_with_its_exit_code(self):
        for words, code, said in self.ROWS:
            with self.subTest(" ".join(words)):
                done = run(*words)
                self.assertEqual(done.returncode, code, done.stderr)
                self.assertEqual(done.stdout, "")
                lines = [line for line in done.stderr.splitlines() if not line.startswith("device: ")]
                self.assertEqual(len(lines), 1, done.stderr)
                self.assertTrue(lines[0].startswith("gemmery: "), lines[0])
                self.assertIn(said, lines[0])

    def test_a_seed_of_schedules_that_is_no_number_is_refused(self):
        done = run("verify", "--device", "emulated:h200", *SMALL, env={**os.environ, "GEMMERY_EMULATOR_SEED": "seven"})
        self.assertEqual(done.returncode, BAD_INPUT, done.stderr)
        self.assertIn('GEMMERY_EMULATOR_SEED: expected a whole number from 0 to 9223372036854775807, got "seven"', done.stderr)

    def test_a_number_of_threads_that_is_none_is_refused_by_its_variable_on_every_device(self):
        for device in ("cpu", "emulated:h200"):
            with self.subTest(device):
                done = run("verify", "--device", device, *SMALL, env={**os.environ, "GEMMERY_NUM_THREADS": "0"})
                self.assertEqual(done.returncode, BAD_INPUT, done.stderr)
                self.assertIn('GEMMERY_NUM_THREADS: expected a whole number from 1 to 4096, got "0"', done.stderr)

    def test_words_that_are_not_utf8_are_refused_and_not_fatal(self):
        done = subprocess.run([PROGRAM.encode(), b"run", b"gemm", b"\xff\xfe"], cwd=ROOT, capture_output=True, timeout=60, check=False)
        self.assertEqual(done.returncode, BAD_INPUT)

    def test_a_very_long_word_is_refused(self):
        self.assertEqual(run("run", "gemm", "8x8x8", "a=" + "f" * 100_000).returncode, BAD_INPUT)


class List(unittest.TestCase):
    def test_names_every_kernel_once(self):
        count, seen = 0, set()  # of hashes: the names are millions
        with subprocess.Popen([PROGRAM, "list"], cwd=ROOT, stdout=subprocess.PIPE, text=True) as program:
            for name in program.stdout:
                count += 1
                seen.add(hash(name))
                self.assertFalse(" " in name or len(name) < 2, name)
        self.assertEqual(program.returncode, SERVED)
        self.assertGreater(count, 0)
        self.assertEqual(count, len(seen))

    def test_narrows_to_a_device_without_a_problem(self):
        families = {name.split("_")[0] for name in run("list", "--device", "b200").stdout.splitlines()}
        self.assertEqual({re.sub(r"v?\d+$", "", family) for family in families}, {"sm80", "skinny", "depthwise", "simt"})
        narrowed = ("--limit", "50")
        self.assertEqual(run("list", "--device", "b200", *narrowed).stdout, run("list", "--target", "sm_100", *narrowed).stdout)

    def test_has_the_same_kernels_as_json_with_their_metadata(self):
        names = run("list", "--limit", "50").stdout.splitlines()
        records = json_lines(run("list", "--limit", "50", "--json").stdout)
        self.assertEqual([record["kernel_name"] for record in records], names)
        for record in records:
            self.assertEqual(
                {"provider", "supported_targets", "operands", "accumulator_type", "design", "epilogue"} - set(record), set()
            )

    def test_has_a_tensor_core_kernel_for_every_problem_of_the_scaled_list(self):
        text = (ROOT / "bench" / "problems" / "scaled.txt").read_text(encoding="utf-8")
        problems = [line for line in text.splitlines() if not line.startswith("#")]
        self.assertGreater(len(problems), 10)
        for problem in problems:
            first = json_lines(run("list", problem, "--device", "h200", "--limit", "1", "--json").stdout)
            self.assertEqual([record["kernel_class"] for record in first], ["sm90"], problem)

    def test_as_json_satisfies_pythons_own_tool(self):
        done = run("list", "--limit", "5", "--json")
        command = [sys.executable, "-m", "json.tool", "--json-lines"]
        tool = subprocess.run(command, input=done.stdout, text=True, capture_output=True, check=False)
        self.assertEqual(tool.returncode, 0, tool.stderr)

    def test_as_csv_has_as_many_fields_in_every_row(self):
        rows = list(csv.reader(io.StringIO(run("list", "--limit", "50", "--csv").stdout)))
        self.assertEqual({len(row) for row in rows}, {len(rows[0])})
        self.assertEqual(rows[0][0], "kernel_name")

    def test_keeps_its_limit(self):
        self.assertEqual(len(run("list", "--limit", "3").stdout.splitlines()), 3)
        fitting = json_lines(run("list", "--device", "cpu", "--limit", "1", "--json", *SMALL).stdout)
        self.assertEqual(len(fitting), 1)

    def test_of_a_problem_is_ranked_best_first(self):
        records = json_lines(run("list", "--device", "cpu", "--json", *SMALL).stdout)
        self.assertGreater(len(records), 1)
        self.assertEqual([record["rank"] for record in records], list(range(1, len(records) + 1)))
        times = [record["predicted_us"] for record in records]
        self.assertEqual(times, sorted(times))

    def test_of_a_problem_shows_ten_and_how_many_more(self):
        for problem in (SMALL, ["gemm", "512x512x512", "a=bf16"]):
            words = ["list", "--device", "h200", *problem]
            records = json_lines(run(*words, "--json").stdout)
            total, designs = len(records), len({(record["kernel_name"].split("_")[0], str(record["design"])) for record in records})
            shown = min(10, designs)
            done = run(*words)
            self.assertEqual(len(done.stdout.splitlines()), 1 + shown)
            self.assertIn(f"{total - shown} more: --limit 0 shows all", done.stderr)
            done = run(*words, "--limit", "0")
            self.assertEqual(len(done.stdout.splitlines()), 1 + total)
            self.assertNotIn("more:", done.stderr)
            ranking = run("explain", "--ranking", "--device", "h200", *problem)
            self.assertEqual(len(ranking.stdout.splitlines()), 1 + shown)

    def test_of_a_problem_fits_a_terminal_unless_it_is_to_be_wide(self):
        words = ["list", "--device", "h200", "gemm", "512x512x512", "a=bf16"]
        names = {record["kernel_name"] for record in json_lines(run(*words, "--json").stdout)}
        for columns in (72, 80, 132):  # 16 characters of a name are always left
            lines = on_terminal(columns, *words)
            self.assertEqual(len(lines), 1 + 10)
            self.assertLessEqual(max(map(len, lines)), columns)
            self.assertEqual(len(set(lines)), len(lines))  # the design is left of a name
        self.assertTrue({line.split()[-1] for line in on_terminal(80, *words, "--wide")[1:]} <= names)
        self.assertTrue({line.split()[-1] for line in run(*words).stdout.splitlines()[1:]} <= names)

    def test_without_a_problem_is_short_on_a_terminal(self):
        self.assertEqual(len(on_terminal(100, "list")), 10)
        self.assertEqual(len(on_terminal(100, "list", "--limit", "30")), 30)

    def test_of_one_provider_holds_no_other(self):
        providers = {record["provider"] for record in json_lines(run("list", "--provider", "host", "--json").stdout)}
        self.assertEqual(providers, {"host"})

    def test_of_a_design_holds_no_other(self):
        problem = ["grouped_gemm", "512x64x64", "groups=9", "a=bf16", "--device", "h200"]
        names = {}
        for schedule in ("device", "persistent"):
            records = json_lines(run("list", *problem, "--design", f"schedule={schedule}", "--json").stdout)
            self.assertEqual({record["design"]["schedule"] for record in records}, {schedule})
            names[schedule] = [record["kernel_name"] for record in records]
        few = run("list", *problem, "--design", "schedule=persistent", "--design", "stages=3", "--json")
        self.assertLess(len(json_lines(few.stdout)), len(names["persistent"]))
        ranked = run("explain", *problem, "--ranking", "--design", "schedule=device", "--limit", "1").stdout
        self.assertIn(names["device"][0], ranked)
        none = run("list", *problem, "--design", "schedule=host")
        self.assertEqual(none.returncode, NOT_SERVED)
        self.assertIn("of schedule=host", none.stderr)
        self.assertIn("schedule of those that fit: coop, device, persistent", none.stderr)
        for design, said in (("foo=9", "fields of those that fit: "), ("stages=99", "stages of those that fit: ")):
            self.assertIn(said, run("list", *problem, "--design", design, "--quiet").stderr)
        for wrong in ("schedule", "=host", "schedule="):
            done = run("list", *problem, "--design", wrong)
            self.assertEqual((done.returncode, "FIELD=VALUE" in done.stderr), (BAD_INPUT, True), done.stderr)
        self.assertEqual(run("explain", *problem, "--design", "schedule=host").returncode, BAD_INPUT)

    def test_of_a_kernel_by_name_prints_its_metadata(self):
        name = run("list", "--limit", "1").stdout.strip()
        self.assertEqual(json_lines(run("list", "--kernel", name, "--json").stdout)[0]["kernel_name"], name)
        self.assertIn(name, run("list", "--kernel", name).stdout)

    def test_answers_for_a_device_that_is_not_here(self):
        done = run("list", "--device", "h200", "--json", *SMALL)
        self.assertEqual(done.returncode, SERVED, done.stderr)
        records = json_lines(done.stdout)
        self.assertTrue(all(record["provider"] != "host" for record in records))
        self.assertTrue(all(record["device"] == "h200" for record in records))

    def test_tells_what_padded_operands_would_gain(self):
        problem = ["gemm", "256x4096x4096", "a=bf16", "b=bf16:c/ld=4097", "--device", "h200", "--limit", "0"]
        done = run("list", *problem)
        self.assertRegex(done.stderr, r"note: gemm 256x4096x4096 a=bf16 b=bf16:c/ld=4097 is \d+\.\d times slower than sm90.*of 16\)")
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertEqual(run("list", *problem, "--provider", "templates").stderr, "")
        self.assertEqual(run("list", "gemm", "4096x4096x4096", "a=bf16", "--device", "h200", "--limit", "0").stderr, "")

    def test_takes_a_target_for_a_device(self):
        problem = ["gemm", "512x512x512", "a=f16", "--limit", "1", "--json", "--device"]
        for target in ("sm_86", "sm_120", "sm_121", "sm_103a"):
            done = run("list", *problem, target)
            self.assertEqual(done.returncode, SERVED, done.stderr)
            self.assertIn("sm80v1", json_lines(done.stdout)[0]["kernel_name"])
        self.assertEqual(run("list", *problem, "sm_7x").returncode, BAD_INPUT)

    def test_for_a_target_takes_a_device_of_it(self):
        done = run("list", "--target", "sm_90", *SMALL)
        self.assertEqual(done.returncode, SERVED, done.stderr)
        self.assertIn("device: ", done.stderr)

    def test_says_why_nothing_fits(self):
        done = run("list", "--device", "cpu", "--provider", "templates", *SMALL)
        self.assertEqual(done.returncode, NOT_SERVED)
        self.assertEqual(done.stdout, "")
        self.assertIn("unsupported", done.stderr)
        self.assertIn("templates/simt: ", done.stderr)

    def test_and_run_refuse_what_only_another_operation_takes(self):
        for verb in ("verify", "run"):
            done = run(verb, "--device", "cpu", "gemm 16x16x16 a=e8m0")
            self.assertEqual(done.returncode, NOT_SERVED)
            self.assertIn("scales belong to an operand", done.stderr)


class OwnKernels(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.library = pathlib.Path(PROGRAM).parent / "examples" / "19_own_kernel_library.so"
        if not cls.library.exists():
            raise unittest.SkipTest("the examples were not built")

    def test_of_a_library_are_among_the_others(self):
        name = "user_rows_times_columns_v1_f32_f32_f32"
        own = run("list", "--load", str(self.library), "--provider", "user")
        self.assertEqual(own.returncode, SERVED, own.stderr)
        self.assertEqual(own.stdout.splitlines(), [name])
        narrowed = run("list", "--load", str(self.library), "--target", "cpu").stdout.splitlines()
        self.assertGreater(len(narrowed), 1)
        self.assertIn(name, narrowed)
        fitting = run("list", *SMALL, "--device", "cpu", "--load", str(self.library), "--json")
        self.assertEqual(json_lines(fitting.stdout)[-1]["kernel_name"], name)  # without a prediction
        self.assertIsNone(json_lines(fitting.stdout)[-1]["predicted_us"])
        verified = run("verify", *SMALL, "--device", "cpu", "--load", str(self.library), "--provider", "user")
        self.assertEqual(verified.returncode, SERVED, verified.stderr)
        self.assertEqual(run("list", "--provider", "user").stdout, "")

    def test_say_why_they_do_not_fit(self):
        done = run("explain", "gemm", "8x8x8x2", "a=f32", "--device", "cpu", "--load", str(self.library))
        self.assertIn("L: expected 1, got 2", done.stdout)

    def test_of_what_is_no_such_library_are_refused(self):
        missing = run("list", "--load", "/nowhere/own.so")
        self.assertEqual(missing.returncode, UNAVAILABLE)
        self.assertIn("--load /nowhere/own.so", missing.stderr)
        other = run("list", "--load", str(ROOT / "README.md"))
        self.assertEqual(other.returncode, UNAVAILABLE)

    def test_of_a_library_of_other_headers_are_refused_before_it_is_called(self):
        compiler = shutil.which(os.environ.get("CC", "cc"))
        if compiler is None:
            raise unittest.SkipTest("no C compiler here")
        register = "#include <stdlib.h>\nvoid gemmery_register_kernels(void) { abort(); }\n"
        layout = "unsigned long long gemmery_header_layout(void) { return 1; }\n"
        with tempfile.TemporaryDirectory() as folder:
            for name, text in (("other", register + layout), ("none", register)):
                source, library = pathlib.Path(folder, f"{name}.c"), pathlib.Path(folder, f"{name}.so")
                source.write_text(text)
                subprocess.run([compiler, "-shared", "-fPIC", source, "-o", library], check=True)
                done = run("list", "--load", str(library), "--provider", "user")
                self.assertEqual(done.returncode, BAD_INPUT, done.stderr)
                self.assertIn("expected a library built with the headers of this gemmery", done.stderr)
                self.assertIn("build it again", done.stderr)


class Explain(unittest.TestCase):
    def test_gives_a_reason_for_every_family(self):
        for device in ("cpu", "h200", "rtx4090", "b200"):
            records = json_lines(run("explain", "--device", device, "--json", *SMALL).stdout)
            self.assertGreater(len(records), 1, device)
            self.assertTrue(all(record["failed"] or record["fitting"] > 0 for record in records), device)

    def test_no_kernel_comes_with_a_reason(self):
        for problem in ("gemm 100000000x100000000x8 a=bf16", "gemm 1048576x1048576x64 a=f32"):
            records = json_lines(run("explain", "--device", "h200", "--json", problem).stdout)
            self.assertTrue(all(record["failed"] or record["fitting"] > 0 for record in records), problem)
            self.assertTrue(any("tiles" in record["failed"] for record in records), problem)

    def test_a_target_leaves_out_what_it_leaves_out_of_a_list(self):
        narrowed = ("--device", "h200", "--target", "sm_90a", "--json", "gemm 512x512x64 a=bf16")
        listed = {record["provider"] + "/" + record["kernel_name"].split("v")[0] for record in json_lines(run("list", *narrowed).stdout)}
        self.assertEqual({name[: name.index("/") + 5] for name in listed}, {"templates/sm90", "templates/sm80", "templates/simt"})
        for record in json_lines(run("explain", *narrowed).stdout):
            self.assertEqual(record["failed"] == "", record["family"] in ("sm90", "sm80", "simt"), record)
        told = {**os.environ, "GEMMERY_TARGET_SM": "sm_90a"}
        without = run("explain", "--device", "h200", "--json", "gemm 512x512x64 a=bf16", env=told)
        self.assertEqual(without.stdout, run("explain", *narrowed).stdout)

    def test_says_whether_a_kernel_serves(self):
        name = json_lines(run("list", "--device", "cpu", "--json", *SMALL).stdout)[0]["kernel_name"]
        self.assertTrue(json_lines(run("explain", "--device", "cpu", "--json", "--kernel", name, *SMALL).stdout)[0]["supported"])
        refusal = json_lines(run("explain", "--device", "h200", "--json", "--kernel", name, *SMALL).stdout)[0]
        self.assertFalse(refusal["supported"])
        self.assertTrue(refusal["failed"])

    def test_prints_a_table(self):
        self.assertIn("provider", run("explain", "--device", "cpu", *SMALL).stdout)

    def test_a_ranking_says_where_its_times_come_from(self):
        for device, source in (("h200", "predicted"), ("b200", "estimated"), ("rtx4090", "estimated"), ("sm_86", "estimated")):
            done = run("explain", "--device", device, "--ranking", "--limit", "3", "--json", "gemm 512x512x64 a=bf16")
            records = json_lines(done.stdout)
            self.assertEqual([record["rank"] for record in records], [1, 2, 3], device)
            self.assertEqual({record["time_source"] for record in records}, {source}, device)
            self.assertEqual("no kernel was timed on this architecture" in done.stderr, source == "estimated", device)
            table = run("explain", "--device", device, "--ranking", "gemm 512x512x64 a=bf16").stdout
            self.assertIn(source, table.splitlines()[1], device)

    def test_a_ranking_names_the_facts_that_no_source_confirms(self):
        for device, facts in (("gb10", "clock"), ("sm_121", "clock"), ("rtx4090", ""), ("h200", "")):
            for words in (("explain", "--ranking"), ("list",)):
                done = run(*words, "--device", device, "--limit", "1", "gemm 512x512x64 a=bf16")
                self.assertEqual(f"that no source confirms: {facts}" in done.stderr, bool(facts), done.stderr)


class Verify(unittest.TestCase):
    def test_exits_with_0_within_the_bound(self):
        for problem in (
            "gemm 48x40x56 a=f32",
            "gemm 33x17x65 a=f64",
            "gemm 32x16x64x3 a=int8 out=int32",
            "gemm 20x30x40 a=bf16 c=bf16 beta=1",
            "gemm 9x7x5 a=f16:c/align=2 b=f16/strides=-20,2",
            "gemm 5x4x0 a=f32 c=f32[n] beta=0.5",
            "grouped_gemm 50x24x40 groups=9 a=bf16",
            "conv2d_dgrad 2x9x8x6 k=5 r=3 s=2 pad=1:0,0:1 stride=2 a=f16",
            "grouped_gemm 24x20x60 groups=4 ragged=k counts=i64 a=f32 c=f32 beta=1",
            "grouped_gemm 9x7x5 groups=3 list=host a=f16",
        ):
            done = run("verify", "--device", "cpu", problem)
            self.assertEqual(done.returncode, SERVED, done.stderr + done.stdout)

    def test_says_what_share_of_the_allowed_error_was_found(self):
        done = run("verify", "--device", "cpu", *SMALL)
        self.assertRegex(done.stdout, r"^ok      \S+\n        worst error [\d.e%< -]+ of what is allowed: ok\n        0 of 1920 elements outside, ")

    def test_holds_every_kernel_that_fits_when_asked(self):
        fitting = json_lines(run("list", "--device", "cpu", "--json", *SMALL).stdout)
        reports = json_lines(run("verify", "--device", "cpu", "--top", "0", "--json", *SMALL).stdout)
        self.assertEqual(len(reports), len(fitting))
        self.assertTrue(all(report["passed"] and report["worst_ratio"] <= 1 for report in reports))

    def test_takes_names_of_kernels_with_programs_and_scales(self):
        for problem in (
            "gemm 9x10x32 a=bf16 b=u8 out=f32 scale_b=f16[tensor]",
            "gemm 9x10x32 a=s8 b=f16 out=f32 scale_a=f32[row] epilogue='D = relu(accum)'",
            "gemm 9x10x32 a=f64 b=s8 out=f32 program_b='B = b - 8' epilogue='D = relu(accum)'",
        ):
            for kernel in json_lines(run("list", "--device", "cpu", "--json", problem).stdout):
                done = run("verify", "--device", "cpu", "--kernel", kernel["kernel_name"], problem)
                self.assertEqual(done.returncode, SERVED, done.stderr + done.stdout)

    def test_a_line_end_is_a_statements_end(self):
        for words in (("a=f32", "epilogue=x=accum\nD=relu(x)"), ("a=f32\r",), ("a=f32\nb=f32",), ("a=f32\n",)):
            done = run("verify", "--device", "cpu", "gemm", "9x10x11", *words)
            self.assertEqual(done.returncode, SERVED, done.stderr + done.stdout)

    def test_tells_how_many_elements_have_no_bound(self):
        done = run("verify", "--device", "cpu", 'gemm 8x8x8 a=f32 epilogue="D = 1/((accum+1)-accum-1)"')
        self.assertEqual(done.returncode, SERVED, done.stderr + done.stdout)
        self.assertIn("64 without a bound", done.stdout)
        done = run("verify", "--device", "cpu", 'gemm 8x8x8 a=f32 epilogue="D = abs(1/((accum+1)-accum-1))"')
        self.assertIn("64 without a bound", done.stdout)

    def test_repeats_with_its_seed(self):
        first, second = (json_lines(run("verify", "--device", "cpu", "--seed", "42", "--json", *SMALL).stdout)[0] for _ in range(2))
        self.assertEqual(first, second)
        self.assertEqual(first["seed"], 42)

    def test_of_whole_numbers_is_exact(self):
        report = json_lines(run("verify", "--device", "cpu", "--fill", "integers", "--json", *SMALL).stdout)[0]
        self.assertEqual((report["passed"], report["worst_error"]), (True, 0))


class Run(unittest.TestCase):
    def test_prints_everything_that_is_promised(self):
        done = run("run", "--device", "cpu", *SMALL)
        self.assertEqual(done.returncode, SERVED, done.stderr)
        for word in ("device", "kernel", "compile", "time", "rate", "roofline", "error", "verified  yes"):
            self.assertRegex(done.stdout, rf"(?m)^{word}")

    def test_as_json_is_one_object(self):
        records = json_lines(run("run", "--device", "cpu", "--json", *SMALL).stdout)
        self.assertEqual(len(records), 1)
        self.assertTrue(records[0]["passed"])
        self.assertGreater(records[0]["median_us"], 0)
        self.assertGreater(records[0]["roofline_share"], 0)

    def test_says_which_device_it_chose(self):
        self.assertRegex(run("run", *SMALL).stderr, r"(?m)^device: \S+, ")

    def test_takes_the_kernel_that_was_named(self):
        name = json_lines(run("list", "--device", "cpu", "--json", *SMALL).stdout)[-1]["kernel_name"]
        self.assertEqual(json_lines(run("run", "--device", "cpu", "--kernel", name, "--json", *SMALL).stdout)[0]["kernel_name"], name)

    def test_refuses_a_kernel_that_does_not_fit(self):
        name = json_lines(run("list", "--device", "h200", "--json", *SMALL).stdout)[0]["kernel_name"]
        done = run("run", "--device", "cpu", "--kernel", name, *SMALL)
        self.assertEqual(done.returncode, NOT_SERVED)
        self.assertIn("unsupported", done.stderr)


class Bench(unittest.TestCase):
    QUICK = ["--device", "cpu", "--samples", "3", "--sample-ms", "0.1"]

    def test_times_several_problems_and_kernels(self):
        records = json_lines(run("bench", *self.QUICK, "--top", "2", "--json", *SMALL, "gemm", "64x64x64", "a=f32").stdout)
        self.assertEqual(len(records), 4)
        self.assertTrue(all(record["median_us"] > 0 and record["samples"] == 3 for record in records))
        self.assertEqual(len({record["problem"] for record in records}), 2)

    def test_reads_a_file_of_problems(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "list.csv"
            path.write_text("id,m,n,k,a_layout,b_layout,source\nT1,32,32,32,r,c,test\nT2,40,24,16,c,r,test\n")
            done = run("bench", *self.QUICK, "--file", str(path), "--dtype", "f32", "--dtype", "f64", "--csv")
        self.assertEqual(done.returncode, SERVED, done.stderr)
        rows = list(csv.DictReader(io.StringIO(done.stdout)))
        self.assertEqual([row["id"] for row in rows], ["T1", "T1", "T2", "T2"])
        self.assertTrue(all(float(row["median_us"]) > 0 for row in rows))

    def test_shows_no_progress_bar_where_standard_error_is_no_terminal(self):
        self.assertNotIn("\r", run("bench", *self.QUICK, *SMALL).stderr)


class Emulate(WithNvrtc):
    """Emulates a user's kernel; needs NVRTC, no GPU."""

    SOURCE = """\
__global__ void sum(const float* numbers, float* sums) {
  __shared__ float partial[256];
  partial[threadIdx.x] = numbers[blockIdx.x * 256 + threadIdx.x];
  __syncthreads();
  for (unsigned step = 128; step > 0; step /= 2) {
    if (threadIdx.x < step) partial[threadIdx.x] += partial[threadIdx.x + step];
    SYNC
  }
  if (threadIdx.x == 0) sums[blockIdx.x] = partial[0];
}
"""

    def setUp(self):
        super().setUp()
        self.kernel = self.folder / "reduce.cu"
        header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (1024,), }\n"
        ones = struct.pack("<1024f", *[1.0] * 1024)
        (self.folder / "ones.npy").write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + ones)

    def emulate(self, sync, *words):
        self.kernel.write_text(self.SOURCE.replace("SYNC", sync), encoding="utf-8")
        numbers = f"numbers={self.folder / 'ones.npy'}"
        return run("emulate", str(self.kernel), "--grid", "4", "--block", "256", "--arg", numbers, "--arg", "sums=unwritten:f32:4", *words)

    def test_a_right_kernel_exits_with_0_and_its_results_are_written(self):
        done = self.emulate("__syncthreads();", "--output", str(self.folder / "out"), "--coverage")
        self.assertEqual(done.returncode, SERVED, done.stderr)
        sums = (self.folder / "out" / "sums.npy").read_bytes()
        self.assertEqual(struct.unpack("<4f", sums[-16:]), (256.0,) * 4)
        self.assertIn("(4,)", sums[:-16].decode("latin-1"))
        self.assertIn("8 schedules", done.stdout)
        self.assertIn("instructions ran", done.stdout)

    def test_a_race_exits_with_1_and_names_both_sides(self):
        done = self.emulate("", "--json", "--seeds", "3", "--device", "a100")
        self.assertEqual(done.returncode, NOT_SERVED, done.stderr)
        records = json_lines(done.stdout)
        races = [record for record in records if record["record"] == "finding" and record["kind"] == "race"]
        self.assertTrue(races)
        for side in (races[0]["at"], races[0]["with"]):
            self.assertEqual((side["file"], side["line"]), (str(self.kernel), 6))
            self.assertEqual(side["kernel"], "sum(float const*, float*)")
            self.assertIn("lane", side)
        self.assertEqual(records[-1]["record"], "summary")
        self.assertFalse(records[-1]["passed"])

    def test_a_rule_suppresses_it(self):
        rules = self.folder / "rules"
        rules.write_text("race, reduce.cu:6\nresults differ\ndeadlock\n", encoding="utf-8")
        done = self.emulate("", "--suppress", str(rules))
        self.assertEqual(done.returncode, SERVED, done.stdout)
        self.assertIn("suppressed by the rule: race, reduce.cu:6", done.stdout)
        self.assertIn("the rule matches no finding: deadlock", done.stdout)

    def test_each_mistake_has_its_exit_code_and_names_what_is_wrong(self):
        rows = [
            (["--arg", "3"], BAD_INPUT, "arguments of sum"),
            (["--entry", "product"], BAD_INPUT, "'product'"),
            (["--device", "h999"], BAD_INPUT, "--device"),
            (["--grid", "4,4"], BAD_INPUT, "--grid"),
            (["--block", "2048"], BAD_INPUT, "block"),
            (["--suppress", str(self.folder / "none")], FAILED, "none"),
            (["--define", "__syncthreads=nothing"], FAILED, "nothing"),
        ]
        for words, code, part in rows:
            with self.subTest(words):
                done = self.emulate("__syncthreads();", *words)
                self.assertEqual(done.returncode, code, done.stderr)
                self.assertIn(part, done.stderr)
                self.assertEqual(done.stdout, "")


class Compile(WithNvrtc):
    """Compiles into a file and reads it; needs NVRTC, no GPU."""

    def setUp(self):
        super().setUp()
        self.file = str(self.folder / "a file of kernels")

    def test_writes_a_file_that_can_be_looked_into(self):
        done = run("compile", *SMALL, "gemm", "64x64x64", "a=f32", "--target", "sm_80", "--target", "sm_90", "-o", self.file, "--json")
        self.assertEqual(done.returncode, SERVED, done.stderr)
        compiled = json_lines(done.stdout)
        self.assertEqual({record["target"] for record in compiled}, {"sm_80", "sm_90"})
        done = run("compile", "--inspect", self.file, "--json")
        self.assertEqual(done.returncode, SERVED, done.stderr)
        held = json_lines(done.stdout)
        self.assertEqual(*[sorted((record["kernel_name"], record["target"]) for record in records) for records in (held, compiled)])
        for record in held:
            self.assertTrue(record["problems"] and record["cubin_bytes"] > 0 and record["registers"] > 0, record)
            self.assertEqual(record["ptx_bytes"], 0)
            self.assertEqual(record["refusal"], "")
            self.assertTrue(record["instructions"] or record["no_instructions"])
        text = run("compile", "--inspect", self.file).stdout
        for word in ("problem", "design", "registers", "spilled", "instructions"):
            self.assertIn(word, text)

    def test_damage_is_refused_by_the_name_of_the_file(self):
        self.assertEqual(run("compile", *SMALL, "--target", "sm_90", "-o", self.file).returncode, SERVED)
        path = pathlib.Path(self.file)
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1
        path.write_bytes(content)
        done = run("compile", "--inspect", self.file)
        self.assertEqual(done.returncode, FAILED)
        self.assertIn("a file of kernels, checksum", done.stderr)

    def test_what_is_no_whole_file_of_kernels_is_refused_by_name_and_field(self):
        self.assertEqual(run("compile", *SMALL, "--target", "sm_90", "-o", self.file).returncode, SERVED)
        path = pathlib.Path(self.file)
        content = path.read_bytes()
        broken = {
            "empty": b"",
            "a few bytes": content[:7],
            "half": content[: len(content) // 2],
            "one byte short": content[:-1],
            "one byte long": content + b"x",
            "twice": content + content,
            "text": b"these are no kernels\n" * 100,
            "zeros": bytes(len(content)),
            "another mark": b"X" + content[1:],
        }
        for name, changed in broken.items():
            with self.subTest(name):
                path.write_bytes(changed)
                done = run("compile", "--inspect", self.file)
                self.assertEqual(done.returncode, FAILED, done.stderr)
                self.assertIn("a file of kernels", done.stderr)
                self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
                self.assertEqual(done.stdout, "")

    def test_what_is_no_file_is_refused_by_name(self):
        folder = pathlib.Path(self.file).parent
        os.mkfifo(folder / "pipe")
        for name in (str(folder), str(folder / "nothing"), str(folder / "pipe"), "/dev/zero"):
            with self.subTest(name):
                done = run("compile", "--inspect", name)
                self.assertEqual(done.returncode, FAILED, done.stderr)
                self.assertIn(name, done.stderr)

    def test_progress_is_for_terminals_only(self):
        self.assertNotIn("\r", run("compile", *SMALL, "--target", "sm_90", "-o", self.file).stderr)


class Inspect(WithNvrtc):
    """gemmery inspect, with a compiler."""

    PROBLEM = ("gemm", "64x64x64", "a=f32", "--target", "sm_90")

    def setUp(self):
        super().setUp()
        self.file = str(self.folder / "kernels")

    def show(self, *words):
        done = run("inspect", *words)
        self.assertEqual(done.returncode, SERVED, done.stderr)
        return done.stdout

    def test_shows_each_form_of_the_code_of_a_problem(self):
        self.assertIn("registers", self.show(*self.PROBLEM))
        source = self.show(*self.PROBLEM, "--source")
        self.assertIn("__global__", source)
        self.assertIn("#include <device/", source)
        whole = self.show(*self.PROBLEM, "--source", "--inline")
        self.assertNotIn("#include <device/", whole)
        self.assertGreater(len(whole), 10 * len(source))
        self.assertIn(".target sm_90", self.show(*self.PROBLEM, "--ptx"))
        record = json_lines(self.show(*self.PROBLEM, "--ptx", "--json"))[0]
        self.assertEqual((record["target"], record["ptx"]), ("sm_90", self.show(*self.PROBLEM, "--ptx")))

    def test_machine_code_needs_a_disassembler(self):
        done = run("inspect", *self.PROBLEM, "--sass")
        if done.returncode == SERVED:
            self.assertIn("EXIT", done.stdout)
        else:
            self.assertIn("nvidia-cuda-nvdisasm", done.stderr)

    def test_several_kernels_are_told_apart(self):
        text = self.show(*self.PROBLEM, "--provider", "templates", "--top", "2", "--ptx")
        names = [line for line in text.splitlines() if line.startswith("// ") and line.endswith(" for sm_90")]
        self.assertEqual(len(set(names)), 2, names)

    def test_shows_the_code_in_a_file(self):
        self.assertEqual(run("compile", *self.PROBLEM, "-o", self.file).returncode, SERVED)
        self.assertEqual(self.show(self.file), run("compile", "--inspect", self.file).stdout)
        self.assertEqual(self.show(self.file, "--source"), self.show(*self.PROBLEM, "--source"))
        done = run("inspect", self.file, "--ptx")
        self.assertEqual(done.returncode, UNAVAILABLE)
        self.assertIn("gemmery compile --ptx", done.stderr)

    def test_what_cannot_be_shown_is_refused_with_the_reason(self):
        for words, text in (
            ((), "a problem or an artifact file"),
            (("--source", "--ptx", *self.PROBLEM), "--source"),
            (("--inline", *self.PROBLEM), "--source"),
            (("gemm", "64x64x64", "a=f32", "--device", "cpu"), "the target of a GPU"),
            (("docs/cli.md", "--target", "sm_90"), "with a file"),
        ):
            with self.subTest(words):
                done = run("inspect", *words)
                self.assertEqual(done.returncode, BAD_INPUT, done.stderr)
                self.assertIn(text, done.stderr)
        self.assertEqual(run("inspect", "nowhere.gemmery").returncode, FAILED)


# Unlike time on a clock, what a process used does not grow with other work on the machine.
def processor_seconds(process):
    fields = pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def processor_seconds_of_children():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class Interrupt(unittest.TestCase):
    """Ctrl-C in a program that does not ignore SIGINT."""

    # Tens of seconds of compilation, without the cache.
    MANY = ("compile", "gemm", "4096x4096x4096", "a=f16", "--target", "sm_90a", "--top", "60", "--jobs", "1")

    def start(self, *words):
        return subprocess.Popen(
            [PROGRAM, *words], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, "GEMMERY_CACHE_MAX_BYTES": "0"},
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )  # fmt: skip

    def test_cancels_compilations_leaves_no_file_and_ends_by_the_signal(self):
        if "NVRTC" not in run("doctor").stdout:
            self.skipTest("no compiler here")
        # While the program starts, and in the middle of compiling, which a machine with other work reaches later.
        for seconds in (0.3, 2, 4, 8, 16):
            with self.subTest(seconds), tempfile.TemporaryDirectory() as folder:
                program = self.start(*self.MANY, "-o", os.path.join(folder, "kernels"))
                time.sleep(seconds)
                program.send_signal(signal.SIGINT)
                _, said = program.communicate(timeout=60)
                self.assertEqual(program.returncode, -signal.SIGINT, said)
                self.assertEqual(os.listdir(folder), [])
            if seconds > 1 and "gemmery: interrupted: no file was written" in said:
                return
        self.fail("a program that was interrupted while it compiled did not say so")

    def test_ends_other_verbs_by_the_signal(self):
        on_emulator = ("4096x4096x4096", "a=f16", "--device", "emulated:h200")
        for words in (
            ("verify", "gemm", "6000x6000x6000", "a=f64"),
            ("verify", "gemm", *on_emulator),
            ("verify", "gemm", *on_emulator, "--json"),
            ("run", "gemm", *on_emulator),
        ):
            with self.subTest(words):
                program = self.start(*words)
                time.sleep(3 if on_emulator[0] in words else 1)  # the emulated kernel is compiled first
                before, earlier = processor_seconds_of_children(), processor_seconds(program.pid)
                program.send_signal(signal.SIGINT)
                written, said = program.communicate(timeout=60)
                self.assertEqual(program.returncode, -signal.SIGINT, said)
                self.assertLess(processor_seconds_of_children() - before - earlier, 2.0)
                self.assertEqual(written, "")


class Variables(unittest.TestCase):
    """An invalid value gives an error with the variable's name and the expected values, before anything else happens."""

    # Variable, value, text of the error; for commands that compile.
    COMPILER_ROWS = [
        ("GEMMERY_COMPILER", "clang", "nvrtc or nvcc"),
        ("GEMMERY_NVRTC_LIBRARY", "libnvrtc.so", "an absolute path"),
        ("GEMMERY_NUM_COMPILE_JOBS", "0", "a whole number from 1"),
        ("GEMMERY_COMPILE_TIMEOUT", "soon", "a whole number from 1"),
        ("GEMMERY_DISABLE_JIT", "perhaps", "1, 0, true, false, on or off"),
        ("GEMMERY_CACHE_DIR", "cache", "an absolute path"),
        ("GEMMERY_CACHE_SHARED", "/a::/b", "absolute paths"),
        ("GEMMERY_CACHE_MAX_BYTES", "1GB", "a whole number from 0"),
        ("GEMMERY_CACHE_READONLY", "2", "1, 0, true, false, on or off"),
        ("GEMMERY_DUMP_DIR", "dumps", "an absolute path"),
    ]
    # For all commands that search kernels.
    ROWS = [
        ("GEMMERY_LOG_LEVEL", "loud", "debug, info, warning, error"),
        ("GEMMERY_LOG_FILE", "log.txt", "an absolute path"),
        ("GEMMERY_DETERMINISTIC", "maybe", "1, 0, true, false, on or off"),
        ("GEMMERY_TARGET_SM", "hopper", "the target of a GPU"),
    ]

    def check(self, words, row):
        name, value, expected = row
        done = run(*words, env={**os.environ, name: value})
        self.assertEqual(done.returncode, BAD_INPUT, (row, done.stderr))
        self.assertIn(name, done.stderr)
        self.assertIn(expected, done.stderr)
        self.assertIn(value, done.stderr)
        self.assertEqual(done.stdout, "")

    def test_that_concern_discovery(self):
        for row in self.ROWS:
            for words in (["list", *SMALL], ["run", "--device", "cpu", *SMALL]):
                with self.subTest(row=row, words=words):
                    self.check(words, row)

    def test_that_concern_compiling(self):
        with tempfile.TemporaryDirectory() as folder:
            file = str(pathlib.Path(folder) / "kernels")
            for row in self.COMPILER_ROWS:
                with self.subTest(row=row):
                    name, value, expected = row
                    # An empty cache: with a hit in the user's, no compiler is started and no variable of it is read.
                    environment = {**os.environ, "GEMMERY_CACHE_DIR": folder + "/cache", name: value}
                    done = run("compile", *SMALL, "--target", "sm_90", "-o", file, env=environment)
                    self.assertNotEqual(done.returncode, SERVED, row)
                    self.assertIn(name, done.stderr)
                    self.assertIn(expected, done.stderr)
                    self.assertFalse(os.path.exists(file))

    def test_the_target_is_that_of_commands_that_name_none(self):
        done = run("list", "gemm", "512x512x512", "a=bf16", "b=bf16:c", "out=bf16", "--json", env={**os.environ, "GEMMERY_TARGET_SM": "sm_90a"})
        self.assertEqual(done.returncode, SERVED, done.stderr)
        records = json_lines(done.stdout)
        self.assertTrue(records[0]["kernel_name"].startswith("sm90"))
        self.assertTrue(all("sm_90a" in record["supported_targets"] or "sm_90" in record["supported_targets"] for record in records))

    def test_the_log_goes_where_it_is_told(self):
        with tempfile.TemporaryDirectory() as folder:
            log = pathlib.Path(folder) / "log"
            done = run("cache", "stat", env={**os.environ, "GEMMERY_CACHE_DIR": folder + "/c", "GEMMERY_LOG_FILE": str(log)})
            self.assertEqual(done.returncode, SERVED)
            self.assertFalse(log.exists() and log.read_text())


class Cache(WithNvrtc):
    """gemmery cache with the test's own cache; its entries are compiled, so NVRTC is needed, no GPU."""

    def setUp(self):
        super().setUp()
        self.cache = self.folder / "cache"
        self.environment = {**os.environ, "GEMMERY_CACHE_DIR": str(self.cache)}
        for name in ("GEMMERY_CACHE_READONLY", "GEMMERY_CACHE_SHARED", "GEMMERY_CACHE_MAX_BYTES"):
            self.environment.pop(name, None)

    def command(self, *words, **variables):
        return run(*words, env={**self.environment, **variables})

    def fill(self):
        """Makes two entries; returns the number of compilations."""
        done = self.command("compile", *SMALL, "--target", "sm_80", "--target", "sm_90", "-o", str(self.folder / "kernels"))
        self.assertEqual(done.returncode, SERVED, done.stderr)

    def record(self, *words):
        done = self.command(*words, "--json")
        self.assertEqual(done.returncode, SERVED, done.stderr)
        return json_lines(done.stdout)

    def entries(self):
        return sorted(path.parent for path in self.cache.glob("v1/??/??/*/manifest"))

    def damage(self, entry):
        code = entry / "kernel.cubin"
        content = bytearray(code.read_bytes())
        content[len(content) // 3] ^= 4
        code.write_bytes(content)

    def test_a_second_process_compiles_nothing(self):
        self.fill()
        self.assertEqual(len(self.entries()), 2)
        self.fill()
        counters = self.record("cache", "stat")[0]
        self.assertEqual([counters[name] for name in ("kept", "hits", "absent")], [2, 2, 2])
        done = self.command("compile", *SMALL, "--target", "sm_80", "-o", str(self.folder / "again"), GEMMERY_DISABLE_JIT="1")
        self.assertEqual(done.returncode, SERVED, done.stderr)

    def test_what_ran_once_runs_again_without_a_compiler(self):
        words = ["run", "--device", "emulated:h200", "gemm", "33x34x35", "a=f32", "--json"]
        for variables in ({}, {"GEMMERY_DISABLE_JIT": "1"}):
            done = self.command(*words, **variables)
            self.assertEqual(done.returncode, SERVED, done.stderr)
        counters = self.record("cache", "stat")[0]
        self.assertEqual(counters["kept"], counters["hits"])
        self.assertGreater(counters["hits"], 0)

    def test_stat_tells_place_size_and_counters(self):
        self.assertEqual(self.record("cache", "stat")[0]["entries"], 0)
        self.fill()
        report = self.record("cache")[0]  # stat is the default
        self.assertEqual((report["folder"], report["is_usable"], report["entries"]), (str(self.cache), True, 2))
        self.assertEqual(report["bytes"], sum(file.stat().st_size for entry in self.entries() for file in entry.iterdir()))
        text = self.command("cache", "stat").stdout
        for word in (str(self.cache), "file system", "entries", "hits", "misses: not compiled before", "stored"):
            self.assertIn(word, text)
        self.assertNotIn("damaged", text)  # what never occurred is left out

    def test_stat_tells_why_a_cache_is_not_used_and_the_others_fail_for_it(self):
        os.mkdir(self.cache)
        os.chmod(self.cache, 0o777)
        self.assertIn("may be written by others", self.record("cache", "stat")[0]["refusal"])
        for action in ("list", "verify", "prune", "clear"):
            done = self.command("cache", action)
            self.assertEqual(done.returncode, UNAVAILABLE, action)
            self.assertIn("may be written by others", done.stderr)

    def test_list_names_each_entry_as_it_lies_in_the_folder(self):
        self.fill()
        records = self.record("cache", "list")
        folders = {"".join(entry.parts[-3:]) for entry in self.entries()}
        self.assertEqual({record["name"] for record in records}, folders)
        self.assertEqual({record["target"] for record in records}, {"sm_80", "sm_90"})
        self.assertTrue(all(record["form"] == "cubin" and record["kernel"] and record["bytes"] > 0 for record in records))
        self.assertTrue(all("gemm a=f32" in record["words"] for record in records), records)
        text = self.command("cache", "list").stdout
        self.assertTrue(all(name in text for name in folders))
        self.assertIn("D = alpha * accum + beta * C", text)

    def test_verify_names_what_is_damaged_and_prune_removes_it(self):
        self.fill()
        self.assertEqual(self.record("cache", "verify"), [{"sound": 2, "faulty": []}])
        broken = self.entries()[0]
        self.damage(broken)
        done = self.command("cache", "verify")
        self.assertEqual(done.returncode, FAILED)
        self.assertIn("".join(broken.parts[-3:]) + ": damaged", done.stdout)
        self.assertIn("1 sound, 1 faulty", done.stdout)
        self.assertEqual(self.record("cache", "prune")[0]["entries"], 1)
        self.assertEqual(self.record("cache", "verify"), [{"sound": 1, "faulty": []}])

    def test_a_damaged_entry_is_compiled_again_and_nobody_notices(self):
        self.fill()
        for entry in self.entries():
            self.damage(entry)
        self.fill()
        self.assertEqual(self.record("cache", "verify"), [{"sound": 2, "faulty": []}])
        self.assertEqual(self.record("cache", "stat")[0]["damaged"], 2)

    def test_prune_keeps_to_the_bytes_that_are_asked_for(self):
        self.fill()
        one = max(record["bytes"] for record in self.record("cache", "list"))
        self.assertEqual(self.record("cache", "prune", "--bytes", str(one))[0]["entries"], 1)
        self.assertEqual(len(self.entries()), 1)
        self.assertEqual(self.record("cache", "prune", "--bytes", "0")[0]["entries"], 1)
        self.assertEqual(self.command("cache", "prune", "--bytes", "few").returncode, BAD_INPUT)

    def test_clear_leaves_nothing_and_sets_the_counters_to_zero(self):
        self.fill()
        self.assertEqual(self.record("cache", "clear")[0]["entries"], 2)
        report = self.record("cache", "stat")[0]
        self.assertEqual((report["entries"], report["bytes"], report["kept"]), (0, 0, 0))
        self.assertIn("removed 0 entries", self.command("cache", "clear").stdout)

    def test_a_read_only_cache_is_not_tidied(self):
        self.fill()
        for action in ("prune", "clear"):
            done = self.command("cache", action, GEMMERY_CACHE_READONLY="1")
            self.assertEqual(done.returncode, UNAVAILABLE)
            self.assertIn("GEMMERY_CACHE_READONLY", done.stderr)
        self.assertEqual(len(self.entries()), 2)

    def test_an_unknown_action_is_bad_input(self):
        done = self.command("cache", "polish")
        self.assertEqual(done.returncode, BAD_INPUT)
        self.assertIn("polish", done.stderr)

    def test_dumps_hold_each_build_whether_compiled_or_found(self):
        dumps = self.folder / "dumps"
        self.environment["GEMMERY_DUMP_DIR"] = str(dumps)
        for _ in range(2):
            self.fill()
            names = sorted(path.name for path in dumps.iterdir())
            self.assertEqual([name.split("-")[-2] for name in names], ["sm_80", "sm_90"])
            for name in names:
                self.assertEqual({path.name for path in (dumps / name).iterdir()}, {"key", "source.cu", "kernel.cubin", "log", "manifest"})
                (dumps / name / "log").unlink()


class Doctor(unittest.TestCase):
    def test_names_every_library_with_what_it_enables(self):
        done = run("doctor", "--json")
        self.assertEqual(done.returncode, SERVED)
        report = json_lines(done.stdout)[0]
        for library in report["libraries"]:
            self.assertTrue(library["enables"], library)
            self.assertTrue(os.path.isabs(library["path"]) if library["found"] else library["searched"], library)
        self.assertTrue({"CUDA driver", "NVRTC", "oneDNN", "cuBLASLt"} <= {library["name"] for library in report["libraries"]})

    def test_names_the_facts_of_devices_that_no_source_confirms(self):
        facts = json_lines(run("doctor", "--json").stdout)[0]["unconfirmed_facts"]
        self.assertEqual(facts["gb10"], "clock")
        self.assertNotIn("h200", facts)
        self.assertRegex(run("doctor").stdout, r"(?m)^facts    not confirmed by a source: .*gb10 \(clock\)")

    def test_prints_the_version(self):
        self.assertRegex(run("doctor").stdout, r"^gemmery \d+\.\d+\.\d+\n")


class RaceList(unittest.TestCase):
    def test_every_problem_has_a_kernel_on_an_h200(self):
        command = [sys.executable, "tools/run_races.py", str(pathlib.Path(PROGRAM).parent), "--dry-run", "h200"]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=TIME_LIMIT_S, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"\d{3} problems in \d+ sets, 0 without a kernel\n$")


class StandardOutput(unittest.TestCase):
    def test_that_is_closed_early_ends_the_program_quietly(self):
        program = subprocess.Popen([PROGRAM, "list"], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        program.stdout.close()
        self.assertEqual(program.stderr.read(), b"")
        program.stderr.close()
        self.assertEqual(program.wait(TIME_LIMIT_S), SERVED)

    @unittest.skipUnless(os.path.exists("/dev/full"), "no /dev/full here")
    def test_that_is_full_is_an_error(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = subprocess.run([PROGRAM, "list"], cwd=ROOT, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, FAILED)
        self.assertIn("standard output", done.stderr)

    def test_a_closed_standard_error_does_not_change_the_exit_code(self):
        done = subprocess.run(["sh", "-c", 'exec "$0" list x 2>&-', PROGRAM], cwd=ROOT, stdout=subprocess.DEVNULL, timeout=60, check=False)
        self.assertEqual(done.returncode, BAD_INPUT)


if __name__ == "__main__":
    PROGRAM = str(pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main()
