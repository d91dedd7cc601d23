"""The colours of charts, report and twin pages. Each has one meaning, the same on every page.

Triton is orange and CUDA is blue. Grey is what is not ours: vendor libraries, their bounds, roofs, axes and text. Behind and
ahead of the vendor are purple and green, in which nothing else is drawn. Designs and precisions take the SERIES.

Lines and dots are legible on white and on black: a picture on a page knows the system's theme, but not the page's.
"""

TRITON = "#e0752d"
CUDA = "#2f7fd6"
VENDOR = "#7d838c"  # contrast of at least 3.8 on white and on GitHub's black
TONE = VENDOR  # of text, axes and grids
SERIES = ("#8839fe", "#b03c27", "#3e625f", "#e073c2", "#4eab7a", "#8736a6")
FILLS = ("#e3daf5", "#f4cfe0", "#d6efcf", "#fbf0bf", "#e6e2d8", "#cdeeee")  # of drawings: lanes, tiles, phases; text is dark

# fills and the text on them, from far behind to far ahead, for light and for dark pages
BEHIND_TO_AHEAD = {
    "light": (
        *(("#5b2a86", "#fff"), ("#7b4ba6", "#fff"), ("#c2a5cf", "#1b1f24"), ("#e7d4e8", "#1b1f24"), ("#e3e6ea", "#1b1f24")),
        *(("#d9f0d3", "#1b1f24"), ("#a6dba0", "#1b1f24"), ("#2b8540", "#fff"), ("#0f5f2c", "#fff")),
    ),
    "dark": (
        *(("#d7b3f0", "#111"), ("#a878cf", "#111"), ("#6d4a8c", "#fff"), ("#4a3a58", "#fff"), ("#3a424b", "#fff")),
        *(("#2f4a35", "#fff"), ("#2f6b3f", "#fff"), ("#58b368", "#111"), ("#a8e5ae", "#111")),
    ),
}
# kinds of instructions in machine code: (on light, on dark)
INSTRUCTIONS = {"math": ("#a8123e", "#ff8fa8"), "shared": ("#0b6b62", "#4fc4b6"), "global": ("#5fb5ab", "#a9e8df")}


def css():
    """Styles of a page: variables for packages and instructions, and classes x0 (far behind) to x8 (far ahead)."""
    light, dark = ("\n".join(_styles(*theme)) for theme in enumerate(BEHIND_TO_AHEAD))
    return f"{light}\n@media (prefers-color-scheme: dark) {{\n{dark}\n}}\n"


def _styles(i, theme):
    colours = {"triton": TRITON, "cuda": CUDA, "vendor": VENDOR} | {kind: pair[i] for kind, pair in INSTRUCTIONS.items()}
    yield f":root {{ {' '.join(f'--{name}: {colour};' for name, colour in colours.items())} }}"
    for place, (fill, text) in enumerate(BEHIND_TO_AHEAD[theme]):
        yield f".x{place} {{ background: {fill}; color: {text}; }}"
