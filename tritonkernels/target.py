"""Target: a GPU's streaming multiprocessor, the sizes and rates of its memory system, and its peak per precision.

`Target.named("h200")` needs no GPU; `Target.live(device)` reads the present one and takes bandwidths and peaks, which the
driver does not report, from the table, or for a GPU that is not there from its user's measurements. The table's rates are the
vendors' data-sheet figures for dense products at boost clock, with sums in fp32 where a GPU has other rates for fp16 ones.
"""

import functools
import re
from dataclasses import field, replace
from difflib import get_close_matches

import torch

from . import calibration
from .calibration import Calibration
from .errors import BackendError
from .problem import hashed_once

SAME_RATE = {"uint8": "int8", "uint4": "int4", "b1_and": "b1", "b1_xor": "b1"}
PLANES = {
    "tf32x3": ("tf32", 3),
    "fp16x3": ("fp16", 3),
    "fp32": ("fp16", 3),
    "bf16x6": ("bf16", 6),
    "bf16x9": ("bf16", 9),
}  # products for one


@hashed_once
class Target:
    name: str
    arch: int = 0  # NVIDIA's compute capability times ten, 90 for sm_90; else 0
    gfx: str = ""  # AMD's architecture: "gfx942"
    sms: int = 0
    shared_per_sm: int = 0  # bytes
    shared_per_block: int = 0  # bytes, the opt-in limit of one block
    threads_per_sm: int = 0
    blocks_per_sm: int = 0
    l2_bytes: int = 0
    dram_bandwidth: float = 0.0  # bytes per second; 0 where unknown
    l2_bandwidth: float = 0.0  # bytes per second, as measured; 0 where unknown
    peaks: dict = field(default_factory=dict, hash=False)  # precision -> FLOP/s; without one where unknown
    registers_per_sm: int = 65536
    warp_size: int = 32
    latency: float = 700e-9  # seconds of a trip to DRAM and back
    launch: float = 2e-6  # seconds of an empty kernel in a graph
    measured: Calibration | None = field(default=None, hash=False)  # on such a GPU, by its user

    @property
    def origin(self):
        """Where the rates come from, in words."""
        if self.measured:
            return f"measured on {self.measured.date}"
        if self.peaks:
            return "data sheet"
        return "in proportion to the H200's; tritonkernels calibrate (in a checkout: python -m perf calibrate) measures them"

    @property
    def isa(self):
        """The compilers' name of the architecture: "sm_90", "gfx942"; "" without a GPU."""
        return f"sm_{self.arch}" if self.arch else self.gfx

    @property
    def vendor(self):
        """ "nvidia", "amd", or None without a GPU."""
        return "nvidia" if self.arch else "amd" if self.gfx else None

    @property
    def is_gpu(self):
        return bool(self.arch or self.gfx)

    def lacks(self, feature, since):
        """A sentence if the GPU lacks `feature`, which NVIDIA has from sm_`since` on; None if it has it, and without a GPU."""
        return f"{feature} needs sm_{since}, {self.name} is {self.isa}" if self.is_gpu and self.arch < since else None

    def peak(self, precision):
        """FLOP/s in a precision, None where unknown. A split mode's FLOP are those of FP32 products, each of several products
        of planes."""
        same, products = PLANES.get(precision, (SAME_RATE.get(precision, precision), 1))
        return self.peaks[same] / products if same in self.peaks else None

    @staticmethod
    @functools.cache
    def named(name):
        """A known GPU ("h200", "RTX 4090"), an architecture ("sm_90", "8.6" or "gfx942", its best-known GPU), or "interpreter"
        or "simt". Case, blanks, punctuation, the maker's name and the memory ("80GB HBM3") do not matter."""
        words = [word for word in _words(name) if word not in BRANDS and not MEMORY.fullmatch(word)]
        for target in KNOWN if words else ():
            if "".join(words) in map(_squeezed, (target.name, target.isa, target.isa.removeprefix("sm_"))):
                return target
        known = dict.fromkeys(word for t in KNOWN for word in (t.name, t.isa) if word)
        near = [t.name for t in namesakes(name)] or get_close_matches("_".join(words), known)
        remedy = f"did you mean {near[0]!r}?" if near else "pass one of these"
        raise BackendError(f"unknown target {name!r}; known: {', '.join(known)}; {remedy}")

    @staticmethod
    def live(device):
        """The GPU behind a torch.device, as the driver describes it.

        One with another number of SMs than its namesake in the table (a "Ti", a laptop's, a MIG slice) gets that one's rates
        in proportion, and one without a namesake the rates that its user has measured.
        """
        properties = torch.cuda.get_device_properties(device)
        gfx = getattr(properties, "gcnArchName", "").partition(":")[0]
        gfx = gfx if gfx.startswith("gfx") else ""  # with CUDA torch it is the GPU's name
        arch = 0 if gfx else 10 * properties.major + properties.minor
        same = namesakes(properties.name)
        same_arch = [t for t in (*same, *KNOWN) if (t.arch, t.gfx) == (arch, gfx)]
        known = (*same_arch, MI300X if gfx else Target(name=""))[0]
        share = properties.multi_processor_count / known.sms if known in same else 0.0
        measured = calibration.of(properties.name, properties.multi_processor_count)
        figures, peaks = (measured.figures, measured.peaks) if measured else ({}, {})
        rates = {
            "dram_bandwidth": known.dram_bandwidth * share or figures.get("dram_bandwidth", 0.0),
            "l2_bandwidth": known.l2_bandwidth * share or figures.get("l2_bandwidth", 0.0),
            "peaks": {precision: rate * share for precision, rate in known.peaks.items()} if share else peaks,
            "measured": measured,
        }
        facts = {
            name: getattr(properties, attribute) for name, attribute in PROPERTIES.items() if hasattr(properties, attribute)
        }
        return replace(known, name=properties.name, arch=arch, gfx=gfx, **rates, **facts)


