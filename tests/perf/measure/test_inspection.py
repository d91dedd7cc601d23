"""perf inspect reads machine code: what it counts is checked on kernels whose code is known, and on the gemm ladder's gates."""

import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from perf.measure import inspection, records
from perf.offline import configs, sass
from tests import compiler
from tests.harness import thorough
from tritonkernels.target import Target

ROOT = Path(__file__).parents[3]

LISTING = """
        Function : _Z1kv
        /*0000*/                   MOV R1, c[0x0][0x28] ;
        /*0010*/                   FFMA R0, R1, R2, R3 ;
        /*0020*/                   LDG.E.128 R4, [R2] ;
        /*0030*/              @P1  BRA 0x20 ;
        /*0040*/                   FFMA R0, R1, R2, R3 ;
        /*0050*/                   LDS.128 R4, [R2] ;
        /*0060*/              @!P0 BRA 0x10 ;
        /*0070*/                   BRA 0x70 ;
"""


def parse(monkeypatch):
    usage = "Function _Z1kv:\n  REG:40 STACK:8 SHARED:9216 LOCAL:0"
    text = {"--dump-resource-usage": usage, "--dump-sass": "code for sm_90\n" + LISTING}
    monkeypatch.setattr(sass, "_cuobjdump", lambda option, path: text[option])
    return sass.read(b"")["_Z1kv"]


def test_resources_and_loops(monkeypatch):
    code = parse(monkeypatch)
    assert (code.registers, code.stack_bytes, code.shared_bytes) == (40, 8, 8192)
    assert set(code.loops()) == {(0x20, 0x30), (0x10, 0x60), (0x70, 0x70)}


def test_a_wait_that_is_repeated_behind_the_end_is_no_loop(monkeypatch):
    """It comes back into the loop, and what lies between has the kernel's EXIT."""
    texts = ("HGMMA R1", "SYNCS P0", "@!P0 BRA 0x60", "@P1 BRA 0x10", "EXIT", "SYNCS P0", "BRA 0x30")
    lines = [(16 * i, *re.match(r"(@\S+ )?(.*)", text).groups()) for i, text in enumerate(texts, 1)]
    listing = "".join(f"        /*{address:04x}*/ {predicate or '':>8}{text} ;\n" for address, predicate, text in lines)
    monkeypatch.setattr(sys.modules[__name__], "LISTING", "        Function : _Z1kv\n" + listing)
    assert set(parse(monkeypatch).loops()) == {(0x10, 0x40)}


def test_the_hot_loop_is_the_one_with_most_arithmetic_of_its_own(monkeypatch):
    mix = parse(monkeypatch).hot_loop()
    assert mix == {"FFMA": 2, "LDS.128": 1, "BRA": 1}
    assert sass.share(mix, ("FFMA",)) == 0.5 and sass.count(mix, ("LDS", "LDG")) == 1


def test_of_several_kernels_the_one_on_tensor_cores_is_shown(monkeypatch):
    """Although those that split operands have more instructions of arithmetic."""
    bodies = [*[["FADD R0, R0, R1"] * 9] * 4, ["HGMMA R24, gdesc[UR16], R24"]]

    def compiled(launch, target):
        lines = [*enumerate(bodies.pop(0)), (9, "BRA 0x0")]
        return sass.Code("", 40, 0, 0, tuple((16 * i, text) for i, text in lines), {}), {"threads": 128, "shared_bytes": 0}

    monkeypatch.setattr(inspection, "_compile_triton", compiled)
    row = next(inspection.inspect("matmul", Target.named("h200"), "planes"))
    assert row["design"] == "planes" and row["hot_loop"] == {"HGMMA": 1, "BRA": 1}
    assert not bodies, "it has five kernels"


def test_a_listing_of_the_hot_loop_shortens_runs_and_keeps_predicates(monkeypatch):
    ffma = "".join(f"        /*{16 * i:04x}*/                   FFMA R{i}, R1, R2, R3 ;\n" for i in range(1, 8))
    bounded = ffma + "        /*0080*/              @!P0 BRA 0x10 ;\n"
    monkeypatch.setattr(sys.modules[__name__], "LISTING", "        Function : _Z1kv\n" + bounded)
    assert list(parse(monkeypatch).listing()) == [
        "0010       FFMA R1, R1, R2, R3",
        "0020       FFMA R2, R1, R2, R3",
        "           FFMA ... 5 more",
        "0080  @!P0 BRA 0x10",
    ]


def inspect(what, tmp_path, *options, **settings):
    """In the process of all compilations, or in one of its own with these settings in its environment."""
    out = tmp_path / "facts.json"
    command = ["inspect", *what.split(), "--json", str(out), *options]
    if settings:
        environment = {k: v for k, v in os.environ.items() if not k.startswith("TRITON")}
        command = [sys.executable, "-m", "perf", *command]
        run = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment | settings)
    else:
        run = compiler.command(*command)
    return run, records.read_rows(out) if run.returncode == 0 else None


@thorough
def test_a_design_side_by_side(tmp_path):
    run, rows = inspect("gemm.rasterized", tmp_path, "--arch", "sm_80", "--code")
    assert run.returncode == 0, run.stderr
    triton = next(row for row in rows if row["implementation"] == "triton")
    assert triton["ffma_share"] > 0.5 and "128" in triton["shared_loads"] and triton["layouts"]
    assert triton["tile"]["intensity"] > 10 and "a100" in run.stdout
    assert f" {1e6 * triton['predicted_s']:.0f} " in run.stdout and triton["bound_by"] in run.stdout
    assert any(" FFMA " in line for line in triton["listing"])
    assert "\n".join(["triton rasterized, the hot loop:", *triton["listing"], ""]) in run.stdout
    assert {row["implementation"] for row in rows} == {"triton", "cuda"}
    assert all("sm_80" in row["environment"]["device"] and row["environment"]["triton"] for row in rows)


