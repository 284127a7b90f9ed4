"""The site: the Markdown of the repository, with navigation, search and an API reference.

``tox -e site`` builds it in build/site, with warnings as errors. The source folder is the top of the checkout, so
that links from documents to examples and manifests lead where they lead in the repository.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import re
from collections.abc import Iterator
from pathlib import Path
from posixpath import join, normpath
from typing import Any

from pygments.lexers.special import TextLexer

project = "Quadriga"
author = "The authors of Quadriga"
release = importlib.metadata.version("quadriga")

root_doc = "docs/README"
include_patterns = [
    *("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"),
    *("docs/*.md", "docs/*/*.md", "docs/site/api/*.md"),
]
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.viewcode"]
myst_heading_anchors = 6
# Anchors in HTML are none to MyST; tests check every link and anchor, in the Markdown and in the site.
# Decisions and lifecycles are linked from their indexes, and not in the navigation.
suppress_warnings = ["myst.xref_missing", "myst.header", "toc.not_included"]
default_role = "py:obj"
# The library's own docstrings are not of this markup.
autodoc_inherit_docstrings = False
autodoc_member_order = "bysource"
autodoc_typehints = "description"

html_theme = "furo"
html_title = f"Quadriga {release}"
html_copy_source = False
# sends the top of the site to its first page
html_extra_path = ["top"]

_CONTENTS = """
```{{toctree}}
:hidden:
:caption: {caption}

{entries}
```
"""
_API = ("fsm", "core", "si", "sim")


def _sections(index: str) -> Iterator[tuple[str, list[str]]]:
    """The parts of the navigation: each section of the index with the documents that it is the first to link."""
    seen = {f"/{root_doc}"}
    for section in index.replace("# ", "", 1).split("\n## "):
        caption, _, text = section.partition("\n")
        links = re.findall(r"\]\(([^)#:]+\.md)\)", text)
        documents = [normpath(join("/docs", link)).removesuffix(".md") for link in links]
        new = [each for each in dict.fromkeys(documents) if each not in seen]
        seen.update(new)
        if new:
            yield caption, new
    yield "API", [f"/docs/site/api/{name}" for name in _API]


def _prepare(app: Any, document: str, source: list[str]) -> None:
    """A folder is no page, so its name stays and the link goes. The index gets the navigation."""
    here = Path(app.srcdir, document).parent

    def unless_folder(link: re.Match[str]) -> str:
        return link[1] if (here / link[2]).is_dir() else link[0]

    source[0] = re.sub(r"(?<!!)\[([^]\[]+)\]\(([^)#:]+)\)", unless_folder, source[0])
    if document != root_doc:
        return
    for caption, documents in _sections(source[0]):
        source[0] += _CONTENTS.format(caption=caption, entries="\n".join(documents))


def setup(app: Any) -> None:
    """Called by Sphinx."""
    app.add_lexer("mermaid", TextLexer)
    for name in _API:  # some load a name when it is used, and autodoc looks only at what is there
        package = importlib.import_module(f"quadriga.{name}")
        vars(package).update({each: getattr(package, each) for each in package.__all__})
    app.connect("source-read", _prepare)
