#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The layer checker finds every kind of planted violation, and none in the present tree."""

import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import check_layers  # noqa: E402

LAYERS = """\
# a small house
device/abi:
core:        device/abi
platform:    core
jit:         core platform
device/ptx:  device/abi
device/gemm: device/abi device/ptx
providers/host: core platform
providers:   core providers/host
api:         core platform jit providers
cli:         include/gemmery
python:      include/gemmery cli
bench:       include/gemmery
tests:       anything
header include/gemmery/dtype.def = device/abi
header include/gemmery/error.hpp = core
header include/gemmery/log.hpp = platform
"""

LEGAL = {
    "include/gemmery/dtype.def": "",
    "include/gemmery/error.hpp": "#include <string>\n#include <stdint.h>\n",
    "include/gemmery/log.hpp": "#include <gemmery/error.hpp>\n",
    "src/device/abi/types.hpp": "#include <gemmery/dtype.def>\n",
    "src/device/ptx/load.cuh": "#include <device/abi/types.hpp>\n",
    "src/device/gemm/simt.cuh": "#include <device/ptx/load.cuh>\n",
    "src/core/value.hpp": "#include <gemmery/error.hpp>\n",
    "src/core/value.cpp": '#include "core/value.hpp"\n#include <device/abi/types.hpp>\n#include <fmt/core.h>\n',
    "src/platform/log.cpp": "#include <gemmery/log.hpp>\n#include <dlfcn.h>\n#include <sys/stat.h>\n",
    "src/providers/host/plain.cpp": '#include "platform/log.hpp"\n',
    "src/providers/list.cpp": '#include "providers/host/plain.hpp"\n',
    "cli/main.cpp": '#include "options.hpp"\n#include "cli/options.hpp"\n#include <gemmery/log.hpp>\n#include <CLI/CLI.hpp>\n',
    "cli/options.hpp": "",
    "python/program.cpp": '#include "cli/options.hpp"\n#include <gemmery/log.hpp>\n',
    "bench/peers/cublaslt.cpp": "#include <cublasLt.h>\n#include <gemmery/error.hpp>\n",
    "tests/jit/nvrtc_test.cpp": '#include "jit/nvrtc.hpp"\n#include <nvrtc.h>\n#include <device/gemm/simt.cuh>\n',
}

