"""The table of an operation's rungs: a row each, with the speeds of both packages in the named cases."""

from perf.measure import measured
from perf.render import ladder


def cells(row):
    return [cell.strip() for cell in row.strip("|").split("|")]


def test_each_rung_has_its_speed_in_both_packages():
    case = next(case for case in measured.suites(measured.RESULTS / "h200")["ladder"] if case.name == "4096x4096x4096")
    ratios = {(r.implementation, r.design): f"{r.ratio_to_torch:.2f}" for r in case.designs}
    caption, _, *lines = ladder.markdown("h200", "ladder", case.name).splitlines()
    rows = {name: speed for name, _, speed in map(cells, lines[2:])}
    assert list(rows)[:2] == ["`naive`", "`tiled`"] and list(rows)[-1] == "cuBLAS"
    assert rows["`z_order`"] == f"{ratios['triton', 'z_order']} / {ratios['cuda', 'z_order']}"
    assert "2026" in caption and "](docs/gemm.md#z_order)" in ladder.of_readme("h200", "ladder", case.name)


def test_cases_are_named_without_spaces_and_older_kernels_are_said(monkeypatch):
    monkeypatch.setattr(ladder.kernels, "is_current", lambda row: row["design"] != "split_n")
    caption, _, headings, *_ = ladder.markdown("h200", "gemv", "16384x16", "16384x16_transposed").splitlines()
    assert cells(headings)[2:] == ["16384 x 16, rotating", "16384 x 16 transposed, rotating"]
    assert caption.endswith("Kernels have changed since.")
    monkeypatch.setattr(ladder.kernels, "is_current", lambda row: True)
    assert "changed" not in ladder.markdown("h200", "gemv", "16384x16")
