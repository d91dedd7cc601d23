"""A design's file as HTML, with the files that it imports or includes folded into the lines that name them."""

from dataclasses import dataclass
from pathlib import Path

from ... import ROOT
from ...measure import kernels
from . import highlight


@dataclass(frozen=True)
class Pane:
    """A design's file and all that it reaches, each of these folded in where the fewest steps lead to it."""

    anchor: str
    root: Path
    others: dict[Path, str]  # {file: its anchor} of the page's other Panes, which are not folded into this one

    @property
    def name(self):
        return str(self.root.relative_to(ROOT))

    def html(self):
        return self._of(self.root, self._places())

    def _places(self):
        """{file: (the file, the place in its text) where it is folded in}, breadth first."""
        places, files = {}, [self.root]
        for file in files:
            for place, used in kernels.uses(file):
                if used not in (*places, *self.others, self.root):
                    places[used] = file, place
                    files.append(used)
        return places

    def _of(self, file, places):
        text, lines, html, shown = file.read_text(), highlight.source(file), [], 0
        folds = {}
        for (start, end), used in kernels.uses(file):
            folds.setdefault((start, end), []).append(used)
        for place, files in folds.items():
            first, last = (text.count("\n", 0, at) for at in place)
            content = "".join(self._folded(used, places, (file, place)) for used in files)
            statement = "".join(lines[first : last + 1])
            html += [*lines[shown:first], f"<details><summary>{statement}</summary>{content}</details>"]
            shown = last + 1
        return "".join([*html, *lines[shown:]])

    def _folded(self, used, places, here):
        """The file where it is folded in, elsewhere a link to it."""
        name = used.relative_to(ROOT)
        if used in places and places[used] == here:
            return f'<div class="part" id="{self._id(used)}"><b>{name}</b>{self._of(used, places)}</div>'
        anchor = self.others.get(used) or (self.anchor if used == self.root else self._id(used))
        return f'<div class="part">see <a href="#{anchor}">{name}</a></div>'

    def _id(self, file):
        return f"{self.anchor}/{file.relative_to(ROOT)}"


def panes(twin):
    """{anchor: Pane} of the twin's files."""
    own = twin.files
    return {anchor: Pane(anchor, file, {own[x]: x for x in own if x != anchor}) for anchor, file in own.items()}
