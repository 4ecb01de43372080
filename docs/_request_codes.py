"""Writes docs/reference/request-codes.md from the registry of request codes and from what the roles dispatch.

    python docs/_request_codes.py            # print the page
    python docs/_request_codes.py --write    # replace the page

A test compares the page with what this prints, so a role that learns a request makes the page's next version.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Collection, Mapping
from importlib import import_module
from pathlib import Path

from refmq.protocol.registry import ROWS, Role, Row, Status, status

PAGE = Path(__file__).parent / "reference" / "request-codes.md"
PACKAGES = {
    Role.NAMESERVER: "refmq.nameserver",
    Role.BROKER: "refmq.broker",
    Role.CLIENT: "refmq.client",
}
COLUMNS = (
    "code",
    "name",
    "versions",
    "served by",
    "request header",
    "request body",
    "response header",
    "response body",
    "status",
)

INTRODUCTION = """\
# Request codes

All request codes of RocketMQ 4.9.8 and 5.3.3, and what refmq does with each. This page is written by
`docs/_request_codes.py` from the registry in `refmq.protocol.registry` and from the dispatch tables of nameserver,
broker and client; a test keeps it up to date.

- **implemented**: the role that serves it upstream serves it here.
- **not supported**: answered with response code 3, `REQUEST_CODE_NOT_SUPPORTED`, by decision; the reason is given.
- **not yet**: answered with response code 3 for now.

"implemented" means that there is a handler. What a handler leaves out is on the page
[Not supported](../not-supported.md).
"""


def served() -> dict[Role, Collection[int]]:
    """What each role dispatches: the set ``SERVED`` of its package, empty as long as there is none."""
    return {role: getattr(import_module(name), "SERVED", frozenset()) for role, name in PACKAGES.items()}


def page(dispatched: Mapping[Role, Collection[int]]) -> str:
    """The whole page."""
    rows = sorted(ROWS, key=lambda row: row.code)
    counts = Counter(status(row, dispatched) for row in rows)
    lines = [INTRODUCTION, "| status | codes |", "|---|---|"]
    lines += [f"| {state.value} | {counts[state]} |" for state in Status]
    lines += [
        "",
        f"| {' | '.join(COLUMNS)} |",
        f"|{'---|' * len(COLUMNS)}",
    ]
    lines += [line(row, dispatched) for row in rows]
    return "\n".join(lines) + "\n"


def line(row: Row, dispatched: Mapping[Role, Collection[int]]) -> str:
    state = status(row, dispatched)
    reason = f": {row.declined}" if row.declined is not None else ""
    if state is Status.NOT_YET:
        some = [role.value for role in row.served_by if row.code in dispatched.get(role, ())]
        reason = f", only by the {some[0]}" if some else ""
    cells = [
        str(int(row.code)),
        f"`{row.code.name}`",
        row.versions,
        ", ".join(role.value for role in row.served_by) or "nobody",
        *(cell(part) for part in (row.header, row.body, row.response_header, row.response_body)),
        f"{state.value}{reason}",
    ]
    return f"| {' | '.join(cells)} |"


def cell(part: type | str | None) -> str:
    if part is None:
        return ""
    return part if isinstance(part, str) else f"`{part.__name__}`"


if __name__ == "__main__":
    text = page(served())
    if sys.argv[1:] == ["--write"]:
        PAGE.write_text(text)
    else:
        sys.stdout.write(text)
