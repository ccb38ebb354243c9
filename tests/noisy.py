"""Tests that other work on the machine can still fail: asked for with RECOVER_NOISY=1.

Each waits for a mended cause, named where the mark stands; then the mark goes.
"""

import os

import pytest

noisy = pytest.mark.skipif(
    not os.environ.get("RECOVER_NOISY"),
    reason="fails now and then on a busy machine: RECOVER_NOISY=1",
)