BRANDS = ("nvidia", "geforce", "tesla", "quadro", "amd", "instinct", "generation")  # words that tell no two GPUs apart
MEMORY = re.compile(r"\d+gb|hbm\d+e?")  # the driver's name has it ("H100 80GB HBM3"), the table of targets does not
PROPERTIES = {  # field -> torch's name of it; torch lacks some for AMD GPUs
    "sms": "multi_processor_count",
    "shared_per_sm": "shared_memory_per_multiprocessor",
    "shared_per_block": "shared_memory_per_block_optin",
    "threads_per_sm": "max_threads_per_multi_processor",
    "l2_bytes": "L2_cache_size",
    "registers_per_sm": "regs_per_multiprocessor",
    "warp_size": "warp_size",
}


def _words(name):
    return re.findall("[a-z0-9]+", name.lower())


def _squeezed(name):
    return "".join(_words(name))


@functools.cache
def namesakes(name):
    """The known GPUs whose whole name is part of a device's, the longest first: an A100 is no A10, nor an L40S an L4."""
    text = f" {' '.join(_words(name))} "
    found = [t for t in KNOWN if t.is_gpu and f" {' '.join(_words(t.name))} " in text]
    return sorted(found, key=lambda t: -len(t.name))


def _tera(rates):
    return {precision: rate * 1e12 for precision, rate in rates.items()}


def _gpu(name, arch, sms, shared_kb, threads, blocks, l2_mb, tb_per_s, l2_tb_per_s=0.0, **tflops):
    """An NVIDIA GPU. shared_kb: per SM; one block may have all but 1 KB of it (all of it before sm_80)."""
    return Target(
        name=name,
        arch=arch,
        sms=sms,
        shared_per_sm=shared_kb * 1024,
        shared_per_block=(shared_kb - (arch >= 80)) * 1024,
        threads_per_sm=threads,
        blocks_per_sm=blocks,
        l2_bytes=int(l2_mb * 2**20),
        dram_bandwidth=tb_per_s * 1e12,
        l2_bandwidth=l2_tb_per_s * 1e12,
        peaks=_tera(tflops),
    )


def _rtx(name, arch, sms, l2_mb, tb_per_s, ieee, fp16, int8):
    """A GPU with a graphics chip, since Ampere. Three peaks in TFLOP/s give the others.

    The tensor cores of GeForces have half their rate where sums are fp32, those of an A10G and an L40 everywhere.
    """
    peaks = {"ieee": ieee, "tf32": fp16 / 2, "fp16": fp16, "bf16": fp16, "int8": int8, "fp64": ieee / 64}
    peaks |= {"fp8": 2 * fp16} if arch >= 89 else {}
    peaks |= {"int4": 2 * int8} if arch < 120 else {}
    return _gpu(name, arch, sms, 100, 1536, 16 if arch < 89 else 24, l2_mb, tb_per_s, **peaks)


