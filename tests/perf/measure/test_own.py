"""perf compare with one's own shapes and kernels: what is right is a row, and so is what is wrong."""

import json

import own_kernels
import pytest

from perf.__main__ import main
from perf.measure import records

SHAPES = [{"m": 65, "n": 47, "k": 131, "precision": "tf32"}]


@pytest.fixture
def compare(triton_only, tmp_path, capsys):
    """compare(names of own_kernels): (exit status, the rows of these, the output)."""
    (tmp_path / "shapes.json").write_text(json.dumps(SHAPES))
    own_kernels._kept.clear()

    def run(*names):
        own = [f"own_kernels:{name}" for name in names]
        files = "--shapes", str(tmp_path / "shapes.json"), "--json", str(tmp_path / "r.json")
        status = main(["compare", "--op", "matmul", "--design", "pipelined", *files, "--contender", *own])
        rows = records.read_json(tmp_path / "r.json")
        assert [r.implementation for r in rows] == ["triton", "torch", *["own"] * len(names)]
        return status, rows[2:], capsys.readouterr().out

    return run


def test_a_right_one_is_a_row_of_the_precision_of_the_case(compare, tmp_path):
    status, (row,), out = compare("right")
    assert status == 0 and row.ok and "3 rows, 3 ok" in out
    assert (row.design, row.precision, row.backend) == ("own_kernels:right", "tf32", "cpu")
    assert row.suite == str(tmp_path / "shapes.json") and (row.problem["m"], row.problem["k"]) == (65, 131)


@pytest.mark.parametrize(
    "name, says",
    [
        ("a_thousandth_off", "with a single product of precision tf32 in each element: the error exceeds its bound"),
        ("cached", "wrong of other values"),
        ("raises", "ValueError: no tile for this"),
        ("knows_no_precision", "TypeError: knows_no_precision() got an unexpected keyword argument 'precision'"),
        ("of_another_type", "it returned float16 (65, 47) on cpu, not float32 (65, 47) on cpu"),
        ("of_another_shape", "it returned float32 (64, 47) on cpu, not float32 (65, 47) on cpu"),
        ("nothing", "it returned a NoneType, no tensor"),
    ],
)
def test_a_wrong_one_is_a_row_that_says_how(compare, name, says):
    status, (wrong, right), out = compare(name, "right")
    assert status == 1 and not wrong.ok and right.ok
    assert says in wrong.message and f"own own_kernels:{name}: {wrong.message}" in out


@pytest.mark.parametrize(
    "arguments, says",
    [
        (["--contender", "own_kernels:right"], "argument --contender: say of which operation, by --op and one name"),
        (["--op", "gemm", "gemv", "--shapes", "x"], "argument --shapes: say of which operation, by --op and one name"),
        (["--op", "gemm", "--shapes", "no-such-file"], "argument --shapes: no-such-file: "),
        (["--op", "conv2d_bias", "--shapes", "x"], "cases can be written for gemm, gemv, conv2d, matmul"),
        (["--contender", "no_such_module:f"], "cannot import 'no_such_module': ModuleNotFoundError: "),
        (["--contender", "own_kernels"], "own_kernels has no function ''; write module:function"),
        (["--contender", "own_kernels:no_function"], "own_kernels has no function 'no_function'"),
    ],
)
@pytest.mark.usefixtures("triton_only")
def test_what_cannot_be_compared_is_refused_first(capsys, arguments, says):
    with pytest.raises(SystemExit) as stopped:
        main(["compare", *arguments])
    assert stopped.value.code == 2 and says in capsys.readouterr().err
