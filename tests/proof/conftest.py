"""The real toolkit of the test environment's wheels, found as a user's would be."""

from __future__ import annotations

import pytest

from fp4patch.proof.toolchain import Toolchain, find_toolchain


@pytest.fixture(scope="session")
def toolchain() -> Toolchain:
    return find_toolchain()
