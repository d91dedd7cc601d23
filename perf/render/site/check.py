"""What is wrong with a built site: links that lead nowhere, and what a browser would load from elsewhere."""

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = ("src", "srcset", "href", "data", "poster", "action")  # of any element; href of <a> only leads there
ELSEWHERE = re.compile(r"""(?:url\(\s*|@import\s+)['"]?(?:https?:)?//""")  # in a style sheet


class Page(HTMLParser):
    """A page's anchors, its references as (element, address), and the text of its style sheets."""

    def __init__(self, text):
        super().__init__()
        self.anchors, self.references, self.styles, self._in_style = set(), [], "", False
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self._in_style = tag == "style"
        self.anchors |= {attributes[name] for name in ("id", "name") if attributes.get(name)}
        self.references += [(tag, attributes[name]) for name in LOADED if attributes.get(name)]
        self.styles += attributes.get("style") or ""

    def handle_data(self, data):
        if self._in_style:
            self.styles += data


def problems(site):
    """A sentence for each."""
    site = Path(site).resolve()
    pages = {path: Page(path.read_text()) for path in sorted(site.rglob("*.html"))}
    for path, page in pages.items():
        for tag, address in page.references:
            problem = _problem(path, tag, address, pages, site)
            if problem:
                yield f"{path.relative_to(site)}: <{tag}> {address} {problem}"
        if ELSEWHERE.search(page.styles):
            yield f"{path.relative_to(site)}: a style loads from elsewhere"
    for path in sorted(site.rglob("*.css")):
        if ELSEWHERE.search(path.read_text()):
            yield f"{path.relative_to(site)}: loads from elsewhere"


def _problem(path, tag, address, pages, site):
    parts = urlsplit(address)
    if parts.scheme in ("data", "mailto", "javascript", "blob"):
        return None
    if parts.scheme or parts.netloc:
        return None if tag == "a" else "is loaded from elsewhere"
    folder = site if parts.path.startswith("/") else path.parent  # the page that a server shows for all missing ones
    target = (folder / unquote(parts.path).lstrip("/")).resolve() if parts.path else path
    if not target.is_relative_to(site) or not target.is_file():
        return "does not exist"
    anchor = "" if "=" in parts.fragment else unquote(parts.fragment)  # with "=" it is what the report's filters are set to
    if anchor and target in pages and anchor not in pages[target].anchors:
        return "has no such anchor"
    return None
