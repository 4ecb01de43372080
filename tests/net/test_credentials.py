from __future__ import annotations

from pathlib import Path

import pytest

from refmq.errors import UsageError
from refmq.net.credentials import credentials_of_environment, credentials_of_file, credentials_of_server
from refmq.protocol.acl import Credentials


def test_the_environment_has_both_or_none() -> None:
    both = {"ROCKETMQ_ACCESS_KEY": "key", "ROCKETMQ_SECRET_KEY": "secret"}
    assert credentials_of_environment({}) is None
    assert credentials_of_environment(both) == Credentials("key", "secret")
    assert credentials_of_environment({**both, "ROCKETMQ_SECURITY_TOKEN": "t"}) == Credentials("key", "secret", "t")
    for one in both:
        with pytest.raises(UsageError, match="set together"):
            credentials_of_environment({one: both[one]})


def test_tools_yml_comes_before_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROCKETMQ_ACCESS_KEY", "key")
    monkeypatch.setenv("ROCKETMQ_SECRET_KEY", "secret")
    assert credentials_of_server(tmp_path) == Credentials("key", "secret")
    (tmp_path / "tools.yml").write_text("accessKey: rocketmq2\nsecretKey: 12345678\n")
    assert credentials_of_server(tmp_path) == Credentials("rocketmq2", "12345678")


@pytest.mark.parametrize("text", ["accessKey: a\n", "", "[", "accessKey: [a]\nsecretKey: b\n"])
def test_half_an_account_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "tools.yml").write_text(text)
    with pytest.raises(UsageError, match=r"tools\.yml|accessKey"):
        credentials_of_file(tmp_path / "tools.yml")
