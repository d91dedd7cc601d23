"""Break each kernel on purpose and see `make test` notice: a copy of the tree, one edit, the tests that must fail.

    python -m tests.mutants.run [--shard 2/8] [--jobs 2] [--again] [WORD ...]

Only mutants whose name holds one of the words, if there are any, and of those the second of 8 shares; without --again none that
outcome.json knows as killed by a test that still exists. What becomes of each is added to outcome.json as soon as it is known,
so a run can be interrupted.
Exit status 1 if a mutant survives.

A mutant costs little more than the test that notices it: each is a fork of this process, which has imported all that is not
ours; the test that noticed it last time is tried first; and what a mutant leaves as it is was built for the one before.
"""

import argparse
import contextlib
import multiprocessing
import multiprocessing.connection
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from tests.mutants import outcome
from tests.mutants.catalogue import MUTANTS
from tests.mutants.mutant import ROOT, Mutant

OURS = ("tritonkernels", "cuda_reference", "perf", "tests")
SUITE = (
    "tests/designs/test_language.py",
    "tests/designs/test_designs.py",
    "tests/designs/test_lessons.py",
    "tests/designs/test_offsets.py",
    "tests/designs/test_special_values.py",
    "tests/designs/test_gemm_ladder_cuda.py",
    "tests/designs/test_gemm_splits.py",
    "tests/designs/test_gemm_stream_k.py",
    "tests/designs/test_gemm_packing.py",
    "tests/designs/test_shifted_rows_cuda.py",
    "tests/operations/test_gemv_shifted.py",
    "tests/designs/matmul/test_packed_across_k.py",
    "tests/designs/matmul/test_wgmma_tiles_cuda.py",
    "tests/designs/matmul/test_legal_tiles.py",
    "tests/designs/matmul/test_warp_specialized.py",
    "tests/designs/matmul/test_warp_specialized_code.py",
    "tests/designs/matmul/test_multiples.py",
    "tests/designs/matmul/test_narrow.py",
    "tests/designs/matmul/test_wmma_cuda.py",
    "tests/designs/matmul/test_split_k.py",
    "tests/designs/matmul/test_split_k_cuda.py",
    "tests/designs/matmul/test_shared_tiles_cuda.py",
    "tests/designs/matmul/test_cluster_split_k_cuda.py",
    "tests/operations/test_gemv.py",
    "tests/operations/test_conv2d.py",
    "tests/designs/conv2d/test_what_follows.py",
    "tests/designs/conv2d/test_implicit_gemm_cuda.py",
    "tests/designs/conv2d/test_implicit_gemm.py",
    "tests/designs/conv2d/test_lanes.py",
    "tests/designs/conv2d/test_cuda_cores_triton.py",
    "tests/designs/conv2d/test_winograd.py",
    "tests/designs/conv2d/test_grouped.py",
    "tests/designs/conv2d/test_depthwise_channels.py",
    "tests/designs/conv2d/test_channels_last.py",
    "tests/designs/conv2d/test_channels_last_cuda.py",
    "tests/designs/conv2d/test_unfolded.py",
    "tests/designs/conv2d/test_weight_cuda.py",
    "tests/designs/conv2d/test_weight_cuda_cores.py",
    "tests/designs/conv2d/test_weight_register_products.py",
    "tests/designs/conv2d/test_input_warp_specialized.py",
    "tests/designs/conv2d/test_warp_specialized.py",
    "tests/designs/conv2d/test_warp_specialized_cuda.py",
    "tests/designs/conv2d/test_weight_depthwise.py",
    "tests/designs/conv2d/test_weight_bands.py",
    "tests/designs/conv2d/test_weight_warp_specialized.py",
    "tests/designs/conv2d/test_weight_warp_specialized_cuda.py",
    "tests/operations/test_conv2d_gradients.py",
    "tests/operations/test_conv2d_autograd.py",
    "tests/operations/test_views.py",
    "tests/operations/test_as_torch.py",
    "tests/operations/test_batches.py",
    "tests/torch_ops/test_views.py",
    "tests/torch_ops/test_gradients.py",
    "tests/torch_ops/test_gradient_layouts.py",
    "tests/torch_ops/test_batches.py",
    "tests/torch_ops/test_tracing.py",
    "tests/torch_ops/test_compiled.py",
    "tests/torch_ops/test_autocast.py",
    "tests/torch_ops/test_sharding.py",
    "tests/torch_ops/test_everyday.py",
    "tests/torch_ops/test_replace.py",
    "tests/torch_ops/test_kept_split.py",
    "tests/operations/test_conv2d_choice.py",
    "tests/designs/conv2d/test_prefetched_cuda.py",
    "tests/designs/conv2d/test_grouped_cuda.py",
    "tests/designs/conv2d/test_reach.py",
    "tests/designs/matmul/test_fp32.py",
    "tests/designs/matmul/test_planes.py",
    "tests/designs/matmul/test_wgmma_planes_cuda.py",
    "tests/designs/matmul/test_persistent_planes_cuda.py",
    "tests/designs/matmul/test_fused_planes.py",
    "tests/designs/matmul/test_planes_split_k_cuda.py",
    "tests/designs/matmul/test_planes_split_k.py",
    "tests/designs/matmul/test_reused_operand.py",
    "tests/designs/matmul/test_reused_operand_by_any_design.py",
    "tests/designs/matmul/test_gated.py",
    "tests/operations/test_reductions.py",
    "tests/designs/matmul/test_refusals_of_fp16x3.py",
    "tests/operations/test_plans.py",
    "tests/operations/test_native.py",
    "tests/operations/test_native_gradients.py",
    "tests/operations/test_workspace.py",
    "tests/operations/test_overlap.py",
    "tests/operations/test_every_tensor.py",
    "tests/operations/test_known_targets.py",
    "tests/choice/test_choose.py",
    "tests/choice/test_learned.py",
    "tests/perf/fit/test_boosting.py",
    "tests/choice/test_model.py",
    "tests/choice/test_work.py",
    "tests/choice/test_shipped.py",
    "tests/choice/test_table.py",
    "tests/choice/test_tuner.py",
    "tests/choice/test_tuning_of_a_split.py",
    "tests/choice/test_builders.py",
    "tests/choice/test_builds.py",
    "tests/simt/test_build.py",
    "tests/simt/test_first_calls.py",
    "tests/perf/measure/test_comparison.py",
    "tests/perf/measure/test_model_predictions.py",
    "tests/perf/measure/test_sweep.py",
    "tests/designs/matmul/test_persistent.py",
    "tests/designs/matmul/test_persistent_cuda.py",
    "tests/designs/matmul/test_persistent_rows_cuda.py",
    "tests/designs/matmul/test_tile_rows_cuda.py",
    "tests/designs/matmul/test_rounding.py",
    "tests/designs/matmul/test_activations.py",
    "tests/designs/matmul/test_persistent_split_k_cuda.py",
    "tests/designs/matmul/test_persistent_start_cuda.py",
    "tests/designs/matmul/test_persistent_swapped_cuda.py",
    "tests/designs/matmul/test_persistent_transposed_cuda.py",
    "tests/designs/matmul/test_persistent_turns_cuda.py",
    "tests/designs/matmul/test_persistent_addend_cuda.py",
    "tests/designs/matmul/test_pipelined_cuda.py",
    "tests/designs/matmul/test_hopper_ladder_cuda.py",
    "tests/designs/matmul/test_hopper_ladder_gluon.py",
    "tests/designs/matmul/test_fp8.py",
    "tests/designs/matmul/test_cuda_cores_cuda.py",
    "tests/designs/matmul/test_cuda_cores_triton.py",
    "tests/designs/matmul/test_dmma.py",
    "tests/designs/matmul/test_gluon_product.py",
    "tests/designs/test_tma_stores.py",
    "tests/operations/test_nothing_to_add.py",
    "tests/designs/test_fences.py",
    "tests/designs/gluon/test_results.py",
    "tests/designs/test_tensor_core_code.py",
    "tests/tools/test_interpreter.py",
    "tests/designs/test_waits.py",
    "tests/designs/test_assembly.py",
    "tests/designs/test_host_code.py",
    "tests/memory/test_memory.py",
    "tests/simt/test_designs_in_the_emulation.py",
    "tests/simt/test_threads.py",
    "tests/simt/test_races.py",
)
CPU_SECONDS, SECONDS = 300, 1200  # a mutant that has not ended then hangs; the second is for one that waits for ever
FORK = multiprocessing.get_context("fork")


