"""The YAML text of an ACL file, as a mapping and back.

Every scalar is read as the text it is written as: a secret of digits stays those digits. Aliases, tags and keys that
stand there twice are refused, because what they would mean is more than anybody sees who reads the file. PyYAML is
the extra `acl`; it is imported when the first file is read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from refmq.errors import MissingTool, UsageError

FILE_BYTES_MAX: Final = 1 << 20
"""The longest ACL file."""

DEPTH_MAX: Final = 8
"""How deep lists and mappings may stand in each other. An ACL file has four levels."""

_NUMBER: Final = re.compile(r"-?[0-9]{1,19}")


def read_document(data: bytes, name: str) -> dict[str, Any]:
    """The mapping that a file holds; an empty one for an empty file. `UsageError` names the file and the mistake."""
    if len(data) > FILE_BYTES_MAX:
        raise UsageError(f"{name} has {len(data)} bytes; an ACL file has at most {FILE_BYTES_MAX}")
    yaml = _yaml()
    loader_class: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
    try:
        loader = loader_class(data.decode("utf-8"))
        try:
            node = loader.get_single_node() if _is_plain(yaml, data) else None
        finally:
            loader.dispose()
        found = None if node is None else _value(yaml, node, name)
    except UnicodeDecodeError:
        raise UsageError(f"{name} is not UTF-8 text") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = "" if mark is None else f" in line {mark.line + 1}"
        raise UsageError(
            f"{name} is not YAML{where}: {getattr(error, 'problem', None) or 'it cannot be read'}"
        ) from None
    if found is None or found == "":
        return {}
    if not isinstance(found, dict):
        raise UsageError(f"{name} should hold a mapping with accounts and globalWhiteRemoteAddresses")
    return found


def write_document(document: Mapping[str, Any]) -> bytes:
    """The text of a file. Comments are gone, as upstream loses them."""
    yaml = _yaml()
    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    text: str = yaml.dump(
        dict(document), Dumper=dumper, default_flow_style=False, sort_keys=False, allow_unicode=True, width=1 << 20
    )
    return text.encode()


def _yaml() -> Any:
    try:
        import yaml
    except ImportError:
        raise MissingTool("PyYAML", "Access control needs the extra: pip install 'refmq[acl]'.") from None
    return yaml


def _is_plain(yaml: Any, data: bytes) -> bool:
    """Looks at the events first, so that no nesting is built that is too deep, and no alias followed."""
    depth = 0
    loader_class: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
    for event in yaml.parse(data.decode("utf-8"), Loader=loader_class):
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None) is not None:
            raise yaml.MarkedYAMLError(problem="aliases and anchors are not allowed", problem_mark=event.start_mark)
        if getattr(event, "tag", None) is not None:
            raise yaml.MarkedYAMLError(problem="tags are not allowed", problem_mark=event.start_mark)
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > DEPTH_MAX:
                raise yaml.MarkedYAMLError(problem="it is nested too deep", problem_mark=event.start_mark)
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
    return True


def _value(yaml: Any, node: Any, name: str) -> Any:
    if isinstance(node, yaml.ScalarNode):
        return node.value
    if isinstance(node, yaml.SequenceNode):
        return [_value(yaml, each, name) for each in node.value]
    values: dict[str, Any] = {}
    for key, value in node.value:
        if not isinstance(key, yaml.ScalarNode) or key.value in values:
            line = key.start_mark.line + 1
            raise UsageError(f"{name} has a key twice, or one that is no text, in line {line}")
        values[key.value] = _value(yaml, value, name)
    return values


def number_of(value: object) -> int:
    """A number that was written as text, or 0."""
    return int(value) if isinstance(value, str) and _NUMBER.fullmatch(value) else value if isinstance(value, int) else 0
