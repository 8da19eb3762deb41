# SPDX-License-Identifier: Apache-2.0
"""Wheels take as long as a build of the whole library, so they are tested in the long form alone."""

import os

collect_ignore = [] if os.environ.get("GEMMERY_SOAK") == "1" else ["test_wheels.py"]