@dataclass
class Attempt:
    """A mutant, broken in a copy of the tree, and the process that runs tests there."""

    mutant: Mutant
    folder: Path
    tests: tuple  # of pytest's command line
    began: float  # on the mutant, whose second attempt this may be
    text: str  # of the file, unbroken

    def start(self):
        """`heard` gets the name of the test that fails, None if none does; nothing from a process that dies."""
        self.heard, teller = FORK.Pipe(duplex=False)
        (self.folder / self.mutant.path).write_text(self.mutant.broken(self.folder))
        self.process = FORK.Process(target=_attempt, args=(self, teller))
        self.deadline = time.monotonic() + SECONDS
        self.process.start()
        teller.close()
        return self

    def ended(self):
        """Whether it has; then `by` is the test that noticed the mutant, None if none did, and the file is whole again."""
        late = time.monotonic() > self.deadline
        if self.process.is_alive() and not late:
            return False
        self.end()
        dead = self.process.exitcode < 0
        self.by = (self.folder / "running").read_text() if dead else self.heard.recv()
        if dead:
            self.by += " (hangs)" if late else f" ({signal.Signals(-self.process.exitcode).name})"
        return True

    def end(self):
        with contextlib.suppress(ProcessLookupError):  # all of its group, of which compilers and children of tests are
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.join()
        (self.folder / self.mutant.path).write_text(self.text)


