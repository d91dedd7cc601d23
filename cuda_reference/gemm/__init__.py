"""FP32 GEMM in CUDA C++: the ladder's rungs and their config spaces."""

from tritonkernels.design import Design, takes_everything
from tritonkernels.gemm import prepare

from ..launch import LIBRARY, CudaLaunch, Source, ceil_div


def gemm(a, b, c=None, *, alpha=1.0, beta=0.0, out=None, design=None, config=None):
    """tritonkernels.gemm, computed by the CUDA designs: arguments, result, error bound and errors are documented there."""
    return LIBRARY.run(prepare(a, b, c, alpha=alpha, beta=beta, out=out), design, config)


def _launch(source, expression, config, threads, problem, a, b, c, out):
    tiles = ceil_div(problem.m, config["BM"]) * ceil_div(problem.n, config["BN"])
    strides = (*a.stride(), *b.stride(), *(c.stride() if c is not None else (0, 0)), *out.stride())
    arguments = (a, b, c, out, problem.m, problem.n, problem.k, problem.alpha, problem.beta, strides)
    return CudaLaunch(source, expression, (tiles,), (threads, 1, 1), arguments)


def _naive():
    space = [{"BM": 8, "BN": 32}, {"BM": 4, "BN": 64}, {"BM": 32, "BN": 32}]
    template = "gemm::naive<{BM}, {BN}>"
    source = Source("gemm/naive.cuh", tuple(template.format(**config) for config in space))

    def launches(problem, config, *tensors):
        threads = config["BM"] * config["BN"]
        yield _launch(source, template.format(**config), config, threads, problem, *tensors)

    return Design(
        name="naive",
        summary="one thread per element of C, operands straight from the caches",
        mirrors="gemm seed: naive",
        refuses=takes_everything,
        configs=lambda problem, target: space,
        launches=launches,
    )


def _tiled():
    big = {"BM": 128, "BN": 128, "BK": 8, "TM": 8, "TN": 8}  # the seed's
    small = {"BM": 64, "BN": 64, "BK": 8, "TM": 4, "TN": 4}
    template = "gemm::tiled<{BM}, {BN}, {BK}, {TM}, {TN}>"
    source = Source("gemm/tiled.cuh", (template.format(**big), template.format(**small)))

    def configs(problem, target):
        """The seed's tile, unless its blocks would leave SMs of this GPU without work."""
        blocks = ceil_div(problem.m, big["BM"]) * ceil_div(problem.n, big["BN"])
        return [small, big] if blocks < target.sms else [big, small]

    def launches(problem, config, *tensors):
        threads = (config["BM"] // config["TM"]) * (config["BN"] // config["TN"])
        yield _launch(source, template.format(**config), config, threads, problem, *tensors)

    return Design(
        name="tiled",
        summary="block tile in shared memory, outer products in registers",
        mirrors="gemm seed: shared memory + outer product",
        refuses=takes_everything,
        configs=configs,
        launches=launches,
    )


DESIGNS = (_naive(), _tiled())
