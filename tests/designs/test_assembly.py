"""Each inline assembly of cuda_reference/common, as PTX: the emulation has code of its own in its place, and sees no slip.

A probe is a kernel that calls one wrapper. What stands between `// begin inline asm` and its end in the kernel's PTX is
compared with the table, each register named as the argument that it holds, so that a lost or swapped operand shows, too.
"""

import collections
import itertools
import re
from pathlib import Path
from typing import NamedTuple

import pytest

import cuda_reference
from tests import nvcc

CUDA = Path(cuda_reference.__file__).parent


class Probe(NamedTuple):
    wrapper: str
    parameters: str  # of the kernel
    call: str
    assembly: str  # with names of parameters; number i of an array `sum` is sum[i]
    architecture: str = "90a"


def numbers(name, count):
    return "{" + ", ".join(f"{name}[{i}]" for i in range(count)) + "}"


def mma(number, kind, registers="unsigned", count=4, architecture="90a", a=4):
    """D += A B of mma_sync<T>(...): T and its sums, and the instruction's shape and types."""
    t, sums = number
    sum, shape = numbers("sum", count), numbers("a", a)
    return Probe(
        "mma_sync",
        f"Numbers<{sums}, {count}>* sum, Numbers<{registers}, {a}> a, {registers} b0, {registers} b1",
        f"auto own = *sum; mma_sync<{t}>(own.x, a.x, b0, b1); *sum = own",
        f"mma.sync.aligned.{kind} {sum}, {shape}, {{b0, b1}}, {sum};",
        architecture,
    )


def wgmma(t, sums, kind, tiles=8, flags="", k_major=(True, True), adds=True, fragments=False):
    """D += A B of wgmma<T, ...>(...). A thread has `per` registers of a tile."""
    each, per = {"float": ("float", 4), "int": ("int", 4), "half": ("__half2", 2)}[sums]
    names = numbers("sum", tiles * per)
    along = "".join(f", {str(value).lower()}" for value in k_major)
    given, a = ("Numbers<unsigned, 4> a", numbers("a", 4)) if fragments else ("uint64_t a", "a")
    arguments = f"<{t}>" if fragments else f"<{t}{along}, {str(adds).lower()}>"
    has_flag = "Fp8" in t or t in ("__half", "__nv_bfloat16") or fragments
    condition = f"setp.ne.u32 adds, {int(adds)}, 0;" if has_flag else "setp.eq.u32 adds, 0, 0;"
    ones = "" if sums == "int" else ", 1, 1"
    instruction = f"wgmma.mma_async.sync.aligned.m64n{8 * tiles}{kind}"
    return Probe(
        "wgmma",
        f"Tiles<{each}, {per}, {tiles}>* sum, {given}, uint64_t b",
        f"auto own = *sum; wgmma{arguments}(own.tile, {'a.x' if fragments else 'a'}, b); *sum = own",
        f"{{.reg .pred adds; {condition} {instruction} {names}, {a}, b, adds{ones}{flags};}}",
    )


def ldmatrix(count, transposed):
    to, trans = numbers("to", count), ".trans" if transposed else ""
    return Probe(
        "ldmatrix",
        f"Numbers<unsigned, {count}>* to, const void* row",
        f"Numbers<unsigned, {count}> own; ldmatrix<{str(transposed).lower()}>(own.x, row); *to = own",
        f"ldmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 {to}, [row];",
    )


def stmatrix(transposed):
    trans = ".trans" if transposed else ""
    return Probe(
        "stmatrix",
        "void* row, Numbers<unsigned, 4> from",
        f"stmatrix<{str(transposed).lower()}>(row, from.x)",
        f"stmatrix.sync.aligned.m8n8.x4{trans}.shared.b16 [row], {numbers('from', 4)};",
    )


