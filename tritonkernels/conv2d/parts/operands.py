"""What every launch of a convolution takes: pointers, sizes and strides, by the kernels' parameter names."""


def arguments(problem, input, weight, bias, out):
    """Every tensor comes with its own strides: NCHW, channels_last and CHWN are three sets of them."""
    return {
        "input_ptr": input,
        "weight_ptr": weight,
        "bias_ptr": bias,
        "out_ptr": out,
        "N": problem.n,
        "H": problem.h,
        "W": problem.w,
        "P": problem.p,
        "Q": problem.q,
        "C_PER_GROUP": problem.c // problem.groups,
        "K_PER_GROUP": problem.k // problem.groups,
        "GROUPS": problem.groups,
        "R": problem.r,
        "S": problem.s,
        **dict(zip(("STEP_H", "STEP_W"), problem.stride)),
        **dict(zip(("PADDING_H", "PADDING_W"), problem.padding)),
        **dict(zip(("DILATION_H", "DILATION_W"), problem.dilation)),
        **dict(zip(("stride_in", "stride_ic", "stride_ih", "stride_iw"), input.stride())),
        **dict(zip(("stride_wk", "stride_wc", "stride_wr", "stride_ws"), weight.stride())),
        "stride_bias": 0 if bias is None else bias.stride(0),
        **dict(zip(("stride_on", "stride_ok", "stride_op", "stride_oq"), out.stride())),
        "HAS_BIAS": bias is not None,
        "WIDE": problem.wide,
    }
