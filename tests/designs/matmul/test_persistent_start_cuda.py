"""What the CUDA design persistent does around its products, in machine code: ptxas adds to it what the source does not say."""

import pytest
import torch

from tests import nvcc
from tests.designs.matmul.test_persistent_cuda import SMALL, SMALL_FOUR, WIDE, code_of, launches
from tests.harness import thorough


@pytest.fixture(scope="module", params=[SMALL, SMALL_FOUR, pytest.param(WIDE, marks=thorough)], ids=str)
def texts(request):
    """The instructions, without predicates."""
    a = torch.empty(4096, 4096, dtype=torch.float16, device="meta")
    (launch,) = launches(a, a.t(), request.param)
    return [text for _, text in code_of(launch).instructions]


@nvcc.needed
def test_a_request_is_no_loop_over_lanes(texts):
    """As it is where ptxas does not know that one lane asks: a slice then takes the producer twice as long."""
    requests = [i for i, text in enumerate(texts) if text.startswith("UTMALDG")]
    assert len(requests) == 2
    assert not any("U.ANY" in text for i in requests for text in texts[i : i + 4])


@nvcc.needed
def test_no_division_stands_between_the_last_product_and_the_result(texts):
    """A tile's place is found while its first slices are on their way."""
    last = max(i for i, text in enumerate(texts) if text.startswith("HGMMA"))
    stored = next(i for i, text in enumerate(texts) if i > last and text.startswith("UTMASTG"))
    assert any(text.startswith("MUFU.RCP") for text in texts[:last])
    assert not any(text.startswith("MUFU.RCP") for text in texts[last:stored])
