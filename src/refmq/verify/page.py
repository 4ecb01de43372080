"""A judgement as one HTML page that needs nothing but itself, for somebody who runs the cluster and does not know
refmq: what is wrong, what the cluster did, what shows each violation, and what was not looked at."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from itertools import zip_longest
from typing import Final

from refmq.trace.record import Outcome
from refmq.verify.charts import latencies, loans_chart, rates_chart
from refmq.verify.picture import Picture
from refmq.verify.report import assumed, in_short, where
from refmq.verify.verdicts import Census, Judgement, Shown, Status, Verdict
from refmq.verify.words import stamp

BADGES: Final[Mapping[Status, str]] = {
    Status.KEPT: "#2e7d32",
    Status.BROKEN: "#c62828",
    Status.UNKNOWN: "#ef6c00",
    Status.NOT_JUDGED: "#757575",
}
FINDINGS_OPEN: Final = 2
"""Findings of a promise that are seen at once; the others are one click away."""
FINDINGS_MAX: Final = 20
NODES_MAX: Final = 100
STAMP_CHARACTERS: Final = len("2023-11-14T22:13:20.000000Z")
DAY_CHARACTERS: Final = len("2023-11-14T")
STYLE: Final = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 68em; padding: 0 1em; color: #222 }
h1 { font-size: 1.5em } h2 { font-size: 1.2em; margin-top: 2.2em; border-bottom: 1px solid #ddd }
h3 { font-size: 1.05em; margin: 1.8em 0 .2em } p { margin: .4em 0 }
table { border-collapse: collapse; width: 100% } td, th { text-align: left; padding: .25em .6em; vertical-align: top }
tr:nth-child(even) { background: #f7f7f7 } .number { text-align: right }
pre { background: #f4f4f4; padding: .6em; overflow-x: auto; font-size: 12px } summary { cursor: pointer; color: #555 }
.badge { color: white; border-radius: .3em; padding: 0 .5em; white-space: nowrap; font-size: .85em }
.finding { margin: .8em 0; border-left: 4px solid #c62828; padding-left: .8em } .key { margin-right: 1.2em }
.told { font-size: .92em; margin: .3em 0 } .told td { padding: .1em .6em } .told tr:last-child { font-weight: 600 }
.who { white-space: nowrap }
.at { white-space: nowrap; font-variant-numeric: tabular-nums; color: #555; font-weight: 400 }
svg { width: 100%; height: auto } svg text { font: 11px system-ui, sans-serif; fill: #555 } small { color: #666 }
"""

ROLES: Final = {
    "stored": ("AppendMessage", Outcome.STEP),
    "acknowledged": ("AckPut", Outcome.STEP),
    "handed out": ("ServeMessage", Outcome.STEP),
    "sent": ("Send", Outcome.OK),
    "refused": ("Send", Outcome.FAIL),
    "unanswered": ("Send", Outcome.UNKNOWN),
    "received": ("Pull", Outcome.CONSUMED),
}
"""Columns of the table of nodes."""


def as_page(judgement: Judgement, picture: Picture) -> str:
    """The whole page."""
    broken = len(judgement.broken)
    title = f"{broken} {'promise' if broken == 1 else 'promises'} broken" if broken else "No promise broken"
    body = "\n".join(_body(judgement, picture, title))
    head = f'<meta charset="utf-8"><title>refmq verify: {escape(title)}</title><style>{STYLE}</style>'
    return f'<!doctype html>\n<html lang="en"><head>{head}</head><body>\n{body}\n</body></html>\n'


def _body(judgement: Judgement, picture: Picture, title: str) -> Iterator[str]:
    census = judgement.census
    nodes = in_short(sorted({node for node, _, _ in census.counts}))
    yield f"<h1>{escape(title)}</h1>"
    yield (
        f"<p>What a RocketMQ cluster did was recorded, {census.total:,} steps from {stamp(census.first_ns)} to "
        f"{stamp(census.last_ns)} by {escape(nodes)}, and held against what RocketMQ promises. Taken for granted: "
        f"{escape(assumed(judgement))}. "
        f"<small>Judged by {escape(judgement.engine)} in {judgement.seconds:.1f} s.</small></p>"
    )
    yield from _in_short(judgement)
    if judgement.gaps:
        listed = "".join(f"<li>{escape(str(gap))}</li>" for gap in judgement.gaps[:50])
        yield f"<h2>What is missing</h2><p>What these may hide is not called broken.</p><ul>{listed}</ul>"
    yield from _cluster(census)
    wrong = (*judgement.broken, *judgement.doubtful)
    yield from _charts(picture, [shown.at_ns for verdict in wrong for shown in verdict.shown if shown.at_ns], census)
    if wrong:
        yield "<h2>What was found</h2>"
        yield (
            "<p>Below each finding are the steps that show it, in their order; the last one is where it shows. "
            "<small>A place is topic/queue at broker.</small></p>"
        )
    for verdict in wrong:
        yield from _violation(verdict)
    yield from _promises(judgement.verdicts)


def _badge(status: Status) -> str:
    return f'<span class="badge" style="background:{BADGES[status]}">{status}</span>'


def _in_short(judgement: Judgement) -> Iterator[str]:
    """The counts, and a line for each promise that was not kept."""
    counts = Counter(verdict.status for verdict in judgement.verdicts)
    yield "<p>" + " ".join(f"{counts[status]} {_badge(status)}" for status in Status if counts[status]) + "</p>"
    wrong = (*judgement.broken, *judgement.doubtful)
    if not wrong:
        return
    yield "<table><tr><th></th><th>Promise</th><th>What was found first</th><th>Findings</th></tr>"
    for verdict in wrong:
        first = verdict.shown[0].sentence if verdict.shown else verdict.reason
        yield (
            f'<tr><td>{_badge(verdict.status)}</td><td><a href="#{escape(verdict.invariant)}">{escape(verdict.meaning)}'
            f'</a></td><td>{escape(first)}</td><td class="number">{verdict.found:,}</td></tr>'
        )
    yield "</table>"


