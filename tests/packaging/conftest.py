# SPDX-License-Identifier: Apache-2.0
"""A wheel takes as long as a build of the whole library, so wheels are tested only in long runs."""

import os

collect_ignore = [] if os.environ.get("GEMMERY_SOAK") == "1" else ["test_wheels.py"]
