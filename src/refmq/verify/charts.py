"""The charts of a report as inline SVG: rates over time, how long requests took, who held which queue."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from typing import Final

from refmq.verify.picture import Loan, Picture
from refmq.verify.words import stamp

WIDTH, HEIGHT, LEFT, BOTTOM = 960, 240, 70, 24
NAMES: Final = 200
"""What the names of queues need."""
COLOURS: Final = ("#1f77b4", "#2ca02c", "#ff7f0e", "#9467bd", "#8c564b", "#17becf", "#bcbd22", "#e377c2")
WRONG: Final = "#c62828"
TICKS: Final = 5
LOAN_ROWS_MAX: Final = 40
PARTS: Final = (0.5, 0.9, 0.99)


def rates_chart(picture: Picture, violations_ns: Sequence[int]) -> str:
    """Events a second of each series over one time; where something was found there is a mark below."""
    width_s, series = picture.binned()
    top = max(max(counts) for counts in series.values()) / width_s
    bins = max(len(counts) for counts in series.values())
    first_ns = picture.first_second * 1_000_000_000
    span_ns = bins * width_s * 1_000_000_000
    step = (WIDTH - LEFT) / bins
    parts, keys = [_frame(top), time_axis(first_ns, first_ns + span_ns, LEFT, HEIGHT)], []
    for (name, counts), colour in zip(series.items(), COLOURS * 2, strict=False):
        heights = [(HEIGHT - BOTTOM) * (1 - count / width_s / top) for count in counts]
        # Steps: a bin is a stretch of time, and a trace of one second has one.
        points = " ".join(
            f"{LEFT + at * step:.1f},{y:.1f} {LEFT + (at + 1) * step:.1f},{y:.1f}" for at, y in enumerate(heights)
        )
        parts.append(f'<polyline fill="none" stroke="{colour}" stroke-width="1.5" points="{points}"/>')
        keys.append(_key(colour, name))
    for at_ns in sorted(set(violations_ns)):
        x = LEFT + (at_ns - first_ns) / span_ns * (WIDTH - LEFT)
        y = HEIGHT - BOTTOM
        parts.append(f'<path d="M{x:.1f} {y} l-4 8 h8 z" fill="{WRONG}"><title>{stamp(at_ns)}</title></path>')
    keys += [_key(WRONG, "something was found here")] if violations_ns else []
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}">{"".join(parts)}</svg><p>{"".join(keys)}</p>'


def _key(colour: str, name: str) -> str:
    return f'<span class="key"><span style="color:{colour}">&#9632;</span> {escape(name)}</span>'


def _frame(top: float) -> str:
    return "".join(
        f'<line x1="{LEFT}" x2="{WIDTH}" y1="{y:.0f}" y2="{y:.0f}" stroke="#ddd"/>'
        f'<text x="{LEFT - 6}" y="{y + 4:.0f}" text-anchor="end">{_number(top * part)}</text>'
        for part in (0, 0.5, 1)
        for y in [max((HEIGHT - BOTTOM) * (1 - part), 8)]
    )


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def time_axis(first_ns: int, last_ns: int, left: int, height: int) -> str:
    """Times of day below a chart."""
    marks = []
    for tick in range(TICKS):
        part = tick / (TICKS - 1)
        at = datetime.fromtimestamp((first_ns + (last_ns - first_ns) * part) / 1e9, UTC)
        anchor = "start" if tick == 0 else "end" if tick == TICKS - 1 else "middle"
        x = left + (WIDTH - left) * part
        told = f"{at:%H:%M:%S}.{at.microsecond // 1000:03}" if last_ns - first_ns < 20_000_000_000 else f"{at:%H:%M:%S}"
        marks.append(f'<text x="{x:.0f}" y="{height - 3}" text-anchor="{anchor}">{told}</text>')
    return "".join(marks)


def latencies(picture: Picture) -> Iterator[str]:
    """A row for each kind of request: in which time how many were answered, and how they are spread."""
    head = "".join(f"<th>{part:.0%} within</th>" for part in PARTS)
    yield f"<table><tr><th>Request</th><th>Answered</th>{head}<th>All within</th><th>Spread</th></tr>"
    for request in sorted({name for name, _ in picture.latencies}):
        counts = {exponent: count for (name, exponent), count in picture.latencies.items() if name == request}
        cells = [f"{sum(counts.values()):,}", *(span(within(counts, part)) for part in (*PARTS, 1.0))]
        told = "".join(f"<td>{cell}</td>" for cell in cells)
        yield f"<tr><td>{escape(request)}</td>{told}<td>{_spread(counts)}</td></tr>"
    yield "</table>"


def within(counts: Mapping[int, int], part: float) -> int:
    """The power of two of nanoseconds in which a part of the requests was answered."""
    total, seen = sum(counts.values()), 0
    assert total > 0
    for exponent in sorted(counts):
        seen += counts[exponent]
        if seen >= part * total:
            return exponent + 1
    return max(counts) + 1


def _spread(counts: Mapping[int, int]) -> str:
    """A small histogram; each bar is twice as slow as the one before it."""
    low, high, top = min(counts), max(counts), max(counts.values())
    bars = "".join(
        f'<rect x="{(exponent - low) * 10}" width="9" y="{30 - max(28 * count / top, 1):.1f}" '
        f'height="{max(28 * count / top, 1):.1f}" fill="{COLOURS[0]}">'
        f"<title>{count:,} took {span(exponent)} to {span(exponent + 1)}</title></rect>"
        for exponent, count in sorted(counts.items())
    )
    width = (high - low + 1) * 10
    return f'<svg style="width:{width}px" viewBox="0 0 {width} 30">{bars}</svg>'


def span(exponent: int) -> str:
    """2^exponent nanoseconds."""
    value, unit = float(1 << exponent), "ns"
    for larger in ("µs", "ms", "s"):
        if value < 1000:
            break
        value, unit = value / 1000, larger
    return f"{value:.3g} {unit}"


def loans_chart(loans: Sequence[Loan], last_ns: int = 0) -> str:
    """A row for each queue, a bar for each time that a member held it; until `last_ns` where it was not given back."""
    first, last = min(loan.at_ns for loan in loans), max(last_ns, *(loan.at_ns for loan in loans))
    scale = (WIDTH - NAMES) / max(last - first, 1)
    queues = list(dict.fromkeys(loan.queue for loan in loans))[:LOAN_ROWS_MAX]
    members = list(dict.fromkeys(loan.member for loan in loans))
    height = len(queues) * 18 + BOTTOM
    parts = [time_axis(first, last, NAMES, height)]
    for row, queue in enumerate(queues):
        y = row * 18
        parts.append(f'<text x="0" y="{y + 12}">{escape(queue)}</text>')
        own = [loan for loan in loans if loan.queue == queue]
        for loan, following in zip(own, [*own[1:], None], strict=True):
            if loan.granted:
                begin = NAMES + (loan.at_ns - first) * scale
                end = NAMES + ((following.at_ns if following else last) - first) * scale
                colour = COLOURS[members.index(loan.member) % len(COLOURS)]
                title = f"<title>{escape(loan.member)} from {stamp(loan.at_ns)}</title>"
                box = f'x="{min(begin, WIDTH - 2):.1f}" y="{y + 2}" width="{max(end - begin, 2):.1f}" height="14"'
                parts.append(f'<rect {box} fill="{colour}">{title}</rect>')
    keys = "".join(_key(COLOURS[at % len(COLOURS)], member) for at, member in enumerate(members[:20]))
    return f'<svg viewBox="0 0 {WIDTH} {height}">{"".join(parts)}</svg><p>{keys}</p>'