def test_a_config_can_be_named(tmp_path):
    run, rows = inspect("gemv.warp_per_row", tmp_path, "--config", "LANES=32", "BLOCK_M=8")
    triton, cuda = rows
    assert triton["config"]["LANES"] == 32 and triton["threads"] == 8 * 32
    assert "LANES" in cuda["fault"] and cuda["fault"] in run.stdout, "the CUDA twin has no such config, and says so"


@thorough
def test_kernels_are_compiled_where_the_user_interprets_his_own(tmp_path):
    run, rows = inspect("gemm.rasterized", tmp_path, TRITON_INTERPRET="1")
    assert run.returncode == 0, run.stderr
    assert rows[0]["implementation"] == "triton" and rows[0]["registers"] > 0


@thorough
def test_without_a_working_nvcc_the_remedy_is_told(tmp_path):
    home = tmp_path / "cuda"
    (home / "bin").mkdir(parents=True)
    triton, cuda = inspect("gemm.rasterized", tmp_path, CUDA_HOME=str(home))[1]
    assert triton["registers"] > 0 and "install the CUDA toolkit, or set CUDA_HOME" in cuda["fault"]
    nvcc = home / "bin/nvcc"
    nvcc.write_text("#!/bin/sh\necho compute_90; case $* in *-cubin*) echo no such host compiler >&2; exit 1; esac\n")
    nvcc.chmod(0o755)
    run, rows = inspect("gemm.rasterized", tmp_path, CUDA_HOME=str(home))
    assert "no such host compiler\nRepair or reinstall it." in rows[1]["fault"] and rows[1]["fault"] in run.stdout


@thorough
def test_several_operations_in_one_file(tmp_path):
    run, rows = inspect("gemm.rasterized matmul.gemm.rasterized gemv.vectorized", tmp_path)
    assert run.returncode == 0, run.stderr
    assert run.stdout.count("compiled, not run") == 3
    assert [row["op"] for row in rows] == ["gemm", "gemm", "gemv", "gemv"], "gemm.rasterized of matmul is that of gemm"


@pytest.mark.parametrize(
    "asked, nearest",
    [
        ("BLOCK_M=96 BLOCK_N=64", "triton rasterized: BLOCK_M=128 BLOCK_N=64"),
        pytest.param("BM=60", "cuda rasterized: BM=64", marks=thorough),
    ],
)
def test_an_unknown_config_exits_2_and_names_the_nearest(asked, nearest, tmp_path):
    run, _ = inspect("gemm.rasterized", tmp_path, "--config", *asked.split())
    said, *known = run.stderr.splitlines()
    assert run.returncode == 2 and run.stdout == ""
    assert said == f"python -m perf inspect: no config has {asked}; the nearest of gemm.rasterized:"
    assert known[0].startswith(nearest) and 2 < len(known) <= configs.MOST
    assert inspect("gemm.rasterized", tmp_path, "--config", *known[0].partition(": ")[2].split())[0].returncode == 0, (
        "as printed"
    )


@pytest.mark.parametrize("text", ["BM", "BM=", "=64", ""])
def test_what_is_no_config_is_told(text):
    with pytest.raises(argparse.ArgumentTypeError, match="BLOCK_M=64"):
        configs.number(text)


def test_configs_are_read_as_they_are_printed():
    config = {"BM": 64, "STREAMS": True, "A_TILE": "PaddedTile", "minus": -1}
    assert dict(map(configs.number, configs.words(config).split())) == config


@pytest.mark.parametrize("what", ["gem", "gemm.fast"])
def test_unknown_names_exit_2(what, tmp_path):
    run, _ = inspect(what, tmp_path)
    assert run.returncode == 2 and what.partition(".")[2] in run.stderr


@thorough
@pytest.mark.long
@pytest.mark.skipif(shutil.which("nvcc") is None, reason="no nvcc on this machine")
def test_the_cuda_ladder_s_machine_code(tmp_path):
    """90 % FFMA in the contenders, 128-bit shared loads from `tiled` on, no spills, and what docs/gemm.md says of loops."""
    run, rows = inspect("gemm", tmp_path)
    assert run.returncode == 0, run.stderr
    rows = [row for row in rows if "." not in row["design"]]
    ladder = {row["design"]: row for row in rows if row["implementation"] == "cuda"}
    assert all(row["stack_bytes"] == 0 for row in rows)
    names = list(ladder)
    for name in names[names.index("tiled") :]:
        assert ladder[name]["shared_loads"].get("128", 0) >= 32, name
    for name in ("rasterized", "async_copy", "stream_k"):
        run, rows = inspect(f"gemm.{name}", tmp_path, "--config", "BM=128", "BN=256", "BK=8")
        assert next(row["ffma_share"] for row in rows if row["implementation"] == "cuda") >= 0.9, name
    shares = [ladder[name]["ffma_share"] for name in ("naive", "tiled", "vectorized", "double_buffered")]
    assert shares == sorted(shares), "each of these rungs leaves fewer other instructions in the loop"
    loops = [ladder[name]["hot_loop"] for name in ("vectorized", "conflict_free", "z_order")]
    assert loops == loops[:1] * 3, "only addresses differ"
