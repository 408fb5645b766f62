# SPDX-License-Identifier: Apache-2.0
"""timing.py - how long a test waits: the seconds of an idle machine, times how slow this one is.

run.py measures that factor and gives it to every suite as TEST_TIME_SCALE. Constants are seconds of
an idle machine; where something waits for them, and where a cluster is told of them, they go through
here. Tests in C have `scaled_ms` of tests/unit/test.h.
"""
import math
import os

SCALE = max(1.0, float(os.environ.get("TEST_TIME_SCALE", "1")))


def scaled(seconds):
    """For whatever waits, and for how long something is let last."""
    return seconds * SCALE


def setting(seconds, most=math.inf):
    """The same as cluster files and the environment of nodes say it; `most` is what they take."""
    return f"{round(min(scaled(seconds), most) * 1000)}ms"