def _attempt(attempt, teller):
    """Runs in its own process, as if started in the copy of the tree."""
    os.setsid()
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS + 10))
    os.chdir(attempt.folder)
    with open("log", "w") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    for name in [name for name in sys.modules if name.partition(".")[0] in OURS]:
        del sys.modules[name]
    sys.path[:] = [str(attempt.folder), *(path for path in sys.path if Path(path or ".").resolve() != ROOT)]
    import pytest

    class Noticed:
        """Remembers what failed first: the name of a test, or of a file that cannot be imported; and notes what runs."""

        by = None

        def pytest_runtest_logstart(self, nodeid):
            Path("running").write_text(nodeid)

        def pytest_runtest_logreport(self, report):
            if report.failed:
                self.by = self.by or report.nodeid

        pytest_collectreport = pytest_runtest_logreport

    noticed = Noticed()
    status = pytest.main(["-x", "-q", "-p", "no:cacheprovider", "--timeout=0", *attempt.tests], plugins=[noticed])
    ran = status in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.INTERRUPTED)
    teller.send(noticed.by if ran else None)  # else it was an earlier run's test that is no more


def attempts(mutant, outcomes):
    """The command lines to try in turn: of the test that noticed it last time, and of all that should."""
    if last := outcome.killer(outcomes.get(mutant.name, {})):
        yield (last,)
    yield ("-k", mutant.tests, *SUITE)


def prepare(count, place):
    """That many copies of the tree, with other packages imported beforehand."""
    os.environ |= {"TRITONKERNELS_BACKEND": "interpreter", "TRITON_INTERPRET": "1", "CUDA_VISIBLE_DEVICES": ""}
    os.environ |= {"PYTHONDONTWRITEBYTECODE": "1", "TRITONKERNELS_CACHE": str(place / "cache")}
    for name in [name for name in os.environ if name.startswith("PYTEST")]:
        del os.environ[name]
    import hypothesis  # noqa: F401
    import numpy  # noqa: F401
    import pytest  # noqa: F401
    import torch
    import torch.testing
    import triton.language  # noqa: F401

    torch.broadcast_shapes((1,), (1,))  # imports more
    torch.set_num_threads(1)  # before any are started, which a fork would not have
    return [_copy_of_the_tree(place / str(number)) for number in range(count)]


def _copy_of_the_tree(folder):
    """Where the one before lay: a place is part of what is built there. With the bytecode, of which no more is written."""
    shutil.rmtree(folder, ignore_errors=True)
    for name in OURS:
        shutil.copytree(ROOT / name, folder / name)
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder


def run(mutants, jobs, outcomes, place):
    """(mutant, the test that noticed it or None, seconds) of each as they finish, `jobs` at a time."""
    place.mkdir(parents=True, exist_ok=True)
    try:
        held = FileLock(place / "lock").acquire(blocking=False)
    except Timeout:
        sys.exit(f"another run is at work in {place}")
    with held:
        yield from _run(mutants, outcomes, prepare(jobs, place))


def _run(mutants, outcomes, folders):
    running, waiting = [], list(mutants)
    try:
        while waiting or running:
            while waiting and folders:
                mutant, folder = waiting.pop(0), folders.pop()
                tries = attempts(mutant, outcomes)
                text = (folder / mutant.path).read_text()
                running.append((Attempt(mutant, folder, next(tries), time.monotonic(), text).start(), tries))
            multiprocessing.connection.wait([attempt.process.sentinel for attempt, _ in running], timeout=5)
            for attempt, tries in [(attempt, tries) for attempt, tries in running if attempt.ended()]:
                running.remove((attempt, tries))
                tests = None if attempt.by else next(tries, None)
                if tests:
                    again = Attempt(attempt.mutant, attempt.folder, tests, attempt.began, attempt.text)
                    running.append((again.start(), tries))
                else:
                    folders.append(attempt.folder)
                    yield attempt.mutant, attempt.by, time.monotonic() - attempt.began
    finally:
        for attempt, _ in running:
            attempt.end()


def _cases():
    """The names of all cases of all tests."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", "--all"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return {line for line in listed.splitlines() if "::" in line}


def main(mutants, words=(), shard="1/1", jobs=1, again=False, file=outcome.FILE, place=ROOT / "build/mutants"):
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # and what runs is ended
    number, count = map(int, shard.split("/"))
    outcomes = outcome.read(file)
    chosen = [m for m in mutants if not words or any(word in m.name for word in words)][number - 1 :: count]
    lost = {} if again else outcome.gone(outcomes, _cases())
    todo = [m for m in chosen if again or m.name in lost or not outcome.is_known(m, outcomes)]
    survived = 0
    for mutant, by, seconds in run(todo, jobs, outcomes, place):
        outcome.add(mutant, by, seconds, [m.name for m in mutants], file)
        survived += by is None
        print(f"{'killed  ' if by else 'SURVIVED'} {mutant.name}: {by or mutant.tests} ({seconds:.0f} s)", flush=True)
    print(
        f"{len(chosen)} mutants: {len(chosen) - len(todo)} known as killed, {len(todo) - survived} killed, {survived} survived"
    )
    return 1 if survived or not chosen else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*")
    parser.add_argument("--shard", default="1/1")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--again", action="store_true")
    sys.exit(main(MUTANTS, **vars(parser.parse_args())))
