"""The header classes of the published jars, as tests/golden/headers lists them."""

from __future__ import annotations

from pathlib import Path

GOLDEN = Path(__file__).parent.parent / "golden" / "headers"

# Our name for a class where it is not upstream's without "Header".
OUR_NAMES = {
    "ConsumeMessageDirectlyResultRequest": "ConsumeMessageDirectlyRequest",
    "CreateAccessConfigRequest": "UpdateAclConfigRequest",
    "DeleteAccessConfigRequest": "DeleteAclConfigRequest",
    "DeleteKVConfigRequest": "DeleteKvConfigRequest",
    "DeleteTopicFromNamesrvRequest": "DeleteTopicInNamesrvRequest",
    "GetBrokerAclConfigResponse": "GetBrokerClusterAclInfoResponse",
    "GetConsumeStatsInBroker": "GetBrokerConsumeStatsRequest",
    "GetKVConfigRequest": "GetKvConfigRequest",
    "GetKVConfigResponse": "GetKvConfigResponse",
    "GetKVListByNamespaceRequest": "GetKvListByNamespaceRequest",
    "PutKVConfigRequest": "PutKvConfigRequest",
    "QueryCorrectionOffset": "QueryCorrectionOffsetRequest",
    "UnRegisterBrokerRequest": "UnregisterBrokerRequest",
    "UpdateGlobalWhiteAddrsConfigRequest": "UpdateGlobalWhiteAddrsRequest",
}


def upstream_headers(*versions: str) -> dict[str, dict[str, tuple[str, bool]]]:
    """Our class name -> wire name -> type and whether it is mandatory, over ``versions``."""
    found: dict[str, dict[str, tuple[str, bool]]] = {}
    for version in versions:
        for line in (GOLDEN / f"{version}.txt").read_text().splitlines():
            name, *fields = line.split()
            plain = name.removesuffix("V2").removesuffix("Header")
            known = found.setdefault(name if name.endswith("V2") else OUR_NAMES.get(plain, plain), {})
            for field in fields:
                wire_name, kind = field.split(":")
                known[wire_name] = (kind.rstrip("*"), kind.endswith("*"))
    return found
