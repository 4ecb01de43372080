"""A judgement as one HTML page that needs nothing but itself: verdicts, witnesses and charts as inline SVG."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Final

from refmq.verify.picture import Loan, Picture
from refmq.verify.report import assumed, in_short, where
from refmq.verify.verdicts import Judgement, Status, Verdict
from refmq.verify.words import stamp

WIDTH, HEIGHT, LEFT, BOTTOM = 960, 220, 60, 24
COLOURS: Final = ("#1f77b4", "#2ca02c", "#ff7f0e", "#9467bd", "#8c564b", "#17becf", "#d62728", "#e377c2")
BADGES: Final[Mapping[Status, str]] = {
    Status.KEPT: "#2e7d32",
    Status.BROKEN: "#c62828",
    Status.UNKNOWN: "#ef6c00",
    Status.NOT_JUDGED: "#757575",
}
LOAN_ROWS_MAX: Final = 40
STYLE: Final = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 62em; padding: 0 1em; color: #222 }
h1 { font-size: 1.5em } h2 { font-size: 1.15em; margin-top: 2em; border-bottom: 1px solid #ddd }
table { border-collapse: collapse; width: 100% } td, th { text-align: left; padding: .25em .6em; vertical-align: top }
tr:nth-child(even) { background: #f7f7f7 } pre { background: #f4f4f4; padding: .6em; overflow-x: auto; font-size: 12px }
.badge { color: white; border-radius: .3em; padding: 0 .5em; white-space: nowrap; font-size: .85em }
.finding { margin: .8em 0; border-left: 4px solid #c62828; padding-left: .8em } .key { margin-right: 1.2em }
svg { width: 100%; height: auto } svg text { font: 11px system-ui, sans-serif; fill: #555 } small { color: #666 }
"""


def as_page(judgement: Judgement, picture: Picture) -> str:
    """The whole page."""
    title = f"refmq verify: {len(judgement.broken)} promises broken" if judgement.broken else "refmq verify: all well"
    body = "\n".join(_body(judgement, picture, title))
    head = f'<meta charset="utf-8"><title>{escape(title)}</title><style>{STYLE}</style>'
    return f'<!doctype html>\n<html lang="en"><head>{head}</head><body>\n{body}\n</body></html>\n'


def _body(judgement: Judgement, picture: Picture, title: str) -> Iterator[str]:
    census = judgement.census
    nodes = in_short(sorted({node for node, _, _ in census.counts}))
    yield f"<h1>{escape(title)}</h1>"
    yield (
        f"<p>{census.total:,} events from {stamp(census.first_ns)} to {stamp(census.last_ns)}, recorded by "
        f"{escape(nodes)}. Judged by {escape(judgement.engine)} in {judgement.seconds:.1f} s; "
        f"taken for granted: {escape(assumed(judgement))}.</p>"
    )
    if judgement.gaps:
        listed = "".join(f"<li>{escape(str(gap))}</li>" for gap in judgement.gaps[:50])
        yield f"<h2>What is missing</h2><p>What these may hide is not called broken.</p><ul>{listed}</ul>"
    for verdict in (*judgement.broken, *judgement.doubtful):
        yield from _violation(verdict)
    yield from _charts(picture)
    yield from _promises(judgement.verdicts)


def _badge(status: Status) -> str:
    return f'<span class="badge" style="background:{BADGES[status]}">{status}</span>'


def _violation(verdict: Verdict) -> Iterator[str]:
    yield f"<h2>{_badge(verdict.status)} {escape(verdict.invariant)}</h2>"
    yield f"<p>{escape(verdict.meaning)} <small>Found {verdict.found:,} times. {escape(verdict.reason)}</small></p>"
    for shown in verdict.shown[:20]:
        rows = escape("\n".join(shown.witness))
        at = f" <small>{escape(where(shown))}</small>" if shown.node else ""
        told = f"<pre>{rows}</pre>" if rows else ""
        yield f'<div class="finding">{escape(shown.sentence)}{at}{told}</div>'


def _promises(verdicts: Sequence[Verdict]) -> Iterator[str]:
    yield "<h2>All promises</h2><table><tr><th>Promise</th><th></th><th>Meaning</th><th>How it was judged</th></tr>"
    for verdict in verdicts:
        yield (
            f"<tr><td>{escape(verdict.invariant)}</td><td>{_badge(verdict.status)}</td>"
            f"<td>{escape(verdict.meaning)}</td><td><small>{escape(verdict.reason or verdict.how)}</small></td></tr>"
        )
    yield "</table>"


# --- charts ---------------------------------------------------------------------------------------------------------


