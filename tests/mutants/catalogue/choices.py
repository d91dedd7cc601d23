"""Broken choices: the table of targets, the tuner, tuned tables."""

from tests.mutants.mutant import of

TARGETS = "test_known_targets"
MUTANTS = [
    *of(
        "tritonkernels/target.py",
        TARGETS,
        ("tf32 at the rate of fp16", '"tf32": 494', '"tf32": 989'),
        ("int8 at half its rate", '"int8": 1979, "int4": 1979, "fp64": 67', '"int8": 989, "int4": 1979, "fp64": 67'),
        ("GeForces' tf32 at the rate of fp16", '"tf32": fp16 / 2', '"tf32": fp16'),
        ("fp8 at the rate of fp16", '{"fp8": 2 * fp16}', '{"fp8": fp16}'),
        ("a GPU's bandwidth", "50, 3.35, **_HOPPER", "50, 3.55, **_HOPPER"),
        ("a GPU's SMs", '"rtx_3080", 86, 68', '"rtx_3080", 86, 70'),
        ("a GPU's peak", "ieee=37.4, fp16=149.7, int8=299.3", "ieee=37.4, fp16=74.8, int8=149.7"),
        ("a GPU's L2", "164, 2048, 32, 40, 2.039", "164, 2048, 32, 48, 2.039"),
        ("a block may have all of an SM's shared memory", "(shared_kb - (arch >= 80)) * 1024", "shared_kb * 1024"),
        ("a wavefront of 32", "warp_size=64", "warp_size=32"),
        ("two products for three", '"tf32x3": ("tf32", 3)', '"tf32x3": ("tf32", 2)'),
    ),
    *of(
        "tritonkernels/choice/bench.py",
        "test_tuner and ahead",
        (
            "ahead by noise or by a hundredth, whichever is less",
            "> max(noise, GAIN * other.ms)",
            "> min(noise, GAIN * other.ms)",
        ),
        ("ahead by noise alone", "> max(noise, GAIN * other.ms)", "> noise"),
        ("ahead by a hundredth alone", "> max(noise, GAIN * other.ms)", "> GAIN * other.ms"),
    ),
    *of(
        "tritonkernels/choice/bench.py",
        "test_tuner and certain",
        ("a final ends when one median is certain", "and all(c.standard_error", "and any(c.standard_error"),
    ),
    *of(
        "tritonkernels/library.py",
        "test_table and refuses",
        (
            "a tuned entry used for what its design refuses",
            "not design.is_lesson and _refusal(design, problem, target) is None:\n                legal",
            "not design.is_lesson:\n                legal",
        ),
    ),
]
