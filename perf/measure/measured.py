"""Records of a GPU, case by case: the fastest design of each package, and the vendor library's time in the same run."""

import functools
import math
from dataclasses import dataclass

from tritonkernels.errors import BackendError
from tritonkernels.target import Target

from .. import HERE
from . import packed, records, sweep_records
from .baselines import yardstick
from .suites import SUITES

RESULTS = HERE / "results"
NOT_TIMES = ("campaign.json", "code.json", "counters.json", "errors.json", "gate.json", "models.json", "torch.json")
PACKAGES = {"triton": "Triton", "cuda": "CUDA"}  # implementation -> its title

# suite -> (heading, what is in it)
HEADINGS = {
    "seeds": (
        "The cases of make compare",
        "A few of each operation: the sizes at which the projects that this library grew from were measured, and smaller ones.",
    ),
    "ladder": (
        "FP32 matrix products",
        "`gemm` in IEEE fp32 on CUDA cores: squares, a size that no vector divides (4097), and two shapes of few tiles.",
    ),
    "hopper": ("Hopper's ladder", "`matmul` of bf16 squares, x W^T as in a linear layer, by every lesson and contender."),
    "precision": (
        "FP32 on tensor cores",
        "`matmul` of fp32 squares in each precision. The split modes have fp32 accuracy and are compared with cuBLAS SGEMM,"
        " `tf32` with cuBLAS in TF32.",
    ),
    "gemv": (
        "Matrix times vector",
        "`gemv`. *Rotating*: consecutive calls read other memory, past L2; *resident*: they find their operands in L2."
        " *Of a copy*: the bandwidth, relative to a kernel that copies as many bytes in the same run.",
    ),
    "image": (
        "Filters on images",
        "`conv2d` of few channels on whole images, Gaussian blurs and Sobel filters, in NCHW and in channels_last.",
    ),
    "grouped": (
        "Grouped convolutions",
        "`conv2d` in fp32, 32 images: the depthwise layers of MobileNetV2 and EfficientNet-B0, and ResNeXt-50's 32 groups.",
    ),
    "resnet50": (
        "ResNet-50's layers",
        "`conv2d` of its 23 distinct layers: fp16 in channels_last with 32 images and with one, and one image in fp32 in NCHW.",
    ),
    "square": ("Square products", "`matmul` in fp16 and bf16."),
    "skinny": ("Skinny products", "`matmul` in fp16 with few rows, few columns, or long K. M x N x K."),
    "llm": ("An LLM's projections", "`matmul` in bf16: the weights of Llama-3-8B times 1 to 4096 tokens. M x N x K."),
    "unaligned": (
        "Unaligned sizes",
        "`matmul` in fp16 where rows do not begin at multiples of 16 bytes, which TMA cannot read in place."
        " Our times include packing.",
    ),
}


@dataclass
class Case:
    """One case of a suite; `designs` are ours, `vendor` is torch's fastest at the same precision."""

    name: str
    op: str
    precision: str
    vendor: records.Record
    designs: list[records.Record]

    @property
    def arithmetic(self):
        """The precision in the usual names: fp32, fp16, tf32x3, ..."""
        return arithmetic(self.vendor.problem["dtype"], self.precision)

    def of(self, package):
        return [r for r in self.designs if r.implementation == package]

    def best(self, package):
        """The package's fastest design; None where none was timed."""
        return min(self.of(package), key=lambda r: r.median_ms, default=None)

    def verdict(self, record):
        """Ahead, even or behind: even is where the spreads (20 to 80 %) overlap."""
        if record.p80_ms < self.vendor.p20_ms:
            return "ahead"
        return "behind" if record.p20_ms > self.vendor.p80_ms else "even"


def arithmetic(dtype, precision):
    return dtype.replace("bfloat", "bf").replace("float", "fp") if precision == "ieee" else precision


def gpus(root=None):
    """Folders of records (the repository's), one per GPU: of the newest architecture first, H200 before H100."""
    return sorted((path for path in (root or RESULTS).iterdir() if path.is_dir()), key=_age, reverse=True)


def _age(folder):
    try:
        return Target.named(folder.name).arch, folder.name
    except BackendError:
        return 0, folder.name


@functools.cache
def suites(folder):
    """{suite: its cases, in the order of the suite}. Of a repeated case the newest run counts."""
    by_suite = {}
    for rows in runs(folder):
        for case in _cases(rows):
            by_suite.setdefault(case.vendor.suite, {})[case.op, case.name] = case
    return {suite: _in_order(by_suite[suite], SUITES[suite]) for suite in SUITES if suite in by_suite}


@functools.cache
def drawn(folder):
    """The records of `perf compare --suite classes`; none without its file."""
    path = packed.find(folder / "classes.json")
    return records.read_json(path) if path.exists() else []


@functools.cache
def swept(folder, op):
    """The Rows of the sweeps of an operation."""
    return sweep_records.load(sweep_records.files(folder), op)


def files(folder):
    """The folder's files of `perf compare`."""
    found = [*folder.glob("*.json"), *folder.glob(f"*.json{packed.SUFFIX}")]
    return sorted(path for path in found if path.name.removesuffix(packed.SUFFIX) not in NOT_TIMES)


def runs(folder):
    """The records of each file, oldest first."""
    found = map(records.read_json, files(folder))
    return sorted(filter(None, found), key=lambda rows: rows[0].environment["date"])


def _in_order(cases, suite):
    order = {(case.op, case.name): i for i, case in enumerate(suite)}
    return [cases[key] for key in sorted(cases, key=lambda key: order.get(key, math.inf))]


def _cases(rows):
    by_case = {}
    for r in rows:
        if r.ok and r.median_ms is not None:
            by_case.setdefault((r.op, r.case), []).append(r)
    for (op, name), group in by_case.items():
        designs = [r for r in group if r.implementation in PACKAGES]
        fair = [r for r in group if designs and r.implementation == "torch" and r.precision == yardstick(designs[0].precision)]
        if fair:
            yield Case(name, op, designs[0].precision, min(fair, key=lambda r: r.median_ms), designs)


def vendor_of(op):
    """The library whose kernels torch calls for the operation."""
    return "cuDNN" if op.startswith("conv2d") else "cuBLAS"


def origin(cases):
    """The origin of the records in one line: GPU, days and versions. Their commits are in perf/results/README.md."""
    return origin_in([case.vendor.environment for case in cases])


def origin_in(environments):
    days = sorted({e["date"][:10] for e in environments})
    found = {name: " and ".join(sorted({str(e[name]) for e in environments})) for name in ("device", "torch", "triton", "cuda")}
    versions = f"torch {found['torch']}, Triton {found['triton']}, CUDA {found['cuda']}"
    return f"{found['device']}, {' to '.join(dict.fromkeys((days[0], days[-1])))}, {versions}"


def parts(suite, cases):
    """{title: cases}: the suite by precision, where it has several with at least five cases each."""
    kinds, heading = {}, heading_of(suite)
    for case in cases:
        kinds.setdefault(case.arithmetic, []).append(case)
    if len(kinds) == 1 or min(map(len, kinds.values())) < 5:
        return {heading: cases}
    return {f"{heading}: {kind}": own for kind, own in kinds.items()}


def heading_of(suite):
    return HEADINGS.get(suite, (suite,))[0]
