"""Without matplotlib, a picture tells whether its file is current, from its data and the function that draws them."""

import pytest

from perf.render.picture import Picture


def line(figure, numbers):
    figure.add_subplot().plot(numbers)


def points(figure, numbers):
    figure.add_subplot().plot(numbers, "o")


def test_it_is_stale_where_the_data_or_the_function_differ(tmp_path):
    pytest.importorskip("matplotlib")
    picture, path = Picture(line, {"numbers": [1, 2]}), tmp_path / "picture.svg"
    assert picture.stale(path)
    path.write_text(picture.svg())
    assert not picture.stale(path)
    assert Picture(line, {"numbers": [1, 3]}).stale(path)
    assert Picture(points, {"numbers": [1, 2]}).stale(path)


def test_the_same_picture_is_the_same_file_and_names_no_version():
    matplotlib = pytest.importorskip("matplotlib")
    picture = Picture(line, {"numbers": [1, 2]})
    assert picture.svg() == picture.svg()
    assert matplotlib.__version__ not in picture.svg()
