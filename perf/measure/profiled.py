"""The names of the GPU kernels of a call, as the profiler sees them: cuBLAS's and cuDNN's say tile, cluster and algorithm."""

import torch
from torch.autograd import DeviceType

NO_WORK = ("Context Sync",)


def kernels(call):
    """The kernels of a call in the order of their starts, copies and fills included."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        call()
        torch.cuda.synchronize()
    events = [event for event in profile.events() if event.device_type == DeviceType.CUDA and event.name not in NO_WORK]
    return [event.name for event in sorted(events, key=lambda event: event.time_range.start)]
