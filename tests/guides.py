"""The text of the documentation in its folders."""

from devstack.folders import ROOT

DOCS = ROOT / "docs"


def text_of(*folders: str) -> str:
    """Return the text of all pages of these folders of docs/, in the order of their paths."""
    return "\n".join(page.read_text() for folder in folders for page in sorted((DOCS / folder).rglob("*.md")))