def _cluster(census: Census) -> Iterator[str]:
    """Who recorded, and how many messages passed."""
    nodes = sorted({node for node, _, _ in census.counts})
    columns = [name for name, key in ROLES.items() if any(census.counts.get((node, *_key(key)), 0) for node in nodes)]
    head = "".join(f'<th class="number">{name}</th>' for name in ("steps", *columns))
    yield f"<h2>Who recorded</h2><table><tr><th>Node</th>{head}</tr>"
    for node in nodes[:NODES_MAX]:
        total = sum(count for (each, _, _), count in census.counts.items() if each == node)
        counts = [total, *(census.counts.get((node, *_key(ROLES[name])), 0) for name in columns)]
        cells = "".join(f'<td class="number">{count:,}</td>' if count else "<td></td>" for count in counts)
        yield f"<tr><td>{escape(node)}</td>{cells}</tr>"
    yield "</table>"
    if len(nodes) > NODES_MAX:
        yield f"<p>... and {len(nodes) - NODES_MAX} more</p>"


def _key(key: tuple[str, Outcome]) -> tuple[str, int]:
    return key[0], int(key[1])


def _violation(verdict: Verdict) -> Iterator[str]:
    times = f"Found {verdict.found:,} times." if verdict.found > 1 else ""
    yield f'<h3 id="{escape(verdict.invariant)}">{_badge(verdict.status)} {escape(verdict.meaning)}</h3>'
    yield f"<p><small>{escape(verdict.invariant)}. {times} {escape(verdict.reason)}</small></p>"
    findings = list(map(_finding, verdict.shown[:FINDINGS_MAX]))
    yield from findings[:FINDINGS_OPEN]
    if findings[FINDINGS_OPEN:]:
        yield f"<details><summary>{len(findings) - FINDINGS_OPEN} more of them</summary>"
        yield from findings[FINDINGS_OPEN:]
        yield "</details>"


def _finding(shown: Shown) -> str:
    at = f" <small>{escape(where(shown))}</small>" if shown.node else ""
    rows = "".join(_told(raw, plain) for raw, plain in zip_longest(shown.witness, shown.plain, fillvalue="") if raw)
    raw = escape("\n".join(shown.witness))
    told = f'<table class="told">{rows}</table>' if rows else ""
    recorded = f"<details><summary><small>as recorded</small></summary><pre>{raw}</pre></details>" if raw else ""
    return f'<div class="finding">{escape(shown.sentence)}{at}{told}{recorded}</div>'


def _told(raw: str, plain: str) -> str:
    """A step: when, who, and what. What has no sentence is told as it was recorded."""
    at, rest = raw[DAY_CHARACTERS:STAMP_CHARACTERS], raw[STAMP_CHARACTERS + 1 :]
    node, _, recorded = rest.partition(" ")
    cells = (
        f'<td class="at">{escape(at)}</td>',
        f'<td class="who">{escape(node)}</td>',
        f"<td>{escape(plain or recorded)}</td>",
    )
    return f"<tr>{''.join(cells)}</tr>"


def _promises(verdicts: Sequence[Verdict]) -> Iterator[str]:
    yield "<h2>All promises</h2><table><tr><th>Promise</th><th></th><th>Meaning</th><th>How it was judged</th></tr>"
    for verdict in verdicts:
        yield (
            f"<tr><td>{escape(verdict.invariant)}</td><td>{_badge(verdict.status)}</td>"
            f"<td>{escape(verdict.meaning)}</td><td><small>{escape(verdict.reason or verdict.how)}</small></td></tr>"
        )
    yield "</table>"


def _charts(picture: Picture, violations_ns: Sequence[int], census: Census) -> Iterator[str]:
    if picture.seconds:
        yield f"<h2>Messages a second</h2><p><small>each point stands for {picture.binned()[0]} s; UTC</small></p>"
        yield rates_chart(picture, violations_ns)
    if picture.latencies:
        yield "<h2>How long requests took</h2>"
        yield from latencies(picture)
    if picture.consumed:
        yield "<h2>Consumer groups</h2><table><tr><th>Group</th><th>Messages received</th><th>More than once</th></tr>"
        for group, count in picture.consumed.most_common(50):
            yield f"<tr><td>{escape(group)}</td><td>{count:,}</td><td>{picture.again[group]:,}</td></tr>"
        yield "</table>"
    yield from _lag(picture)
    if picture.loans:
        yield "<h2>Who had the lock of which queue</h2>"
        yield loans_chart(picture.loans, census.last_ns)


def _lag(picture: Picture) -> Iterator[str]:
    """Queues that a group had not read to their end."""
    behind = [lag for lag in picture.lags if lag.end > lag.consumed_to]
    behind.sort(key=lambda lag: lag.consumed_to - lag.end)
    if not behind:
        return
    yield "<h2>Lag at the end</h2>"
    yield "<table><tr><th>Group</th><th>Queue</th><th>Behind by</th><th>Consumed to</th><th>Ends at</th></tr>"
    for lag in behind[:50]:
        cells = (lag.group, lag.queue, *(f"{n:,}" for n in (lag.end - lag.consumed_to, lag.consumed_to, lag.end)))
        yield "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>"
    yield "</table>"
