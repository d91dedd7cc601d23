"""python -m tests.choice.fake_build: whether launches compile anything that building ahead has not, on a GPU that is not there.

Prints, as JSON, how many candidates were compared and which were compiled again.
"""

import functools
import json

from tests.operations import fake_gpu  # before Triton: it decides for what Triton is imported
from tritonkernels.choice.bench import Bench, Candidate
from tritonkernels.launch import LIBRARY
from tritonkernels.target import Target

compiled = []


def noted(compile, *args, **kwargs):
    compiled.append(1)
    return compile(*args, **kwargs)


def calls():
    half, f32 = fake_gpu.torch.float16, fake_gpu.torch.float32
    tensor = fake_gpu.tensor
    yield "gemm", (tensor(96, 128), tensor(128, 160)), {}
    yield "gemv", (tensor(96, 64), tensor(64)), {}
    yield "matmul", (tensor(96, 128, dtype=half), tensor(128, 160, dtype=half)), {"out_dtype": f32}
    yield "matmul", (tensor(96, 128), tensor(128, 160)), {"precision": "fp16x3"}
    yield "conv2d", (tensor(1, 6, 20, 24), tensor(6, 6, 3, 3)), {"padding": 1}


def main():
    fake_gpu.install()
    compiler = fake_gpu.triton.compiler
    compiler.compile = functools.partial(noted, compiler.compile)
    compared, again = 0, []
    for op, args, kwargs in calls():
        call = LIBRARY.operation(op).prepare(*args, **kwargs)
        candidates = [Candidate(*choice) for choice in LIBRARY.candidates(call.problem, Target.named("h200"))[0]]
        bench = Bench(LIBRARY, call, None, None, candidates)
        for candidate in candidates:
            if failed := bench._builds[candidate.key].exception():
                raise failed
        for candidate in candidates:
            before = len(compiled)
            LIBRARY.run(call, candidate.design.name, candidate.config)
            again += [f"{op} {candidate}"] * (len(compiled) > before)
            compared += 1
        bench.close()
    print(json.dumps([compared, again]))


if __name__ == "__main__":
    main()
