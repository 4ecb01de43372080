"""The keys of namesrv.conf."""

from __future__ import annotations

import pytest

from refmq.errors import UsageError
from refmq.nameserver.settings import KEYS, black_list, checked_value, default_settings, nearest_key, read_settings


def test_every_default_fits_its_kind() -> None:
    for key in KEYS:
        assert checked_value(key, key.default) == key.default
    assert set(default_settings()) == {key.name for key in KEYS}


def test_unknown_keys_are_reported_with_the_nearest_known_one() -> None:
    settings, complaints = read_settings({"listenport": "1", "listenPort": "2", "zzz": "3"})
    assert settings["listenPort"] == "2"
    assert complaints == ["unknown key 'listenport' (did you mean 'listenPort'?)", "unknown key 'zzz'"]
    assert nearest_key("kvConfigpath") == "kvConfigPath"


def test_a_value_of_the_wrong_kind_is_refused() -> None:
    with pytest.raises(UsageError, match="listenPort"):
        read_settings({"listenPort": "-1"})


def test_the_black_list_is_upstreams_and_what_it_names() -> None:
    listed = black_list({"configBlackList": "orderMessageEnable; listenPort"})
    assert {"configBlackList", "configStorePath", "kvConfigPath", "rocketmqHome"} < listed
    assert {"orderMessageEnable", "listenPort"} < listed
    assert "" not in listed
