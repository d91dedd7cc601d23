"""The arguments that every FP32 GEMM kernel takes."""


def gemm_arguments(problem, a, b, c, out):
    """Pointers, sizes, scalars and strides by the kernels' parameter names."""
    stride_cm, stride_cn = (0, 0) if c is None else c.stride()
    return {
        "a_ptr": a,
        "b_ptr": b,
        "c_ptr": c,
        "out_ptr": out,
        "M": problem.m,
        "N": problem.n,
        "K": problem.k,
        "alpha": problem.alpha,
        "beta": problem.beta,
        "stride_am": a.stride(0),
        "stride_ak": a.stride(1),
        "stride_bk": b.stride(0),
        "stride_bn": b.stride(1),
        "stride_cm": stride_cm,
        "stride_cn": stride_cn,
        "stride_om": out.stride(0),
        "stride_on": out.stride(1),
        "HAS_C": c is not None,
        "WIDE": problem.wide,
    }