BOX = "const __grid_constant__ CUtensorMap map, int column, int row, int batch"
LOAD = "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes"
FP8 = tuple(itertools.product(("e4m3", "e5m2"), repeat=2))
PROBES = (
    *(
        Probe("cp_async", "void* to, char* from, int valid", call, f"cp.async.{level}.shared.global [to], [from], {rest};")
        for call, level, rest in (
            ("cp_async<16>(to, from, valid)", "cg", "16, valid"),
            ("cp_async<8>(to, from, valid)", "ca", "8, valid"),
            ("cp_async<4>(to, from, valid)", "ca", "4, valid"),
            ("cp_async<16>(to, from)", "cg", "16"),
            ("cp_async<8>(to, from)", "ca", "8"),
            ("cp_async<4>(to, from)", "ca", "4"),
        )
    ),
    Probe("cp_async_commit", "", "cp_async_commit()", "cp.async.commit_group;"),
    Probe("cp_async_wait", "", "cp_async_wait<3>()", "cp.async.wait_group 3;"),
    Probe("mbarrier_init", "uint64_t* to, int count", "mbarrier_init(to, count)", "mbarrier.init.shared::cta.b64 [to], count;"),
    Probe(
        "mbarrier_init_fence",
        "",
        "mbarrier_init_fence()",
        "fence.mbarrier_init.release.cluster; fence.proxy.async.shared::cta;",
    ),
    Probe("mbarrier_arrive", "uint64_t* to", "mbarrier_arrive(to)", "mbarrier.arrive.shared::cta.b64 _, [to];"),
    Probe(
        "mbarrier_arrive_at",
        "uint64_t* to, int block",
        "mbarrier_arrive_at(to, block)",
        "{ .reg .b32 there; mapa.shared::cluster.u32 there, to, block; mbarrier.arrive.shared::cluster.b64 _, [there]; }",
    ),
    Probe(
        "mbarrier_arrive_expect",
        "uint64_t* to, int bytes",
        "mbarrier_arrive_expect(to, bytes)",
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [to], bytes;",
    ),
    Probe(
        "mbarrier_wait",
        "uint64_t* at, unsigned parity",
        "mbarrier_wait(at, parity)",
        "{ .reg .pred ended; again: mbarrier.try_wait.parity.shared::cta.b64 ended, [at], parity; @!ended bra again; }",
    ),
    Probe("cluster_barrier", "", "cluster_barrier()", "barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.aligned;"),
    Probe(
        "cluster_exchange",
        "",
        "cluster_exchange()",
        "barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;",
    ),
    Probe(
        "in_block",
        "const int* here, int block, const int** out",
        "*out = in_block(here, block)",
        "mapa.u64 out[0], here, block;",
    ),
    Probe("tma_load", f"void* to, uint64_t* barrier, {BOX}", "tma_load(to, map, barrier, column, row, batch)",
          f"{LOAD} [to], [map, {{column, row, batch}}], [barrier];"),
    Probe("tma_load_multicast", f"void* to, uint64_t* barrier, {BOX}, unsigned short blocks",
          "tma_load_multicast(to, map, barrier, column, row, batch, blocks)",
          f"{LOAD}.multicast::cluster [to], [map, {{column, row, batch}}], [barrier], blocks;"),
    Probe(
        "tma_load_pixels",
        f"void* to, uint64_t* barrier, {BOX}, unsigned short down, unsigned short right",
        "tma_load_pixels(to, map, barrier, column, {batch, row, 7}, {down, right})",
        "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes"
        " [to], [map, {column, 7, row, batch}], [barrier], {right, down};",
    ),
    Probe("elect_lane", "int* out", "*out = elect_lane()",
          "{ .reg .pred elected; elect.sync _|elected, 0xffffffff; selp.b32 register, 1, 0, elected; }"),
    Probe("prefetch_tensor_map", BOX, "prefetch_tensor_map(map)", "prefetch.tensormap [map];"),
    Probe("tma_store", f"{BOX}, const void* from", "tma_store(map, from, column, row, batch)",
          "cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [map, {column, row, batch}], [from];"),
    Probe("tma_store_fence", "", "tma_store_fence()", "fence.proxy.async.shared::cta;"),
    Probe("tma_store_commit", "", "tma_store_commit()", "cp.async.bulk.commit_group;"),
    Probe("tma_store_wait", "", "tma_store_wait<1>()", "cp.async.bulk.wait_group.read 1;"),
    *(ldmatrix(count, transposed) for count in (1, 2, 4) for transposed in (False, True) if (count, transposed) != (1, True)),
    Probe("ldmatrix", "Numbers<unsigned, 1>* to, const void* row",
          "Numbers<unsigned, 1> own; ldmatrix<true>(own.x, row); *to = own",
          "ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {to[0]}, [row];"),
    stmatrix(False),
    stmatrix(True),
    mma(("__half", "float"), "m16n8k16.row.col.f32.f16.f16.f32"),
    mma(("__nv_bfloat16", "float"), "m16n8k16.row.col.f32.bf16.bf16.f32"),
    mma(("float", "float"), "m16n8k8.row.col.f32.tf32.tf32.f32"),
    mma(("signed char", "int"), "m16n8k32.row.col.s32.s8.s8.s32"),
    mma(("unsigned char", "int"), "m16n8k32.row.col.s32.u8.u8.s32"),
    mma(("__half", "__half2"), "m16n8k16.row.col.f16.f16.f16.f16", count=2),
    mma(("double", "double"), "m16n8k8.row.col.f64.f64.f64.f64", registers="double"),
    Probe("mma_sync", "Numbers<double, 4>* sum, Numbers<double, 4> a, double b0, double b1",
          "auto own = *sum; mma_sync<double>(own.x, a.x, b0, b1); *sum = own",
          " ".join(f"mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {two}, {{a[{i}]}}, {{b{i // 2}}}, {two};"
                   for i, two in enumerate(("{sum[0], sum[1]}", "{sum[2], sum[3]}") * 2)), "80"),
    Probe("round_to_tf32", "unsigned* out, unsigned x", "*out = round_to_tf32(x)", "cvt.rn.tf32.f32 out[0], x;"),
    Probe("round_to_tf32", "unsigned* out, unsigned x", "*out = round_to_tf32(x)",
          "cvt.rna.tf32.f32 out[0], add(x, 0f00000000);", "80"),
    Probe("approximate_exp2", "float* out, float x", "*out = approximate_exp2(x)", "ex2.approx.ftz.f32 out[0], x;"),
    Probe("approximate_reciprocal", "float* out, float x", "*out = approximate_reciprocal(x)", "rcp.approx.ftz.f32 out[0], x;"),
    wgmma("__half", "float", "k16.f32.f16.f16", flags=", 0, 0"),
    wgmma("__half", "float", "k16.f32.f16.f16", flags=", 1, 0", k_major=(False, True)),
    wgmma("__half", "float", "k16.f32.f16.f16", flags=", 0, 1", k_major=(True, False)),
    wgmma("__half", "float", "k16.f32.f16.f16", flags=", 0, 0", adds=False),
    wgmma("__nv_bfloat16", "float", "k16.f32.bf16.bf16", flags=", 0, 1", k_major=(True, False)),
    wgmma("float", "float", "k8.f32.tf32.tf32"),
    wgmma("float", "float", "k8.f32.tf32.tf32", fragments=True),
    wgmma("signed char", "int", "k32.s32.s8.s8"),
    wgmma("unsigned char", "int", "k32.s32.u8.u8"),
    *(wgmma(f"Fp8<{a.upper()}, {b.upper()}>", "float", f"k32.f32.{a}.{b}", adds=adds)
      for a, b in FP8 for adds in (True, False)),
    *(wgmma("__nv_bfloat16", "float", "k16.f32.bf16.bf16", tiles, ", 0, 0") for tiles in range(9, 33)),
    *(wgmma("__half", "half", "k16.f16.f16.f16", tiles, ", 0, 0") for tiles in range(8, 33, 2)),
    Probe("wgmma_fence", "", "wgmma_fence()", "wgmma.fence.sync.aligned;"),
    Probe("wgmma_commit", "", "wgmma_commit()", "wgmma.commit_group.sync.aligned;"),
    Probe("wgmma_wait", "", "wgmma_wait<1>()", "wgmma.wait_group.sync.aligned 1;"),
    Probe("warpgroup_barrier", "", "warpgroup_barrier()", "bar.sync add(shr(%tid.x, 7), 1), 128;"),
    Probe("give_up_registers", "", "give_up_registers<40>()", "setmaxnreg.dec.sync.aligned.u32 40;"),
    Probe("take_registers", "", "take_registers<232>()", "setmaxnreg.inc.sync.aligned.u32 232;"),
    Probe("arrive_at", "int* counter, int* out", "*out = arrive_at(counter)",
          "atom.global.gpu.acq_rel.add.s32 out[0], [counter], 1;"),
    Probe("wait_for_earlier_kernels", "", "wait_for_earlier_kernels()",
          "griddepcontrol.wait; griddepcontrol.launch_dependents;"),
    *(Probe("load_or_zero", f"{struct}* out, const {struct}* from, unsigned exists", "load_or_zero(*out, from, exists)",
            "{.reg .pred p; setp.ne.u32 p, exists, 0; " + "".join(f"mov.b32 out[{i}], 0; " for i in range(count)) +
            f"@p ld.global.nc{kind}.u32 {numbers('out', count) if kind else 'out[0]'}, [from];}}")
      for struct, count, kind in (("uint4", 4, ".v4"), ("uint2", 2, ".v2"), ("unsigned", 1, ""))),
    *(Probe(wrapper, "uint4* out, const void* from", f"*out = Loader({first}).load(from)",
            f"createpolicy.fractional.L2::evict_{kind}.b64 register, 1.0; ld.global.nc.L1::evict_first.L2::cache_hint.v4.u32 "
            f"{numbers('out', 4)}, [from], register;")
      for wrapper, first, kind in (("Loader", "true", "first"), ("Loader", "false", "normal"), ("load", "true", "first"))),
)  # fmt: skip
PURE = {
    "approximate_exp2",
    "approximate_reciprocal",
    "in_block",
    "round_to_tf32",
    "Loader",
    "load",
    "load_or_zero",
}  # only compute a number: the compiler may drop and move them
IN_REGISTERS = PURE | {"mma_sync", "wgmma", "elect_lane", "give_up_registers", "take_registers"}
TYPES = """
template <class T, int COUNT> struct Numbers { T x[COUNT]; };
template <class T, int COUNT, int TILES> struct Tiles { Numbers<T, COUNT> tile[TILES]; };
"""
WIDTHS = {"16": 2, "32": 4, "64": 8}
INSTRUCTION = re.compile(r"^\s*(?:\{ )?([a-z][\w.]*)\s+([^;]+);", re.MULTILINE)
INLINE = re.compile(r"// begin inline asm\n(.*?)// end inline asm", re.DOTALL)
TEXT = r'((?:"(?:[^"\\]|\\.)*"|[^";])*)'  # up to a semicolon that is not in a string


