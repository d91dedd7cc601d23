"""perf calibrate: the kernels do what they say, their machine code is what is to be timed, and figures come out right on a
simulated GPU."""

import dataclasses
import json
import re

import pytest
import torch

from perf.__main__ import main
from perf.measure import calibrate, contenders
from tests.choice.stand_ins import SimulatedGpu
from tests.compiler import printed
from tests.harness import thorough
from tritonkernels import backend, calibration
from tritonkernels.target import Target

DEVICE = torch.device(backend.device_type())  # which decides how Triton decorates

from perf.measure import calibrate_kernels as kernels  # noqa: E402

SMALL = dataclasses.replace(Target.named("h200"), name="NVIDIA X1", sms=2, l2_bytes=4 * 5 * 4 * kernels.BLOCK)
ROOM = 3 * 4 * kernels.BLOCK
TRUE = {"dram_bandwidth": 0.5e12, "l2_bandwidth": 0.05e12, "latency": 800e-9, "launch": 2.5e-6}
TRUE |= {"ieee": 0.8e12, "fp16": 14e12, "bf16": 14e12, "tf32": 7e12, "int8": 28e12, "fp8": 27e12, "fp64": 0.4e12}


def run(probe, steps):
    """The operands of the probe's last launch, after all."""
    for launch in probe.launches(steps):
        launch.run()
    return launch.values


def test_the_figures_are_those_that_a_target_takes():
    assert set(kernels.PROBES) == {*calibration.FIELDS, *calibration.PER_CYCLE} == {*calibration.RANGES, *calibration.PER_CYCLE}
    assert set(calibration.PER_CYCLE) - {"l2_bandwidth"} <= Target.named("h200").peaks.keys()


def test_the_copy_copies():
    probe = kernels.copies(SMALL, DEVICE, ROOM)
    values = run(probe, 1)
    assert torch.equal(values["data"], values["out"]) and len(probe.launches(5)) == 5
    assert probe.amount == 2 * 4 * values["data"].numel() == 2 * ROOM


def test_reading_reads_every_block_as_often():
    probe = kernels.reads(SMALL, DEVICE, ROOM)
    values = run(probe, 5)  # by 4 programs: each of 5 blocks 4 times
    data, out = (values[name].view(-1, kernels.BLOCK).sum(0, dtype=torch.int32) for name in ("data", "out"))
    assert torch.equal(out, 4 * data) and values["data"].numel() == 5 * kernels.BLOCK
    assert probe.amount == 4 * 4 * kernels.BLOCK


def test_the_chase_visits_every_line_before_any_comes_again():
    probe = kernels.trips(SMALL, DEVICE, 100 * kernels.LINE)
    places = [int(run(probe, 1)["place"]) for _ in range(100)]
    assert sorted(places) == list(range(0, 3200, 32)) and places != sorted(places)
    assert int(run(probe, 100)["place"]) == places[-1] and probe.amount == 1


def test_every_number_is_multiplied_and_added_to_as_often():
    probe = kernels.fmas(SMALL, DEVICE, ROOM)
    numbers = torch.arange(kernels.NUMBERS, dtype=torch.float64)
    for _ in range(2 * kernels.FMAS):
        numbers = 0.999 * numbers + 0.001
    for out in run(probe, 2)["out"].view(-1, kernels.NUMBERS):
        torch.testing.assert_close(out.double().cpu(), numbers, rtol=1e-5, atol=1e-5)
    assert probe.amount == 2 * 4 * kernels.NUMBERS * kernels.FMAS


@pytest.mark.parametrize("precision", kernels.DTYPES)
def test_products_are_added_up(precision):
    if precision == "fp8" and DEVICE.type == "cuda" and torch.cuda.get_device_capability() < (8, 9):
        pytest.skip("this GPU has no fp8")
    probe = kernels.products(precision, SMALL, DEVICE, ROOM)
    values = run(probe, 3)
    a, b = values["a"].double(), values["b"].double()
    torch.testing.assert_close(values["out"].double(), 3 * a @ b.T, rtol=4e-3, atol=0.1)  # tf32 is truncated
    assert probe.amount == 2 * a.numel() * b.shape[0] * 4


def test_an_empty_kernel_runs():
    probe = kernels.empties(SMALL, DEVICE, ROOM)
    run(probe, 2)
    assert len(probe.launches(7)) == 7 and probe.amount == 1


