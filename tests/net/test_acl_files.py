from __future__ import annotations

import asyncio
import logging
import os
import stat
from pathlib import Path

import pytest

from refmq.acl.policy import Policy
from refmq.errors import DiskError, RefmqError, UsageError
from refmq.net import acl_files
from refmq.net.acl_files import AclFiles
from refmq.protocol.headers.admin import UpdateAclConfigRequest
from tests.acl.files import TEXT
from tests.net.support import run


def account(access_key: str) -> str:
    return f"accounts:\n- accessKey: {access_key}\n  secretKey: 12345678\n"


def loaded(folder: Path, text: str = TEXT) -> AclFiles:
    (folder / "plain_acl.yml").write_text(text)
    files = AclFiles(folder)
    files.load()
    return files


def write(path: Path, text: str) -> None:
    """Also when the clock of the file system is too coarse to see it."""
    path.write_text(text)
    status = path.stat()
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + 1_000_000_000))


def keys(files: AclFiles) -> set[str]:
    return set(files.policy.accounts)


async def looked(files: AclFiles) -> set[str]:
    await files.look_again()
    return keys(files)


def test_all_files_are_read_in_their_order(tmp_path: Path) -> None:
    (tmp_path / "acl" / "deep").mkdir(parents=True)
    (tmp_path / "acl" / "b.yml").write_text(account("account-b"))
    (tmp_path / "acl" / "deep" / "c.yaml").write_text(account("account-c"))
    (tmp_path / "acl" / "notes.txt").write_text("not one of them")
    (tmp_path / "tools.yml").write_text("accessKey: tools-key\nsecretKey: 12345678\n")
    files = loaded(tmp_path, account("account-a"))
    assert list(files.policy.files) == [
        str(tmp_path / "plain_acl.yml"), str(tmp_path / "acl" / "b.yml"), str(tmp_path / "acl" / "deep" / "c.yaml"),
    ]  # fmt: skip
    assert keys(files) == {"account-a", "account-b", "account-c"}


@pytest.mark.parametrize("text", ["accounts: [", "accounts:\n- accessKey: short\n", "a: &b 1"])
def test_a_mistake_stops_a_start_in_one_line(tmp_path: Path, text: str) -> None:
    with pytest.raises(UsageError, match=r"plain_acl\.yml") as refused:
        loaded(tmp_path, text)
    assert "\n" not in str(refused.value)


def test_a_file_that_may_not_be_read_stops_a_start(tmp_path: Path) -> None:
    (tmp_path / "plain_acl.yml").mkdir()
    with pytest.raises(UsageError, match="cannot be read"):
        AclFiles(tmp_path).load()


def test_without_a_file_nobody_is_let_in_and_none_is_made(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    files = AclFiles(tmp_path)
    assert files.load() == Policy()
    assert "everybody is refused" in caplog.text
    assert list(tmp_path.iterdir()) == []


def test_changes_are_taken_over_and_told(tmp_path: Path) -> None:
    async def body() -> None:
        files = loaded(tmp_path)
        told: list[Policy] = []
        files.changed = told.append
        write(tmp_path / "plain_acl.yml", account("account-a"))
        assert await looked(files) == {"account-a"}
        (tmp_path / "acl").mkdir()
        write(tmp_path / "acl" / "b.yml", account("account-b"))
        assert await looked(files) == {"account-a", "account-b"}
        (tmp_path / "plain_acl.yml").unlink()
        assert await looked(files) == {"account-b"}
        assert told[-1] is files.policy

    run(body())


@pytest.mark.parametrize("text", ["", "accounts: [", "accounts:\n- accessKey: x\n", "\x00"])
def test_a_mistake_while_it_runs_keeps_what_was_there_and_is_said_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, text: str
) -> None:
    async def body() -> None:
        files = loaded(tmp_path)
        before = keys(files)
        write(tmp_path / "plain_acl.yml", text)
        for _ in range(3):
            assert await looked(files) == before
        said = [record for record in caplog.records if record.levelno >= logging.WARNING]
        assert len(said) == 1
        assert "plain_acl.yml" in said[0].getMessage()
        write(tmp_path / "plain_acl.yml", account("account-a"))
        assert await looked(files) == {"account-a"}

    run(body())


def test_a_file_that_is_gone_takes_its_accounts_with_it_whatever_is_wrong_with_another(tmp_path: Path) -> None:
    async def body() -> None:
        (tmp_path / "acl").mkdir()
        (tmp_path / "acl" / "b.yml").write_text(account("account-b"))
        files = loaded(tmp_path, account("account-a"))
        write(tmp_path / "plain_acl.yml", "accounts: [")
        (tmp_path / "acl" / "b.yml").unlink()
        assert await looked(files) == {"account-a"}

    run(body())