def assembly(probe, code):
    """The inline assembly of a probe's PTX, with each register as what it holds: an argument, a[i], or how it is computed."""
    names = [parameter.rpartition(" ")[2] for parameter in re.split(r", (?![^<]*>)", probe.parameters)]
    code = re.sub(r"\w+_param_(\d+)", lambda found: names[int(found[1])], code)
    structs, held, stored = set(re.findall(r"\.b8 (\w+)\[", code)), {name: name for name in names}, {}
    for operation, operands in INSTRUCTION.findall(INLINE.sub("", code)):
        first, *others = re.findall(r"\{.*?\}|\[.*?\]|[^,\s]+", operands)
        kind, values = operation.partition(".")[0], [held.get(other, other) for other in others]
        if kind in ("ld", "st"):
            place, registers = (others[0], first) if kind == "ld" else (first, others[0])
            base, _, offset = place.strip("[]").partition("+")
            index = int(offset or 0) // WIDTHS[operation[-2:]]
            is_array = ".global" in operation or base in structs
            for i, register in enumerate(re.findall(r"%\w+", registers)):
                value = f"{held[base]}[{index + i}]" if is_array else held[base]
                (held if kind == "ld" else stored)[register] = value
        elif kind in ("mov", "cvt", "cvta"):
            held[first] = values[0]
        else:
            held[first] = f"{kind}({', '.join(values)})"

    def name(register):
        known = {where[register[0]] for where in (held, stored) if register[0] in where}
        assert len(known) < 2, f"{known} in one register"
        return known.pop() if known else "register"

    return re.sub(r"%[a-z]+\d+", name, " ".join(" ".join(INLINE.findall(code)).split()))