def _charts(picture: Picture) -> Iterator[str]:
    width_s, series = picture.binned()
    if series:
        yield f"<h2>Events over time</h2><p><small>per {width_s} s</small></p>"
        yield lines_chart(series)
    if picture.latencies:
        yield "<h2>How long requests took</h2>"
        yield from _latencies(picture)
    if picture.consumed:
        yield "<h2>Groups</h2><table><tr><th>Group</th><th>Messages</th><th>Duplicates</th></tr>"
        for group, count in picture.consumed.most_common(50):
            yield f"<tr><td>{escape(group)}</td><td>{count:,}</td><td>{picture.again[group]:,}</td></tr>"
        yield "</table>"
    behind = [lag for lag in picture.lags if lag.end > lag.consumed_to]
    behind.sort(key=lambda lag: lag.consumed_to - lag.end)
    if behind:
        yield "<h2>Lag at the end</h2><table><tr><th>Group</th><th>Queue</th><th>Consumed to</th><th>Ends at</th></tr>"
        for lag in behind[:50]:
            cells = (lag.group, lag.queue, f"{lag.consumed_to:,}", f"{lag.end:,}")
            yield "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>"
        yield "</table>"
    if picture.loans:
        yield "<h2>Who was lent which queue</h2>"
        yield loans_chart(picture.loans)


def lines_chart(series: Mapping[str, Sequence[int]]) -> str:
    """Several lines over one time, with a scale."""
    top = max(max(counts) for counts in series.values())
    bins = max(len(counts) for counts in series.values())
    parts, keys = [_frame(top)], []
    for (name, counts), colour in zip(series.items(), COLOURS * 2, strict=False):
        step = (WIDTH - LEFT) / max(bins - 1, 1)
        points = " ".join(
            f"{LEFT + at * step:.1f},{(HEIGHT - BOTTOM) * (1 - count / top):.1f}" for at, count in enumerate(counts)
        )
        parts.append(f'<polyline fill="none" stroke="{colour}" stroke-width="1.5" points="{points}"/>')
        keys.append(f'<span class="key"><span style="color:{colour}">&#9632;</span> {escape(name)}</span>')
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}">{"".join(parts)}</svg><p>{"".join(keys)}</p>'


def _frame(top: int) -> str:
    return "".join(
        f'<line x1="{LEFT}" x2="{WIDTH}" y1="{y:.0f}" y2="{y:.0f}" stroke="#ddd"/>'
        f'<text x="{LEFT - 6}" y="{y + 4:.0f}" text-anchor="end">{round(top * part):,}</text>'
        for part in (0, 0.5, 1)
        for y in [max((HEIGHT - BOTTOM) * (1 - part), 8)]
    )


def _latencies(picture: Picture) -> Iterator[str]:
    for request in sorted({name for name, _ in picture.latencies}):
        counts = {exponent: count for (name, exponent), count in picture.latencies.items() if name == request}
        low, high, top = min(counts), max(counts), max(counts.values())
        bar = min((WIDTH - LEFT) / (high - low + 1), 80)
        bars = "".join(
            f'<rect x="{LEFT + (exponent - low) * bar:.1f}" width="{bar - 2:.1f}" '
            f'y="{(HEIGHT - BOTTOM) * (1 - count / top):.1f}" height="{(HEIGHT - BOTTOM) * count / top:.1f}" '
            f'fill="{COLOURS[0]}"/>'
            f'<text x="{LEFT + (exponent - low) * bar:.1f}" y="{HEIGHT - 8}">{span(exponent)}</text>'
            for exponent, count in sorted(counts.items())
        )
        yield f'<p>{escape(request)}</p><svg viewBox="0 0 {WIDTH} {HEIGHT}">{_frame(top)}{bars}</svg>'


def span(exponent: int) -> str:
    """2^exponent nanoseconds."""
    value, unit = float(1 << exponent), "ns"
    for larger in ("us", "ms", "s"):
        if value < 1000:
            break
        value, unit = value / 1000, larger
    return f"{value:.3g} {unit}"


def loans_chart(loans: Sequence[Loan]) -> str:
    """A row for each queue, a bar for each holder."""
    first, last = min(loan.at_ns for loan in loans), max(loan.at_ns for loan in loans)
    scale = (WIDTH - 3 * LEFT) / max(last - first, 1)
    queues = list(dict.fromkeys(loan.queue for loan in loans))[:LOAN_ROWS_MAX]
    members = list(dict.fromkeys(loan.member for loan in loans))
    parts = []
    for row, queue in enumerate(queues):
        y = row * 18
        parts.append(f'<text x="0" y="{y + 12}">{escape(queue)}</text>')
        own = [loan for loan in loans if loan.queue == queue]
        for loan, following in zip(own, [*own[1:], None], strict=True):
            if loan.granted:
                begin = 3 * LEFT + (loan.at_ns - first) * scale
                end = 3 * LEFT + ((following.at_ns if following else last) - first) * scale
                colour = COLOURS[members.index(loan.member) % len(COLOURS)]
                title = f"<title>{escape(loan.member)} from {stamp(loan.at_ns)}</title>"
                box = f'x="{begin:.1f}" y="{y + 2}" width="{max(end - begin, 2):.1f}" height="14"'
                parts.append(f'<rect {box} fill="{colour}">{title}</rect>')
    keys = "".join(
        f'<span class="key"><span style="color:{COLOURS[at % len(COLOURS)]}">&#9632;</span> {escape(member)}</span>'
        for at, member in enumerate(members[:20])
    )
    return f'<svg viewBox="0 0 {WIDTH} {len(queues) * 18 + 4}">{"".join(parts)}</svg><p>{keys}</p>'
