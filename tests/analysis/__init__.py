"""Tests of tritonkernels.analysis: the seeds' figures, properties, NVIDIA's own occupancy calculator."""

import hypothesis

repeatable = hypothesis.settings(derandomize=True, deadline=None)  # the same examples in every run
