"""Sphinx's configuration for `make docs`, which builds docs/ once for staff and once for customers.

The customers' site (`sphinx-build -t customers`) has the pages that are for them.
"""

import hashlib
import re
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
# The folders of docs/ in the order of the navigation, with their titles.
FOLDERS = {
    "get-started": "Get started",
    "customers": "For customers",
    "integrate": "Integrate",
    "operate": "Operate",
    "routers": "Routers",
    "reference": "Reference",
    "develop": "Develop",
    "measurements": "Measurements",
    "adr": "Decisions",
}
FOR_CUSTOMERS = (
    "customers/**",
    "integrate/api.md",
    "integrate/webhooks.md",
    "reference/errors.md",
    "reference/glossary.md",
)

# A link that is relative; addresses have a colon.
_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)#:\s]+)(?:#[^)\s]*)?\)")
# Inline styles of the theme's drawings, and the attributes of SVG that say the same.
_SVG_STYLES = {'style="display: none;"': 'display="none"', 'style="opacity: 50%"': 'opacity="0.5"'}
_INLINE = re.compile(r"<(script|style)>(.*?)</\1>", re.DOTALL)

for_customers = tags.has("customers")  # type: ignore[name-defined] # noqa: F821 - Sphinx defines it

project = "Longline"
author = "The Longline authors"
copyright = author
release = version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
extensions = ["myst_parser"]
root_doc = "customers/README" if for_customers else "README"
# Anchors of headings as GitHub makes them.
myst_heading_anchors = 4
html_theme = "furo"
templates_path = ["templates"]
html_sidebars = {
    "**": [
        "sidebar/brand.html",
        "sidebar/search.html",
        "sidebar/scroll-start.html",
        "sidebar/navigation.html",
        "sidebar/portal.html",
        "sidebar/scroll-end.html",
    ]
}
html_title = f"Longline {release}"
html_copy_source = html_show_sourcelink = False
html_show_sphinx = False
exclude_patterns = ["screens"]
if for_customers:
    include_patterns = list(FOR_CUSTOMERS)


def _navigation(app: Any, name: str, source: list[str]) -> None:
    """Append the navigation to the first page: each folder's pages, its README first."""
    if name != root_doc:
        return
    docs = ROOT / "docs"
    for folder, title in FOLDERS.items():
        pages = sorted((docs / folder).glob("*.md"), key=lambda page: (page.stem != "README", page.stem))
        names = [f"{folder}/{page.stem}" for page in pages]
        names = [f"/{each}" for each in names if each in app.project.docnames and each != root_doc]
        if names:
            source[0] += "\n".join(["\n\n```{toctree}", ":hidden:", f":caption: {title}", *names, "```\n"])


def _absent_pages(app: Any, name: str, source: list[str]) -> None:
    """Turn links to files that this site does not have into text: files outside docs/, pages for staff."""
    docs = ROOT / "docs"
    folder = (docs / name).parent

    def link_or_text(link: re.Match[str]) -> str:
        target = (folder / link[2]).resolve()
        if not target.is_relative_to(docs):
            return f"{link[1]} (`{target.relative_to(ROOT)}`)"
        is_page = target.suffix == ".md"
        if is_page and str(target.relative_to(docs).with_suffix("")) not in app.project.docnames:
            return link[1]
        return link[0]

    source[0] = _LINK.sub(link_or_text, source[0])


def _without_inline_code(app: Any, exception: Exception | None) -> None:
    """Move inline scripts and styles to files: the portal's Content-Security-Policy refuses them inline."""
    if exception is not None or app.builder.format != "html":
        return
    out = Path(app.outdir)

    for page in out.rglob("*.html"):
        root = "../" * (len(page.relative_to(out).parts) - 1)

        def in_file(block: re.Match[str], root: str = root) -> str:
            kind = "js" if block[1] == "script" else "css"
            name = f"_static/inline-{hashlib.sha256(block[2].encode()).hexdigest()[:12]}.{kind}"
            (out / name).write_text(block[2])
            if kind == "js":
                return f'<script src="{root}{name}"></script>'
            return f'<link rel="stylesheet" href="{root}{name}">'

        text = _INLINE.sub(in_file, page.read_text())
        for styled, plain in _SVG_STYLES.items():
            text = text.replace(styled, plain)
        page.write_text(text)


def _first_page(app: Any, exception: Exception | None) -> None:
    """Lead from the site's root to its first page."""
    if exception is None and app.builder.format == "html":
        refresh = f'<meta http-equiv="refresh" content="0; url={root_doc}/">'
        (Path(app.outdir) / "index.html").write_text(f"<!doctype html><title>{html_title}</title>{refresh}")


def setup(app: Any) -> None:
    app.connect("source-read", _navigation)
    app.connect("source-read", _absent_pages)
    app.connect("build-finished", _without_inline_code)
    app.connect("build-finished", _first_page)
