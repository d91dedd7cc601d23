"""Without matplotlib, a picture tells whether its file is current, from its data and the function that draws them."""

import pytest

from perf.show.picture import Picture, light


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


def test_places_are_rounded_and_equal_marks_share_their_style():
    def uses(*styles):
        marks = "".join(f'<use xlink:href="#m" x="{i}.123456" y="0.5"{style}/>\n' for i, style in enumerate(styles))
        return f'<g clip-path="url(#c)">\n{marks}</g>\n'

    red, blue = ' style="fill: #e0752d; fill-opacity: 0.6125"', ' style="fill: #2b8a78"'
    text = '<text x="1.005" transform="rotate(-0 12.3456 2.0001)">0.00125</text>\n'
    assert light(text) == '<text x="1" transform="rotate(-0 12.35 2)">0.00125</text>\n'
    first, second = (f'<use xlink:href="#m" x="{i}.12" y="0.5"/>\n' for i in range(2))
    assert light(uses(red, red)) == f'<g clip-path="url(#c)"{red}>\n{first}{second}</g>\n'
    assert light(uses(red, blue)).count("style") == 2