# Prints [probe, opcodes of the hot loop, bytes of stack, bytes of shared memory] for the GPU argv[1], of the probes after it
COMPILE = """
import dataclasses, json, sys, torch
from perf.measure import calibrate_kernels as kernels
from perf.offline import compile_launch, sass
from tritonkernels.target import Target

target = Target.named(sys.argv[1])
small = dataclasses.replace(target, sms=2, l2_bytes=2**20)
for name in sys.argv[2:]:
    kernel = compile_launch(kernels.PROBES[name](small, torch.device("cpu"), 2**20).launches(16)[0], target)
    (code,) = sass.read(kernel.asm["cubin"]).values()
    every = [text.split()[0] for _, text in code.instructions]
    print(json.dumps([name, code.hot_loop(), every, code.stack_bytes, kernel.metadata.shared]))
"""
LOOPS = {  # what makes up the loop, at least how many for a warp or, from Hopper on, a warpgroup
    "sm_80": {"fp16": ("HMMA.16816.F32", 128), "bf16": ("HMMA.16816.F32.BF16", 128), "tf32": ("HMMA.1688.F32.TF32", 128),
              "int8": ("IMMA.16832.S8.S8", 128), "fp64": ("DMMA", 256)},
    "sm_90": {"fp16": ("HGMMA.64x128x16", 16), "bf16": ("HGMMA.64x128x16", 16), "tf32": ("HGMMA.64x128x8", 16),
              "int8": ("IGMMA.64x128x32", 16), "fp8": ("QGMMA.64x128x32", 8), "fp64": ("DMMA", 32)},
    "sm_89": {"fp16": ("HMMA.16816.F32", 128), "fp8": ("QMMA.16832.F32", 128), "fp64": ("DFMA", 2048)},
    "sm_120": {"tf32": ("HMMA.1688.F32.TF32", 128), "fp8": ("QMMA.16832.F32", 128)},
    "sm_100": {"fp16": ("UTCHMMA", 8), "tf32": ("UTCHMMA", 8), "fp8": ("UTCQMMA", 8), "int8": ("IMMA.16832.S8.S8", 128)},
}  # fmt: skip


@thorough
@pytest.mark.parametrize("architecture", LOOPS)
def test_the_loops_are_what_is_to_be_timed(architecture):
    """The compiler has removed nothing, and little is in the loops besides."""
    products = {*kernels.DTYPES} - ({"fp8"} if architecture == "sm_80" else set())
    probes = [name for name in kernels.PROBES if name in products or name not in kernels.DTYPES]
    found = {name: rest for name, *rest in map(json.loads, printed(COMPILE, architecture, *probes).splitlines())}
    for name, (opcode, least) in ((name, loop) for name, loop in LOOPS[architecture].items() if name in found):
        loop, _, stack, shared = found[name]
        assert sum(n for code, n in loop.items() if code.startswith(opcode)) >= least and not stack, (name, loop)
        assert 4 * loop.get("WARPGROUP.ARRIVE", 0) <= least or name == "fp8", "no wgmma waits for the one before"
        assert shared <= Target.named(architecture).shared_per_block, name
    fma = found["ieee"][0]
    products = sum({"FFMA": 1, "FFMA2": 2}.get(code, 0) * n for code, n in fma.items())
    assert products == 8 * kernels.FMAS and sum(fma.values()) <= products + 8, "a thread has 8 numbers"
    reading = found["l2_bandwidth"][0]
    assert sum(n for code, n in reading.items() if code.startswith("LDG.E.128.STRONG.GPU")) == 8, "past L1"
    assert sum(n for code, n in found["latency"][0].items() if code.startswith("LDG")) >= 1
    copying = found["dram_bandwidth"][1]
    assert [sum(code.startswith(access) for code in copying) for access in ("LDG.E.128", "STG.E.128")] == [8, 8]
    assert len([code for code in found["launch"][1] if code not in ("NOP", "BRA")]) <= 4


class Gpu(SimulatedGpu):
    """With graphs: what they replay takes the host no time."""

    def replay(self, call):
        self._recorded = []
        call()
        recorded, self._recorded = sum(self._recorded), None
        return lambda: self.work(recorded)

    def launch(self, seconds):
        if getattr(self, "_recorded", None) is None:
            self.work(seconds)
        else:
            self._recorded.append(seconds)


@dataclasses.dataclass
class Launch:
    gpu: Gpu
    seconds: float

    def alone(self):
        return self

    def run(self):
        self.gpu.launch(self.seconds)


@pytest.fixture
def gpu(monkeypatch, tmp_path):
    """A GPU of the TRUE figures, and the user's file on it."""
    gpu = Gpu()
    monkeypatch.setenv("TRITONKERNELS_TUNING", str(tmp_path / "tuning.json"))
    monkeypatch.setattr(calibration.FILE, "_content", None)
    monkeypatch.setattr(kernels, "PROBES", {name: probe_of(gpu, name) for name in TRUE})
    return gpu