# Additions to the valid tree, and text of the expected message: (name, path, text, words).
PLANTED = [
    ("a higher room", "src/core/bad.cpp", '#include "platform/log.hpp"', "core may not include platform"),
    ("a sibling room", "src/platform/bad.cpp", '#include "jit/nvrtc.hpp"', "platform may not include jit"),
    ("a higher room with <>", "src/core/bad.cpp", "#include <platform/log.hpp>", "core may not include platform"),
    ("a room inside a room", "src/jit/bad.cpp", '#include "providers/host/plain.hpp"', "jit may not include providers/host"),
    ("a public header of a higher room", "src/core/bad.cpp", "#include <gemmery/log.hpp>", "belongs to platform"),
    ("a public header from a lower one", "include/gemmery/error.hpp", "#include <gemmery/log.hpp>", "belongs to platform"),
    ("a public header in quotes", "src/core/bad.cpp", '#include "gemmery/error.hpp"', "with <…>"),
    ("an unlisted public header", "include/gemmery/extra.hpp", "", "without a line"),
    ("an include of an unlisted public header", "src/core/bad.cpp", "#include <gemmery/extra.hpp>", "no public header"),
    ("an inner header in a public one", "include/gemmery/error.hpp", '#include "core/value.hpp"', "public headers only"),
    ("a third-party header in a public one", "include/gemmery/error.hpp", "#include <fmt/core.h>", "standard library"),
    ("a system header in a public one", "include/gemmery/error.hpp", "#include <dlfcn.h>", "standard library"),
    ("a third-party header in a header", "src/core/bad.hpp", "#include <xxhash.h>", ".cpp files only"),
    ("device code on the host", "src/api/bad.cpp", "#include <device/gemm/simt.cuh>", "device/abi only"),
    ("device abi where it is not allowed", "src/jit/bad.cpp", "#include <device/abi/types.hpp>", "jit may not include device/abi"),
    ("a host room on the device", "src/device/ptx/bad.cuh", "#include <core/value.hpp>", "device code only"),
    ("a standard header on the device", "src/device/ptx/bad.cuh", "#include <cstdint>", "device code only"),
    ("a toolkit header on the device", "src/device/ptx/bad.cuh", "#include <cuda_fp16.h>", "device code only"),
    ("quotes on the device", "src/device/gemm/bad.cuh", '#include "device/ptx/load.cuh"', "with <…> only"),
    ("a higher device room", "src/device/ptx/bad.cuh", "#include <device/gemm/simt.cuh>", "device/ptx may not include device/gemm"),
    ("a host's public header on the device", "src/device/ptx/bad.cuh", "#include <gemmery/error.hpp>", "belongs to core"),
    ("the toolkit", "src/jit/bad.cpp", "#include <nvrtc.h>", "no toolkit header"),
    ("the driver API", "src/jit/bad.cpp", "#include <cuda.h>", "no toolkit header"),
    ("cuBLAS", "cli/bad.cpp", "#include <cublasLt.h>", "no toolkit header"),
    ("the toolkit in a bench that is no peer", "bench/bad.cpp", "#include <cuda_runtime.h>", "no toolkit header"),
    ("a vendor's header", "src/providers/host/bad.cpp", "#include <dnnl.h>", "vendor's header"),
    ("an inner header in the program", "cli/bad.cpp", '#include "core/value.hpp"', "public headers only"),
    ("an inner header in Python, which may include the program", "python/bad.cpp", '#include "core/value.hpp"', "public headers only"),
    ("an inner header in a peer bench", "bench/peers/bad.cpp", '#include "core/value.hpp"', "public headers only"),
    ("a file in no room", "src/misc/bad.cpp", "", "no room"),
    ("a file in no room at the top", "src/bad.cpp", "", "no room"),
    ("a relative include", "src/core/bad.cpp", '#include "../platform/log.hpp"', "relative"),
    ("an include without its room", "src/core/bad.cpp", '#include "value.hpp"', "spell it room/file"),
    ("an include after odd spaces", "src/core/bad.cpp", '  #  include\t"platform/log.hpp"', "core may not include platform"),
    ("an include after a comment", "src/core/bad.cpp", '/* x\n */ // "\n#include "platform/log.hpp"', ":3: "),
]

# The same for lines added to the map.
PLANTED_LINES = [
    ("a room named before it is defined", "low: high\nhigh: core", "names high before"),
    ("a cycle", "one: two\ntwo: one", "names two before"),
    ("a room that names itself", "one: one", "names one before"),
    ("an unknown room", "one: nowhere", "names nowhere before"),
    ("a room twice", "core:", "defined twice"),
    ("a header of no room", "header include/gemmery/error2.hpp = nowhere", "is no room"),
    ("a header twice", "header include/gemmery/error.hpp = core", "listed twice"),
    ("a header that does not exist", "header include/gemmery/gone.hpp = core", "does not exist"),
    ("a line of no known form", "core may include anything", "neither"),
]


def violations_of(files, layers=LAYERS):
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        (root / "layers.txt").write_text(layers)
        for name, text in files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        return check_layers.Checker(root).run()


class CheckLayers(unittest.TestCase):
    def test_the_real_tree_has_no_violation(self):
        self.assertEqual(check_layers.Checker(ROOT).run(), [])

    def test_a_legal_tree_has_no_violation(self):
        self.assertEqual(violations_of(LEGAL), [])

    def test_each_planted_violation_is_found_and_nothing_else(self):
        for name, path, text, words in PLANTED:
            with self.subTest(name):
                found = violations_of({**LEGAL, path: text + "\n"})
                self.assertEqual(len(found), 1, found)
                self.assertIn(words, found[0])
                self.assertTrue(found[0].startswith(path + ":"), found[0])

    def test_each_planted_fault_of_the_map_is_found(self):
        for name, line, words in PLANTED_LINES:
            with self.subTest(name):
                found = violations_of(LEGAL, LAYERS + line + "\n")
                self.assertTrue(any(words in violation for violation in found), found)

    def test_includes_in_comments_and_raw_strings_do_not_count(self):
        text = '// #include "platform/a.hpp"\n/*\n#include "platform/b.hpp"\n*/\nconst char* source = R"x(\n#include <cuda.h>\n)x";\n'
        self.assertEqual(violations_of({**LEGAL, "src/core/quiet.cpp": text}), [])


if __name__ == "__main__":
    unittest.main()