def test_it_looks_every_few_seconds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acl_files, "WATCH_PERIOD_S", 0.01)

    async def body() -> None:
        files = loaded(tmp_path)
        watching = asyncio.create_task(files.watch())
        write(tmp_path / "plain_acl.yml", account("account-a"))
        while keys(files) != {"account-a"}:
            await asyncio.sleep(0.01)
        watching.cancel()

    run(body())
    assert acl_files.WATCH_PERIOD_S == 0.01


def test_changes_go_to_the_file_that_has_the_account(tmp_path: Path) -> None:
    async def body() -> None:
        (tmp_path / "acl").mkdir()
        (tmp_path / "acl" / "b.yml").write_text(account("account-b"))
        files = loaded(tmp_path, account("account-a"))
        await files.put_account(UpdateAclConfigRequest(access_key="account-b", admin=True), 17)
        assert files.policy.accounts["account-b"].admin
        assert "admin: true" in (tmp_path / "acl" / "b.yml").read_text()
        await files.put_account(UpdateAclConfigRequest(access_key="account-c", secret_key="12345678"), 18)
        assert "account-c" in (tmp_path / "plain_acl.yml").read_text()
        await files.delete_account("account-a", 19)
        await files.put_white_list("10.1.2.3", str(tmp_path / "acl" / "b.yml"), 20)
        assert files.policy.is_white("10.1.2.3")
        assert keys(files) == {"account-b", "account-c"}
        again = AclFiles(tmp_path)
        assert again.load() == files.policy
        assert await looked(files) == {"account-b", "account-c"}

    run(body())


def test_a_change_beside_an_edit_by_hand_loses_neither(tmp_path: Path) -> None:
    async def body() -> None:
        (tmp_path / "acl").mkdir()
        other = tmp_path / "acl" / "b.yml"
        other.write_text(account("account-b"))
        files = loaded(tmp_path, account("account-a"))
        write(other, account("account-d"))
        write(tmp_path / "plain_acl.yml", account("account-e"))
        await files.put_account(UpdateAclConfigRequest(access_key="account-c", secret_key="12345678"), 18)
        assert await looked(files) == {"account-c", "account-d", "account-e"}

    run(body())


def test_a_new_file_is_for_its_owner_only_and_an_old_one_keeps_its_mode(tmp_path: Path) -> None:
    async def body() -> None:
        files = AclFiles(tmp_path)
        files.load()
        new = UpdateAclConfigRequest(access_key="account-a", secret_key="12345678")
        await files.put_account(new, 1)
        assert stat.S_IMODE(files.plain_path.stat().st_mode) == 0o600
        files.plain_path.chmod(0o640)
        await files.put_account(UpdateAclConfigRequest(access_key="account-b", secret_key="12345678"), 2)
        assert stat.S_IMODE(files.plain_path.stat().st_mode) == 0o640
        assert [path.name for path in tmp_path.iterdir()] == ["plain_acl.yml"]

    run(body())


def test_what_cannot_be_written_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def body() -> None:
        files = loaded(tmp_path)
        before = files.policy, files.plain_path.read_bytes()

        def fails(descriptor: int) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "fsync", fails)
        with pytest.raises(DiskError, match="No space left"):
            await files.delete_account("alice-key", 1)
        assert (files.policy, files.plain_path.read_bytes()) == before
        assert [path.name for path in tmp_path.iterdir()] == ["plain_acl.yml"]

    run(body())


def test_what_would_not_load_is_not_written(tmp_path: Path) -> None:
    async def body() -> None:
        files = loaded(tmp_path)
        before = files.plain_path.read_bytes()
        write(files.plain_path, "accounts: [")
        with pytest.raises(RefmqError, match="is not YAML"):
            await files.delete_account("alice-key", 1)
        assert files.plain_path.read_bytes() == b"accounts: ["
        write(files.plain_path, before.decode())
        for wrong in ("/etc/passwd", "plain_acl.yml", str(tmp_path / "new.yml")):
            with pytest.raises(UsageError, match="none of the files"):
                await files.put_white_list("10.1.2.3", wrong, 1)
        assert files.plain_path.read_bytes() == before

    run(body())


def test_too_many_files_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acl_files, "FILES_MAX", 1)
    (tmp_path / "acl").mkdir()
    (tmp_path / "acl" / "b.yml").write_text("")
    with pytest.raises(UsageError, match="more than 1 files"):
        loaded(tmp_path)
