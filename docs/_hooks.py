"""What mkdocs does besides turning pages into HTML: the navigation, and the two pages made from the sources.

A page is put into the navigation by being in one of the four folders; nothing else has to be edited.
"""

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent
SOURCES = str(DOCS.parent / "src")

SECTIONS = {
    "Tutorial": "tutorial",
    "How to": "how-to",
    "Explanation": "explanation",
    "Reference": "reference",
}


def on_config(config: Any) -> Any:
    """Fill the navigation from the folders, in the order in which a newcomer meets them."""
    if SOURCES not in sys.path:  # here and not above: mkdocs puts sys.path back after loading this file
        sys.path.insert(0, SOURCES)
    nav: list[dict[str, Any]] = [{"refmq": "index.md"}]
    for title, folder in SECTIONS.items():
        pages = sorted((DOCS / folder).rglob("*.md"), key=lambda page: (len(page.parts), page))
        nav.append({title: [str(page.relative_to(DOCS)) for page in pages]})
    nav.append({"Not supported": "not-supported.md"})
    config["nav"] = nav
    return config


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Put what the sources say where a page asks for it."""
    for marker, make in MARKERS.items():
        if marker in markdown:
            markdown = markdown.replace(marker, make())
    return markdown


def cli_reference() -> str:
    from refmq.cli._reference import as_markdown

    return as_markdown()


def error_reference() -> str:
    """A row for each exception: its name, its base, and the first sentence of its docstring."""
    from refmq import errors

    classes = [getattr(errors, name) for name in errors.__all__]
    rows = ["| Exception | Is a | When |", "| --- | --- | --- |"]
    for error in sorted(classes, key=lambda cls: [base.__name__ for base in reversed(cls.__mro__)]):
        sentence = inspect.cleandoc(error.__doc__ or "").split("\n\n")[0].replace("\n", " ").replace("``", "`")
        rows.append(f"| `{error.__name__}` | `{error.__base__.__name__}` | {sentence} |")
    return "\n".join(rows)


def nameserver_settings() -> str:
    """A row for each key of namesrv.conf."""
    from refmq.nameserver.settings import KEYS

    rows = ["| Key | Kind | Default | Meaning | Effect | Over the wire |", "| --- | --- | --- | --- | --- | --- |"]
    for key in KEYS:
        default = f"`{key.default}`" if key.default else ""
        effect, changeable = "yes" if key.has_effect else "kept", "no" if key.is_fixed else "yes"
        rows.append(f"| `{key.name}` | {key.kind.__name__} | {default} | {key.meaning} | {effect} | {changeable} |")
    return "\n".join(rows)


def vocabulary() -> str:
    """The tables of actions and promises."""
    root = str(DOCS.parent)
    if root not in sys.path:
        sys.path.insert(0, root)
    from conformance.vocabulary import as_markdown
    from refmq.verify.spark.checks import with_checks

    return with_checks(as_markdown())


def spark_checks() -> str:
    """A row for each promise: how Spark checks it."""
    from refmq.verify.spark.checks import as_markdown

    return as_markdown()


def judges() -> str:
    """What TLC and the oracles do not both notice."""
    root = str(DOCS.parent)
    if root not in sys.path:
        sys.path.insert(0, root)
    from conformance.judged.differences import as_markdown

    return as_markdown()


def trace_modules() -> str:
    """What only one of the short and the long trace modules refuses."""
    root = str(DOCS.parent)
    if root not in sys.path:
        sys.path.insert(0, root)
    from conformance.judged.differences import modules_as_markdown

    return modules_as_markdown()


MARKERS = {
    "<!-- cli-reference -->": cli_reference,
    "<!-- error-reference -->": error_reference,
    "<!-- spark-checks -->": spark_checks,
    "<!-- judges -->": judges,
    "<!-- trace-modules -->": trace_modules,
    "<!-- vocabulary -->": vocabulary,
    "<!-- nameserver-settings -->": nameserver_settings,
}
