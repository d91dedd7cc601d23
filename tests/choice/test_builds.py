"""What builders get of a call."""

import pytest
import torch

from tritonkernels.choice import builds


@pytest.mark.parametrize("first, rest", [(0, 3), (1, 0), (3, 5), (8, 0)])
def test_an_outline_has_all_that_launches_depend_on(first, rest):
    memory = torch.empty(200, dtype=torch.float16)
    whole = memory[-memory.data_ptr() % 16 // 2 :][: first + 60 + rest].clone()
    whole = memory.set_(whole.untyped_storage(), 0, (first + 60 + rest,))
    tensor = whole[first:].as_strided((5, 6), (10, 1), first)
    copy = builds.outlined(builds.outline(tensor))
    assert copy.is_meta and (copy.shape, copy.stride(), copy.dtype) == (tensor.shape, tensor.stride(), tensor.dtype)
    assert copy.data_ptr() % 16 == tensor.data_ptr() % 16

    def room(t):
        return t.untyped_storage().nbytes() - t.storage_offset() * t.element_size()

    assert room(copy) == room(tensor) and builds.outlined(builds.outline(None)) is None