def probe_of(gpu, name):
    seconds = TRUE[name] if name in calibrate.SECONDS else 1e6 / TRUE[name]
    amount = 1 if name in calibrate.SECONDS else 1e6
    return lambda target, device, room: kernels.Probe(amount, lambda steps: [Launch(gpu, steps * seconds)])


def calibrated(gpu):
    return calibrate.run(SMALL, DEVICE, gpu, ROOM)


def test_the_figures_of_a_gpu_are_found_and_kept(gpu, capsys, monkeypatch, tmp_path):
    assert calibrated(gpu) == 0
    monkeypatch.setattr(calibration.FILE, "_content", None)  # a new process
    found = calibration.of("NVIDIA X1", 2)
    assert found.figures == pytest.approx(TRUE, rel=0.03) and re.fullmatch(r"\d{4}-\d\d-\d\d", found.date)
    assert found.torch == torch.__version__ and found.triton[0].isdigit()
    said = capsys.readouterr().out
    assert "NVIDIA X1, sm_90, 2 SMs" in said and f"Kept in {tmp_path / 'calibration.json'}" in said and "Left out" not in said
    assert len([line for line in said.splitlines() if "TFLOP/s" in line]) == 7
    assert gpu.now() < 10, "seconds"


def test_what_fails_and_what_cannot_be_is_left_out_and_said(gpu, capsys, monkeypatch):
    def lacks(target, device, room):
        raise ValueError("type fp8e4nv not supported\n in this architecture")

    monkeypatch.setitem(kernels.PROBES, "fp8", lacks)
    monkeypatch.setitem(kernels.PROBES, "int8", lambda *_: kernels.Probe(1e30, lambda steps: [Launch(gpu, 1e-6)]))
    assert calibrated(gpu) == 0
    assert calibration.of("NVIDIA X1", 2).figures.keys() == TRUE.keys() - {"fp8", "int8"}
    said = capsys.readouterr().out
    assert "Left out: fp8: ValueError: type fp8e4nv not supported in this architecture\n" in said
    assert re.search(r"Left out: int8: \S+ cannot be: on 2 SMs it is between ", said)


def test_nothing_that_can_be_measured_is_a_failure_and_keeps_what_was_known(gpu, monkeypatch):
    assert calibrated(gpu) == 0
    before = calibration.of("NVIDIA X1", 2)
    monkeypatch.setattr(kernels, "PROBES", {"fp16": lambda *_: 1 / 0})
    assert calibrated(gpu) == 1 and calibration.of("NVIDIA X1", 2) == before


@pytest.fixture
def one_gpu(gpu, monkeypatch):
    """torch sees one GPU; what asks it for more fails."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(backend, "name", lambda: "gpu")
    monkeypatch.setattr(Target, "live", lambda device: pytest.fail("it went on"))


def test_a_gpu_that_is_not_there(one_gpu, capsys, monkeypatch):
    assert main(["calibrate", "--device", "1"]) == 2
    assert "there is no GPU 1: torch sees 1" in capsys.readouterr().err
    monkeypatch.setattr(backend, "name", lambda: "interpreter")
    assert main(["calibrate"]) == 2 and "TRITONKERNELS_BACKEND selects the interpreter" in capsys.readouterr().err
    with pytest.raises(SystemExit) as stop:
        main(["calibrate", "--device", "-1"])
    assert stop.value.code == 2 and "-1 is not the number of a GPU" in capsys.readouterr().err


def test_without_a_gpu(capsys):
    if contenders.device().type == "cuda":
        pytest.skip("there is one")
    assert main(["calibrate"]) == 2 and "needs a GPU and torch sees none: run it where nvidia-smi" in capsys.readouterr().err


def test_what_cannot_be_kept_is_said_before_anything_is_measured(one_gpu, capsys, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    for setting, said in ((tmp_path / "file" / "x.json", "cannot be written"), ("off", "TRITONKERNELS_TUNING is off")):
        monkeypatch.setenv("TRITONKERNELS_TUNING", str(setting))
        assert main(["calibrate"]) == 2 and said in capsys.readouterr().err
    monkeypatch.setenv("TRITONKERNELS_TUNING", str(tmp_path / "tuning.json"))
    (tmp_path / "calibration.json").write_text("{}")
    (tmp_path / "calibration.json").chmod(0o600)
    assert main(["calibrate"]) == 2 and "its schema is None" in capsys.readouterr().err
