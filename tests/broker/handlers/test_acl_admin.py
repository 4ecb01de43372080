"""Accounts over the wire, without files: what each request asks for, and how a failure is said."""

from __future__ import annotations

import json
from typing import Any

import pytest

from refmq.acl.policy import AclFile, Policy
from refmq.errors import DiskFull, UsageError
from refmq.protocol.bodies.config import DataVersion
from refmq.protocol.codes import RequestCode, ResponseCode
from refmq.protocol.headers.admin import UpdateAclConfigRequest
from tests.broker.harness import Harness


class FakeFiles:
    """Remembers what it was asked, and fails when told to."""

    plain_path = "/conf/plain_acl.yml"

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.fails: Exception | None = None
        version = DataVersion(timestamp=17, counter=3)
        self.policy = Policy({"/conf/plain_acl.yml": AclFile(version=version), "/conf/acl/b.yml": AclFile()})

    def _ask(self, *asked: Any) -> None:
        self.asked.append(asked)
        if self.fails is not None:
            raise self.fails

    async def put_account(self, given: UpdateAclConfigRequest, now_ms: int) -> None:
        self._ask(given)

    async def delete_account(self, access_key: str, now_ms: int) -> None:
        self._ask(access_key)

    async def put_white_list(self, addresses: str, path: str | None, now_ms: int) -> None:
        self._ask(addresses, path)


def world_with(files: FakeFiles) -> Harness:
    world = Harness()
    world.broker.account_files = files
    return world


ACCOUNT = {"accessKey": "account", "secretKey": "12345678", "admin": "true", "topicPerms": "a=PUB,b=SUB"}
REQUESTS = [
    (RequestCode.UPDATE_AND_CREATE_ACL_CONFIG, ACCOUNT, ResponseCode.UPDATE_AND_CREATE_ACL_CONFIG_FAILED),
    (RequestCode.DELETE_ACL_CONFIG, {"accessKey": "account"}, ResponseCode.DELETE_ACL_CONFIG_FAILED),
    (
        RequestCode.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG,
        {"globalWhiteAddrs": "10.1.2.3", "aclFileFullPath": "/conf/acl/b.yml"},
        ResponseCode.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG_FAILED,
    ),
]


def test_each_request_asks_for_its_change() -> None:
    files = FakeFiles()
    world = world_with(files)
    assert [world.ask(code, fields=fields).code for code, fields, _ in REQUESTS] == [0, 0, 0]
    put = UpdateAclConfigRequest(access_key="account", secret_key="12345678", admin=True, topic_perms="a=PUB,b=SUB")
    assert files.asked == [(put,), ("account",), ("10.1.2.3", "/conf/acl/b.yml")]


@pytest.mark.parametrize(("code", "fields", "refusal"), REQUESTS)
@pytest.mark.parametrize("error", [UsageError("it is wrong"), DiskFull("plain_acl.yml", "write", "no space")])
def test_a_change_that_was_not_made_is_never_a_success(
    code: RequestCode, fields: dict[str, str], refusal: ResponseCode, error: Exception
) -> None:
    files = FakeFiles()
    files.fails = error
    answer = world_with(files).ask(code, fields=fields)
    assert answer.code == refusal
    assert str(error) in (answer.remark or "")
    assert "12345678" not in (answer.remark or "")


def test_the_versions_of_all_files_are_told() -> None:
    answer = world_with(FakeFiles()).ask(RequestCode.GET_BROKER_CLUSTER_ACL_INFO)
    assert json.loads(answer.fields["version"]) == {"timestamp": 17, "counter": 3}
    assert json.loads(answer.fields["allAclFileVersion"]) == {
        "/conf/plain_acl.yml": {"timestamp": 17, "counter": 3},
        "/conf/acl/b.yml": {"timestamp": 0, "counter": 0},
    }
    assert (answer.fields["brokerName"], answer.fields["clusterName"]) == ("broker-a", "DefaultCluster")


def test_without_files_every_request_says_that_it_is_off() -> None:
    world = Harness()
    for code, fields, refusal in (*REQUESTS, (RequestCode.GET_BROKER_CLUSTER_ACL_INFO, {}, 1)):
        answer = world.ask(code, fields=fields)
        assert (answer.code, answer.remark) == (refusal, "access control is off: aclEnable=false")