def code_of(path):
    return re.sub(r"\\\n", " ", re.sub(r"//.*", "", path.read_text()))


@pytest.fixture(scope="module")
def kernels():
    """{probe: its PTX}."""
    found = {}
    for architecture in ("90a", "80"):
        probes = [probe for probe in PROBES if probe.architecture == architecture]
        headers = [f"common/{path.name}" for path in sorted((CUDA / "common").glob("*.cuh")) if "asm" in code_of(path)]
        functions = [f'extern "C" __global__ void p{i}({p.parameters}) {{ {p.call}; }}' for i, p in enumerate(probes)]
        ptx = nvcc.ptx(architecture, headers, "\n".join([TYPES, *functions]))
        found |= dict(zip(probes, ptx.split(".entry ")[1:], strict=True))
    return found


@nvcc.needed
@pytest.mark.parametrize("wrapper", dict.fromkeys(probe.wrapper for probe in PROBES))
def test_assembly(kernels, wrapper):
    for probe in (probe for probe in PROBES if probe.wrapper == wrapper):
        assert assembly(probe, kernels[probe]) == probe.assembly, probe.call


def uses():
    """[(wrapper, statement)] of all assembly in the headers. A macro's statement is that of its definition and its use."""
    found = []
    for path in CUDA.rglob("*.cuh"):
        code = code_of(path)
        macros = re.findall(r"^#define (\w+)(?:\([^)]*\))? (.*)$", code, re.MULTILINE)
        bodies = {name: body for name, body in macros if re.search(r"\basm\b", body)}
        while more := {name: body for name, body in macros if name not in bodies and bodies.keys() & re.findall(r"\w+", body)}:
            bodies |= more
        wrapper = None
        words = "|".join(("asm", *bodies))
        pattern = rf"__device__ __forceinline__ [^;{{(]*?\b(\w+)\(|\b({words})\b{TEXT}"
        for function, word, text in re.findall(pattern, re.sub(r"^#.*$", "", code, flags=re.MULTILINE)):
            wrapper = function or wrapper
            if word and '("" :' not in text:  # an empty one only tells the compiler what is used
                found.append((wrapper, word + bodies.get(word, "") + text))
    return found


def test_every_wrapper_has_a_probe_for_each_of_its_uses():
    used, probed = collections.Counter(wrapper for wrapper, _ in uses()), collections.defaultdict(set)
    for probe in PROBES:
        probed[probe.wrapper].add(probe.assembly)
    assert used.keys() == probed.keys() and used.total() > 60
    # of wait_for_earlier_kernels, two are one after the other
    assert {wrapper for wrapper, count in used.items() if len(probed[wrapper]) < count} == {"wait_for_earlier_kernels"}


def test_the_compiler_keeps_assembly_where_it_stands():
    """What waits, or reads and writes memory, is volatile and names memory."""
    for wrapper, statement in uses():
        assert wrapper in PURE or not re.search(r"\basm\s*\(", statement), wrapper
        assert wrapper in IN_REGISTERS or '"memory"' in statement, wrapper
