"""What a nameserver process decides before it starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from refmq.errors import MissingTool, UsageError
from refmq.net import nameserver_process
from refmq.net.nameserver_process import (
    CONF_BYTES_MAX,
    NameserverOptions,
    nameserver_label,
    plan_nameserver,
    plan_tls,
    read_conf,
)
from refmq.net.tls import ServerTls

PLAIN = {f"tls.server.{name}": "" for name in ("certPath", "keyPath", "trustCertPath", "keyPassword")}


def conf(folder: Path, text: str) -> Path:
    path = folder / "namesrv.conf"
    path.write_text(text)
    return path


def test_the_command_line_has_the_last_word_and_is_what_the_settings_say(tmp_path: Path) -> None:
    path = conf(tmp_path, "listenPort=1\nbindAddress=10.0.0.1\nkvConfigPath=/k/v.json")
    plan = plan_nameserver(NameserverOptions(conf=path))
    assert (plan.port, plan.listen, plan.kv_path, plan.settings_path) == (1, "10.0.0.1", Path("/k/v.json"), path)
    plan = plan_nameserver(NameserverOptions(conf=path, port=0, listen="::1", folder=tmp_path))
    assert (plan.port, plan.listen, plan.kv_path) == (0, "::1", tmp_path / "kvConfig.json")
    shown = plan.settings
    assert (shown["listenPort"], shown["bindAddress"]) == ("0", "::1")
    assert (shown["kvConfigPath"], shown["configStorePath"]) == (str(plan.kv_path), str(path))


def test_the_default_port_is_the_one_that_everybody_knows() -> None:
    assert plan_nameserver(NameserverOptions()).port == 9876


@pytest.mark.parametrize("port", [-1, 65536])
def test_a_port_that_cannot_be_is_refused(port: int) -> None:
    with pytest.raises(UsageError, match="listenPort is a number from 0 to 65535"):
        plan_nameserver(NameserverOptions(port=port))


def test_a_file_is_read_when_it_can_be_one_of_settings(tmp_path: Path) -> None:
    assert read_conf(conf(tmp_path, "a = 1\n# b=2\n")) == {"a": "1"}
    path = tmp_path / "x"
    path.write_bytes(b"#" * CONF_BYTES_MAX)
    assert read_conf(path) == {}
    path.write_bytes(b"#" * (CONF_BYTES_MAX + 1))
    with pytest.raises(UsageError, match=f"larger than {CONF_BYTES_MAX} bytes"):
        read_conf(path)
    path.write_bytes(b"a=\xff")
    with pytest.raises(UsageError, match="not UTF-8"):
        read_conf(path)
    for missing in (tmp_path / "none", tmp_path):
        with pytest.raises(UsageError, match=f"{missing} cannot be read"):
            read_conf(missing)


def test_tls_is_as_it_is_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing_to_make_one_with(folder: Path) -> tuple[Path, Path]:
        raise MissingTool("openssl", "install it")

    monkeypatch.setattr(nameserver_process, "self_signed_certificate", nothing_to_make_one_with)
    said: list[str] = []
    assert plan_tls({**PLAIN, "tls.server.mode": "disabled"}, tmp_path, said.append) == ServerTls()
    assert said == []
    assert plan_tls({**PLAIN, "tls.server.mode": "permissive"}, tmp_path, said.append) == ServerTls()
    assert len(said) == 1 and "plain connections only" in said[0]
    with pytest.raises(MissingTool):
        plan_tls({**PLAIN, "tls.server.mode": "enforcing"}, tmp_path, said.append)
    with pytest.raises(UsageError, match="disabled, permissive or enforcing, not 'on'"):
        plan_tls({**PLAIN, "tls.server.mode": "on"}, tmp_path, said.append)
    with pytest.raises(UsageError, match="must be given together"):
        plan_tls({**PLAIN, "tls.server.mode": "permissive", "tls.server.certPath": "c"}, tmp_path, said.append)


def test_nameservers_of_one_machine_have_different_names_in_traces() -> None:
    assert nameserver_label(9876) != nameserver_label(9877)
