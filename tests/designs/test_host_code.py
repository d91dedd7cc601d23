"""What the host tells CUDA of a launch and of a tensor map: common/launch.cuh and encode.cuh, whose code for GPUs no CPU
runs, compiled by g++ with a CUDA that notes its calls."""

import json
import os
import subprocess
from pathlib import Path

import pytest

import cuda_reference

NO_INTERLEAVE, SWIZZLE_128, L2_128, L2_256, ZEROS = 0, 3, 2, 3, 0


@pytest.fixture(scope="module")
def noted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("host")
    for name in ("cudaTypedefs.h", "cuda_runtime.h"):
        (folder / name).write_text('#include "cuda.h"')
    places = (folder, Path(__file__).parent / "host", Path(cuda_reference.__file__).parent)
    options = ["-std=c++17", "-D__CUDACC__", *(f"-I{place}" for place in places), "-o", folder / "main"]
    subprocess.run([os.environ.get("CXX") or "g++", *options, places[1] / "main.cpp"], check=True)
    run = subprocess.run([folder / "main"], check=True, capture_output=True, text=True)
    return [json.loads(line) for line in run.stdout.splitlines()]


def test_a_launch_asks_for_its_shared_memory_and_for_overlap_if_it_waits(noted):
    def launched(shared, overlaps=0):
        return ["launch", [1, 2, 3], [4, 5, 6], shared, 77, overlaps, overlaps, 0.5, 8]

    assert [each for each in noted if each[0] in ("shared", "launch")] == [
        launched(0, overlaps=1),
        launched(47 * 1024),
        ["shared", 47 * 1024 + 1],
        launched(47 * 1024 + 1),
        ["shared", 232448],
        launched(232448),
        ["shared", 232449],
    ]
    assert ["error", "cudaErrorInvalidValue: invalid argument"] in noted


def test_a_tensor_map_is_encoded_innermost_first(noted):
    def encoded(kind, size, pitches, promotion, box):
        return ["map", kind, 3, 4096, [5, 3, 2], pitches, [box, 64, 1], [1, 1, 1], NO_INTERLEAVE, SWIZZLE_128, promotion, ZEROS]

    assert [each for each in noted if each[0] == "map"][:4] == [
        encoded(0, 1, [320, 960], L2_128, 128),
        encoded(1, 2, [640, 1920], L2_256, 64),
        encoded(2, 4, [1280, 3840], L2_256, 32),
        encoded(3, 4, [144, 3840], L2_128, 32),
    ]
    assert len([each for each in noted if each[0] == "map"]) == 5, "what is empty is not encoded"
    assert noted[-1] == ["error", "cuTensorMapEncodeTiled refuses the tensor: error 1"]


def test_a_map_of_pixels_is_encoded_innermost_first(noted):
    """And the bit that drivers up to 13.1 set is cleared, for images of less than 128 KB."""

    def encoded(images, kind=1, size=2):
        sizes, pitches = [24, 7, 5, images], [24 * size, 168 * size, 840 * size]
        box = [[-2, -1], [2, 1], 32, 64, [1, 4, 3, 1]]
        return ["pixels", kind, 4, 4096, sizes, pitches, *box, NO_INTERLEAVE, SWIZZLE_128, L2_128, ZEROS]

    pixels = [each for each in noted if each[0] in ("pixels", "bit")]
    of_16_bits = [encoded(2), ["bit", 0], encoded(100), ["bit", 1], ["bit", 0]]
    assert pixels == [*of_16_bits, encoded(2, 3, 4)], "no images are not encoded; the last become tf32"
