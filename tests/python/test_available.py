# SPDX-License-Identifier: Apache-2.0
"""Reports once why no other test runs if the package cannot be imported."""

import pytest

from conftest import WHY_UNAVAILABLE


@pytest.mark.parametrize("where", ["here", pytest.param("on a GPU", marks=pytest.mark.gpu)])
def test_the_package_can_be_imported(where):
    if WHY_UNAVAILABLE:
        pytest.skip(f"the package cannot be imported: {WHY_UNAVAILABLE}")