# Hopper multiplies 4-bit elements as bytes
_AMPERE = {"ieee": 19.5, "tf32": 156, "fp16": 312, "bf16": 312, "int8": 624, "int4": 1248, "b1": 4992, "fp64": 19.5}
_HOPPER = {"ieee": 67, "tf32": 494, "fp16": 989, "bf16": 989, "fp8": 1979, "int8": 1979, "int4": 1979, "fp64": 67}
_HOPPER_PCIE = {"ieee": 51, "tf32": 378, "fp16": 756, "bf16": 756, "fp8": 1513, "int8": 1513, "int4": 1513, "fp64": 51}
_BLACKWELL = {"ieee": 75, "tf32": 1100, "fp16": 2250, "bf16": 2250, "fp8": 4500, "int8": 4500, "fp64": 37}
_GRACE_BLACKWELL = {"ieee": 80, "tf32": 1250, "fp16": 2500, "bf16": 2500, "fp8": 5000, "int8": 5000, "fp64": 40}
_CDNA_3 = {"ieee": 163.4, "tf32": 653.7, "fp16": 1307.4, "bf16": 1307.4, "fp8": 2614.9, "int8": 2614.9, "fp64": 163.4}
_MI300A = {"ieee": 122.6, "tf32": 490.3, "fp16": 980.6, "bf16": 980.6, "fp8": 1961.2, "int8": 1961.2, "fp64": 122.6}
MI300X = Target(  # compute units count as SMs, wavefronts as warps; each die has 4 MB of L2, and all share 256 MB behind it
    name="mi300x",
    gfx="gfx942",
    sms=304,
    shared_per_sm=64 * 1024,
    shared_per_block=64 * 1024,
    threads_per_sm=2048,
    blocks_per_sm=32,
    l2_bytes=4 * 2**20,
    dram_bandwidth=5.3e12,
    peaks=_tera(_CDNA_3),
    registers_per_sm=131072,
    warp_size=64,
)
KNOWN = (  # of each architecture first the one that stands for it
    _gpu("titan_v", 70, 80, 96, 2048, 32, 4.5, 0.653, 1.9, ieee=14.9, fp16=119, fp64=7.45),
    _gpu("v100", 70, 80, 96, 2048, 32, 6, 0.900, ieee=15.7, fp16=125, fp64=7.8),
    _gpu("v100s", 70, 80, 96, 2048, 32, 6, 1.134, ieee=16.4, fp16=130, fp64=8.2),
    _gpu("rtx_2080", 75, 46, 64, 1024, 16, 4, 0.448, ieee=10.1, fp16=40.3, int8=161, int4=322, fp64=0.314),
    _gpu("t4", 75, 40, 64, 1024, 16, 4, 0.320, ieee=8.1, fp16=65, int8=130, int4=260, fp64=0.254),
    _gpu("a100", 80, 108, 164, 2048, 32, 40, 2.039, **_AMPERE),
    _rtx("rtx_3090", 86, 82, 6, 0.936, ieee=35.6, fp16=71, int8=284),
    _rtx("rtx_3080", 86, 68, 5, 0.760, ieee=29.8, fp16=59.5, int8=238),
    _rtx("rtx_a6000", 86, 84, 6, 0.768, ieee=38.7, fp16=154.8, int8=309.7),
    _rtx("a40", 86, 84, 6, 0.696, ieee=37.4, fp16=149.7, int8=299.3),
    _rtx("a10", 86, 72, 6, 0.600, ieee=31.2, fp16=125, int8=250),
    _rtx("a10g", 86, 80, 6, 0.600, ieee=35, fp16=70, int8=140),
    _rtx("rtx_4090", 89, 128, 72, 1.008, ieee=82.6, fp16=165, int8=661),
    _rtx("rtx_4080", 89, 76, 64, 0.717, ieee=48.7, fp16=97.5, int8=390),
    _rtx("rtx_4080_super", 89, 80, 64, 0.736, ieee=52.2, fp16=104, int8=418),
    _rtx("rtx_6000_ada", 89, 142, 96, 0.960, ieee=91.1, fp16=364, int8=729),
    _rtx("l40s", 89, 142, 96, 0.864, ieee=91.6, fp16=362, int8=733),
    _rtx("l40", 89, 142, 96, 0.864, ieee=90.5, fp16=181, int8=362),
    _rtx("l4", 89, 58, 48, 0.300, ieee=30.3, fp16=121, int8=242),
    _gpu("h200", 90, 132, 228, 2048, 32, 60, 4.8, 9.7, **_HOPPER),
    _gpu("h100", 90, 132, 228, 2048, 32, 50, 3.35, **_HOPPER),
    _gpu("h100_pcie", 90, 114, 228, 2048, 32, 50, 2.0, **_HOPPER_PCIE),
    _gpu("gh200", 90, 132, 228, 2048, 32, 50, 4.0, **_HOPPER),
    _gpu("b200", 100, 148, 228, 2048, 32, 126, 8.0, **_BLACKWELL),
    _gpu("gb200", 100, 152, 228, 2048, 32, 126, 8.0, **_GRACE_BLACKWELL),
    _rtx("rtx_5090", 120, 170, 96, 1.792, ieee=105, fp16=210, int8=838),
    MI300X,
    replace(MI300X, name="mi325x", dram_bandwidth=6.0e12),
    replace(MI300X, name="mi300a", sms=228, peaks=_tera(_MI300A)),
    Target("interpreter"),
    Target("simt"),
)
