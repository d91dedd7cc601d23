"""The pages of the site: a folder of Markdown that mirrors the repository, with a page for each file that the docs link to.

So a link leads to the same place here and on GitHub, be it to a chapter, a source file, a folder or a notebook. A link to a
design's file leads to the page that has it next to its twin.
"""

import json
import os
import re

from ... import ROOT
from ..twins.pages import of_source

CODE = re.compile(r"(```.*?```|`[^`\n]*`)", re.DOTALL)
FIGURE = re.compile(r"(?<=\d) (/|of|for) (?=\d)")  # such as 0.59 / 0.48, which stays on one line
LINK = re.compile(r"\]\(\s*(?!\w+:)([^)\s#]+)")  # its file, if it names one
COPIED = (".svg", ".png", ".json")
LANGUAGES = {".py": "python", ".cuh": "cuda", ".cpp": "cpp", ".h": "cpp"}
SOURCE = "---\nsearch:\n  exclude: true\nhide: [navigation, toc]\n---\n\n"


def write(folder, generated, root=ROOT):
    """Writes a page for the README, the changelog, each file of docs, and each file and folder that these lead to.

    generated  {path: Markdown} of pages that no file has
    """
    waiting = [root / "README.md", root / "CHANGELOG.md", *sorted((root / "docs").rglob("*.md")), *generated]
    written = set()
    while waiting:
        path = waiting.pop()
        if path in written:
            continue
        written.add(path)
        page = folder / address(path, root)
        page.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix in COPIED:
            page.write_bytes(path.read_bytes())
        elif path.suffix not in (".md", ".ipynb") and path.is_file():
            page.write_text(source(path, root))
        else:
            text, linked = relinked(generated.get(path) or markdown(path, root), path, root)
            page.write_text(text)
            waiting += linked


def address(path, root=ROOT):
    """Where in the folder a file or folder of the repository has its page."""
    own = path.relative_to(root)
    if path.is_dir():
        return own / "index.md"
    if path.name == "README.md":
        return own.with_name("index.md")
    return own if path.suffix in (*COPIED, ".md") else own.with_name(f"{own.name}.md")


def relinked(text, path, root=ROOT):
    """The text of the page of `path` with its links led to pages and its figures kept together, and the files and folders
    that the links are to."""
    linked, here = [], path if path.is_dir() else path.parent

    def lead(match):
        other = (here / match[1]).resolve()
        twin = of_source(other.relative_to(root))
        if twin:
            return "](" + os.path.relpath(f"twins/{twin}", address(path, root).parent)
        linked.append(other / "README.md" if (other / "README.md").exists() else other)
        return "](" + os.path.relpath(address(linked[-1], root), address(path, root).parent)

    pieces = CODE.split(text)
    pieces[::2] = [FIGURE.sub("\u00a0\\1\u00a0", LINK.sub(lead, piece)) for piece in pieces[::2]]
    return "".join(pieces), linked


def markdown(path, root=ROOT):
    """The Markdown of a page, a notebook without outputs, or a folder, which lists its files."""
    if path.is_dir():
        files = sorted(child.name for child in path.iterdir() if child.is_file())
        return f"{SOURCE}# {path.relative_to(root)}\n\n" + "".join(f"- [{name}]({name})\n" for name in files)
    if path.suffix == ".md":
        return path.read_text()
    fence = {"markdown": "{}", "code": "```python\n{}\n```"}
    cells = json.loads(path.read_text())["cells"]
    return "\n\n".join(fence[cell["cell_type"]].format("".join(cell["source"])) for cell in cells)


def source(path, root=ROOT):
    """The page of a file of code."""
    language, text = LANGUAGES.get(path.suffix, "text"), path.read_text().rstrip()
    return f"{SOURCE}# {path.relative_to(root)}\n\n~~~~{language}\n{text}\n~~~~\n"
