"""Target: a GPU's streaming multiprocessor, the sizes and rates of its memory system, and its peak per precision.

`Target.named("h200")` needs no GPU; `Target.live(device)` reads the present one and takes bandwidths and peaks, which the
driver does not report, from the table. Rates are the vendors' data-sheet figures for dense products at boost clock, except
where noted.
"""

from dataclasses import dataclass, field, replace

import torch

from .errors import BackendError

SAME_RATE = {"uint8": "int8", "uint4": "int4", "b1_and": "b1", "b1_xor": "b1"}
PLANES = {"tf32x3": ("tf32", 3), "fp16x3": ("fp16", 3), "bf16x6": ("bf16", 6), "bf16x9": ("bf16", 9)}  # products for one


@dataclass(frozen=True)
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
        return self.vendor is not None

    def lacks(self, feature, since):
        """A sentence if the GPU lacks `feature`, which NVIDIA has from sm_`since` on; None if it has it, and without a GPU."""
        return f"{feature} needs sm_{since}, {self.name} is {self.isa}" if self.is_gpu and self.arch < since else None

    def peak(self, precision):
        """FLOP/s in a precision, None where unknown. A split mode's FLOP are those of FP32 products, each of several products
        of planes."""
        same, products = PLANES.get(precision, (SAME_RATE.get(precision, precision), 1))
        return self.peaks[same] / products if same in self.peaks else None

    @staticmethod
    def named(name):
        """A known GPU ("h200"), an architecture ("sm_90" or "gfx942", its best-known GPU), or "interpreter" or "simt"."""
        for target in KNOWN:
            if name and name in (target.name, target.isa):
                return target
        known = dict.fromkeys(word for t in KNOWN for word in (t.name, t.isa) if word)
        raise BackendError(f"unknown target {name!r}; known: {', '.join(known)}")

    @staticmethod
    def live(device):
        """The GPU behind a torch.device, as the driver describes it."""
        properties = torch.cuda.get_device_properties(device)
        gfx = getattr(properties, "gcnArchName", "").partition(":")[0]
        gfx = gfx if gfx.startswith("gfx") else ""  # with CUDA torch it is the GPU's name
        arch = 0 if gfx else 10 * properties.major + properties.minor
        alike = [t for t in KNOWN if t.is_gpu and t.name.replace("_", " ") in properties.name.lower()]
        unknown = {"dram_bandwidth": 0.0, "l2_bandwidth": 0.0, "peaks": {}}
        same_arch = [replace(t, **unknown) for t in KNOWN if (t.arch, t.gfx) == (arch, gfx)]
        other = replace(MI300X, **unknown) if gfx else Target(name="")
        facts = {
            name: getattr(properties, attribute) for name, attribute in PROPERTIES.items() if hasattr(properties, attribute)
        }
        return replace((*alike, *same_arch, other)[0], name=properties.name, arch=arch, gfx=gfx, **facts)


PROPERTIES = {  # field -> torch's name of it; torch lacks some for AMD GPUs
    "sms": "multi_processor_count",
    "shared_per_sm": "shared_memory_per_multiprocessor",
    "shared_per_block": "shared_memory_per_block_optin",
    "threads_per_sm": "max_threads_per_multi_processor",
    "l2_bytes": "L2_cache_size",
    "registers_per_sm": "regs_per_multiprocessor",
    "warp_size": "warp_size",
}


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


# Hopper multiplies 4-bit elements as bytes
_AMPERE = {"ieee": 19.5, "tf32": 156, "fp16": 312, "bf16": 312, "int8": 624, "int4": 1248, "b1": 4992, "fp64": 19.5}
_GA102 = {"ieee": 35.6, "tf32": 35.6, "fp16": 71, "bf16": 71, "int8": 284, "int4": 568, "fp64": 0.556}
_ADA = {"ieee": 82.6, "tf32": 82.6, "fp16": 165, "bf16": 165, "fp8": 330, "int8": 661, "int4": 1321, "fp64": 1.29}
_HOPPER = {"ieee": 67, "tf32": 494, "fp16": 989, "bf16": 989, "fp8": 1979, "int8": 1979, "int4": 1979, "fp64": 67}
_BLACKWELL = {"ieee": 75, "tf32": 1100, "fp16": 2250, "bf16": 2250, "fp8": 4500, "int8": 4500, "fp64": 37}
_RTX_BLACKWELL = {"ieee": 105, "tf32": 105, "fp16": 210, "bf16": 210, "fp8": 419, "int8": 838, "fp64": 1.64}
_CDNA_3 = {"ieee": 163.4, "tf32": 653.7, "fp16": 1307.4, "bf16": 1307.4, "fp8": 2614.9, "int8": 2614.9, "fp64": 163.4}
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
KNOWN = (
    _gpu("titan_v", 70, 80, 96, 2048, 32, 4.5, 0.653, 1.9, ieee=14.9, fp16=119, fp64=7.45),
    _gpu("v100", 70, 80, 96, 2048, 32, 6, 0.900, ieee=15.7, fp16=125, fp64=7.8),
    _gpu("rtx_2080", 75, 46, 64, 1024, 16, 4, 0.448, ieee=10.1, fp16=80.5, int8=161, int4=322, fp64=0.314),
    _gpu("a100", 80, 108, 164, 2048, 32, 40, 2.039, **_AMPERE),
    _gpu("rtx_3090", 86, 82, 100, 1536, 16, 6, 0.936, **_GA102),
    _gpu("rtx_4090", 89, 128, 100, 1536, 24, 72, 1.008, **_ADA),
    _gpu("h200", 90, 132, 228, 2048, 32, 50, 4.8, 9.7, **_HOPPER),
    _gpu("h100", 90, 132, 228, 2048, 32, 50, 3.35, **_HOPPER),
    _gpu("b200", 100, 148, 228, 2048, 32, 126, 8.0, **_BLACKWELL),
    _gpu("rtx_5090", 120, 170, 100, 1536, 24, 96, 1.792, **_RTX_BLACKWELL),
    MI300X,
    Target("interpreter"),
    Target("simt"),
)
