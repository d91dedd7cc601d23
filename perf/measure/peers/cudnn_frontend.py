"""cuDNN's graphs by its frontend, with every plan that it proposes timed: torch searches cuDNN's older interface.

The search is not kept on disk: it is in the first call.
"""

import contextlib

import torch

from .peer import Peer, only_plain_convolutions

TYPES = {torch.float16: "HALF", torch.bfloat16: "BFLOAT16", torch.float32: "FLOAT"}
REPEATS = 10  # of a plan in the search


def build(problem, image, weight, bias=None, **options):
    only_plain_convolutions(problem, image, TYPES, options)
    import cudnn

    handle, searched = cudnn.create_handle(), []

    def call(input, weight, bias=None, *, out, **options):
        cudnn.set_stream(handle=handle, stream=torch.cuda.current_stream().cuda_stream)
        operands = (input, weight, out) if bias is None else (input, weight, out, bias.view(1, -1, 1, 1))
        if not searched:
            graph, nodes = _graph(cudnn, handle, problem, operands)
            searched.append((graph, nodes, *_fastest(graph, dict(zip(nodes, operands)), handle, out.device)))
        graph, nodes, index, workspace = searched[0]
        graph.execute_plan_at_index(dict(zip(nodes, operands)), workspace, index=index, handle=handle)
        return out

    return call, True


def _graph(cudnn, handle, problem, operands):
    """The graph with all of its plans, and its nodes in the order of the operands."""
    image, _, out, *bias = operands
    fp32, io = cudnn.data_type.FLOAT, getattr(cudnn.data_type, TYPES[image.dtype])
    graph = cudnn.pygraph(handle=handle, io_data_type=io, intermediate_data_type=fp32, compute_data_type=fp32)
    x, w, *b = map(graph.tensor_like, (*operands[:2], *bias))
    geometry = {name: list(getattr(problem, name)) for name in ("padding", "stride", "dilation")}
    y = graph.conv_fprop(image=x, weight=w, **geometry)
    if bias:
        y = graph.bias(name="bias", input=y, bias=b[0])
    y.set_output(True).set_dim(list(out.shape)).set_stride(list(out.stride()))
    graph.validate()
    graph.build_operation_graph()
    graph.create_execution_plans([cudnn.heur_mode.A, cudnn.heur_mode.FALLBACK])
    graph.check_support()
    graph.build_plans(cudnn.build_plan_policy.ALL)
    return graph, (x, w, y, *b)


def _fastest(graph, tensors, handle, device):
    """(index, workspace) of the fastest plan."""
    times, workspaces = {}, {}
    for index in range(graph.get_execution_plan_count()):
        with contextlib.suppress(Exception):  # not every plan that is proposed can be built
            size = graph.get_workspace_size_plan_at_index(index)
            workspace = torch.empty(size, device=device, dtype=torch.uint8)
            graph.execute_plan_at_index(tensors, workspace, index=index, handle=handle)
            begun, ended = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begun.record()
            for _ in range(REPEATS):
                graph.execute_plan_at_index(tensors, workspace, index=index, handle=handle)
            ended.record()
            ended.synchronize()
            times[index], workspaces[index] = begun.elapsed_time(ended), workspace
    if not times:
        raise RuntimeError("no plan that cuDNN proposes can be executed")
    best = min(times, key=times.get)
    return best, workspaces[best]


PEER = Peer("cudnn", "cudnn", build)
