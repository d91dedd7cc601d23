"""perf models --predict: which layers a model has, their products, and what is said of them."""

import pytest
import torch

from perf.__main__ import main
from perf.measure.measured import RESULTS
from perf.measure.models import predicted, zoo
from perf.measure.models import table as rendered
from perf.measure.models.predicted import PASSES, Layer, calls, layers, rows
from perf.measure.trial import library
from tritonkernels.target import Target

H200 = Target.named("h200")
CONVOLUTIONS = torch.nn.Sequential(
    torch.nn.Conv2d(3, 64, 7, 2, 3),
    *(torch.nn.Conv2d(64, 64, 3, padding=1) for _ in "ab"),
    torch.nn.Conv2d(64, 64, 7, padding=3, groups=64),
    torch.nn.AdaptiveAvgPool2d(1),
    torch.nn.Flatten(),
    torch.nn.Linear(64, 10),
)
OPTIONS = ("stride", "padding", "dilation", "groups")


def model(**changes):
    made = {"title": "Four layers", "package": "torch", "size": "8 images", "channels_last": True} | changes
    return zoo.Model(build=lambda small: CONVOLUTIONS.to("meta"), inputs=lambda small: (torch.randn(8, 3, 32, 32),), **made)


def of(stride, padding, groups=1):
    return tuple(zip(OPTIONS, ((stride,) * 2, (padding,) * 2, (1, 1), groups)))


def test_layers_by_name_in_order():
    assert list(layers(model()).items()) == [
        ("0", Layer((8, 3, 32, 32), (64, 3, 7, 7), of(2, 3), is_first=True)),
        *((name, Layer((8, 64, 16, 16), (64, 64, 3, 3), of(1, 1))) for name in "12"),
        ("3", Layer((8, 64, 16, 16), (64, 1, 7, 7), of(1, 3, 64))),
        ("6", Layer((8, 64), (10, 64))),
    ]


@pytest.mark.parametrize("dtype", predicted.TYPES)
def test_products_of_a_layer(dtype):
    """An image has no gradient. A Linear's three are NT, NN and TN."""
    kind, precision = predicted.TYPES[dtype]
    image, conv, _, _, linear = layers(model()).values()
    assert list(calls(image, kind, precision, True)) == [PASSES[0], PASSES[2]]
    found = {name: call.problem for name, call in calls(conv, kind, precision, True).items()}
    assert [problem.op for problem in found.values()] == ["conv2d", "conv2d_input", "conv2d_weight"]
    assert all(problem.channels_last and problem.dtype == kind for problem in found.values())
    assert not calls(conv, kind, precision, False)[PASSES[0]].problem.channels_last
    found = [call.problem for call in calls(linear, kind, precision, True).values()]
    assert [(p.m, p.n, p.k) for p in found] == [(8, 10, 64), (8, 64, 10), (10, 64, 8)]
    assert [(p.a_layout, p.b_layout) for p in found] == [("row", "col"), ("row", "row"), ("col", "row")]
    assert {p.precision for p in found} == {precision or "bf16"}


def test_no_layer_is_predicted_below_the_roofline():
    found = rows(model(), "bf16", ("tritonkernels", "cuda_reference"), H200)
    assert [count for _, count, *_ in found] == [1] * 2 + [2] * 3 + [1] * 6  # two layers are alike
    for _, _, _, limit, ranked in found:
        assert all(choices[0].cost >= limit * (1 - 1e-9) > 0 for choices in ranked.values())


def test_it_is_told(monkeypatch, capsys):
    """Sums count each layer as often as it is there, and what loses most comes first."""
    monkeypatch.setattr(zoo, "MODELS", {"four": model(), "none": model(title="None", package="no_such_package")})
    predicted.report([("four", "bf16"), ("none", "bf16")], ["triton"], H200)
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines[0][:4] == ["None,", "bf16:", "not", "predicted:"]
    found = rows(zoo.MODELS["four"], "bf16", ["tritonkernels"], H200)
    own = [count * ranked["tritonkernels"][0].cost for _, count, name, _, ranked in found if name == PASSES[0]]
    (forward,) = [line for line in lines if "forward" in line and line[:2] == ["Four", "layers"] and "images" in line]
    assert forward[-1] == f"{1e6 * sum(own):.0f}"
    lost = max(found, key=lambda row: row[1] * (row[4]["tritonkernels"][0].cost - row[3]))
    first = next(line for line in lines if "tritonkernels" in line and "of" in line and line[0] == "Four")
    assert str(lost[0]).split()[0] in first and f"{1e6 * lost[3]:.1f}" in first


def test_what_took_longer_than_predicted(monkeypatch, capsys):
    """Only layers of which the training step has times; the three products of a Linear are one there."""
    monkeypatch.setattr(zoo, "MODELS", {"four": model()})
    own = {"0": {"conv forward": 1e6}, "2": {"conv weight gradient": 2e6, "bias": 9e6}, "6": {"matmul": 0.5}}
    step = {"model": "four", "dtype": "bf16", "what": "training step", "kernels": {"triton": {"layers": own}, "torch": {}}}
    found = predicted.beyond(zoo.MODELS["four"], "bf16", "triton", H200, step)
    assert [row[:2] for row in found] == [("2", "conv weight gradient"), ("0", "conv forward"), ("6", "matmul")]
    linear = calls(layers(model())["6"], torch.bfloat16, None, True).values()
    costs = [library("tritonkernels").ranking(call.problem, H200)[0].cost for call in linear]
    assert found[2][2:] == pytest.approx((0.5e-6, sum(costs)))
    others = [step | {"what": "forward"}, step | {"dtype": "fp32"}, step | {"kernels": {}}]
    predicted.report([("four", "bf16")], ["triton", "cuda"], H200, [*others, step])
    printed = capsys.readouterr().out.partition("beyond what is predicted")[2].split()
    assert printed.count("triton") == 3 and printed.count("cuda") == 0 and "2000000" in printed
    predicted.report([("four", "bf16")], ["triton"], H200, others)
    assert "beyond" not in capsys.readouterr().out


def test_the_command(monkeypatch):
    asked = []
    monkeypatch.setattr(predicted, "report", lambda *given: asked.append(given))
    monkeypatch.setattr(zoo, "MODELS", {"four": model(dtypes=("bf16", "tf32"))})
    monkeypatch.setattr("sys.argv", ["perf", "models", "--predict", "--dtype", "tf32", "--gpu", "h100"])
    assert main() in (0, None)
    ((*given, recorded),) = asked
    assert given == [[("four", "tf32")], ["triton"], Target.named("h100")]
    assert recorded == rendered.rows_of(RESULTS / "h100")
