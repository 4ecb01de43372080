"""Make tests/golden/wire from RocketMQ's own classes: ``python -m interop.record_codec``.

For each of our header and body classes one sample with every field set is given to the Java class, and what Java
writes is kept: headers as whole frames in both serializations, bodies as JSON. The files are kept in git, so this runs
only when there is something new to record.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

from interop.artifacts import CLIENTS
from interop.codec import JAVA_BODIES, JavaCodec, java_body, java_header
from refmq.protocol import bodies, headers
from refmq.protocol.bodies import encode_body
from refmq.protocol.command import SerializeType, request
from refmq.protocol.frame import encode
from refmq.protocol.headers import encode_header
from tests.protocol.samples import HEADERS, sample_body, sample_header

GOLDEN = Path(__file__).parent.parent / "tests" / "golden" / "wire"


def recorded_headers(version: str) -> Iterator[dict[str, str]]:
    for kind in SerializeType:
        with JavaCodec(version, kind.name) as codec:
            for name in HEADERS:
                java_name = java_header(name, version)
                if java_name is None:
                    continue
                header = sample_header(getattr(headers, name))
                frame = codec.ask("header", java_name, encode(request(7, encode_header(header))))
                yield {"header": name, "serialization": kind.name, "frame": frame.hex()}


def recorded_bodies(version: str) -> Iterator[dict[str, str]]:
    with JavaCodec(version) as codec:
        for name in sorted(JAVA_BODIES):
            java_name = java_body(name, version)
            if java_name is not None:
                written = codec.ask("body", java_name, encode_body(sample_body(getattr(bodies, name))))
                yield {"body": name, "json": written.decode()}


def main() -> int:
    GOLDEN.mkdir(parents=True, exist_ok=True)
    for version in CLIENTS:
        lines = [json.dumps(line) for line in (*recorded_headers(version), *recorded_bodies(version))]
        (GOLDEN / f"{version}.jsonl").write_text("\n".join(lines) + "\n")
        print(f"{version}: {len(lines)} lines")
    return 0


if __name__ == "__main__":
    sys.exit(main())
