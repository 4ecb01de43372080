"""The ACL files of a server: read at the start, looked at every few seconds, and changed by administrators.

    FOLDER/plain_acl.yml
    FOLDER/acl/**/*.yml, *.yaml

A mistake in a file stops a start. While the server runs, a file that cannot be read or makes no sense (an empty one is
what an editor leaves in between) keeps the content that it had, and a log line says why, once. A file that is gone
takes its accounts with it. When the number of files has changed, all of them are read again.

A change is written whole or not at all: a temporary file is flushed and renamed, with the mode of the old file, or
readable by its owner only.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeAlias

from refmq.acl.changes import delete_account, put_account, put_white_list
from refmq.acl.document import FILE_BYTES_MAX, read_document, write_document
from refmq.acl.policy import AclFile, Policy, file_of, join_files, read_file
from refmq.errors import DiskFailed, RefmqError, UsageError
from refmq.protocol.headers.admin import UpdateAclConfigRequest

PLAIN_FILE: Final = "plain_acl.yml"
FOLDER: Final = "acl"
WATCH_PERIOD_S: Final = 5.0
FILES_MAX: Final = 1_000

Seen: TypeAlias = tuple[int, int, int]
"""When a file was changed, its size and its inode."""
Change: TypeAlias = Callable[[dict[str, Any]], dict[str, Any]]

log = logging.getLogger("refmq.acl")


class AclFiles:
    """The files below one folder. `policy` is what they say now."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.policy = Policy()
        self.changed: Callable[[Policy], None] = lambda policy: None
        """Called with each new policy."""
        self._seen: dict[str, Seen] = {}
        self._writing = asyncio.Lock()

    @property
    def plain_path(self) -> Path:
        return self.folder / PLAIN_FILE

    # --- reading -----------------------------------------------------------------------------------------------------

    def load(self) -> Policy:
        """Reads everything for a start. `RefmqError` names the first file that is wrong."""
        found = self._look()
        files = {path: read_file(_read(path), path) for path in found}
        self._seen = found
        self._take(files)
        if not self.policy.accounts and not self.policy.white_list:
            log.warning("access control is on and %s has no account: everybody is refused", self.plain_path)
        return self.policy

    async def watch(self) -> None:
        """Looks for changes for ever."""
        while True:
            await asyncio.sleep(WATCH_PERIOD_S)
            await self.look_again()

    async def look_again(self) -> None:
        """Takes over what has changed on the disk."""
        async with self._writing:
            await asyncio.get_running_loop().run_in_executor(None, self._reload)
            self._tell()

    def _reload(self) -> None:
        try:
            found = self._look()
        except RefmqError as error:
            log.warning("%s; the accounts stay as they are", error)
            return
        before, known = self._seen, self.policy.files
        if found == before:
            return
        files: dict[str, AclFile] = {}
        for path, seen in found.items():
            if len(found) == len(before) and before.get(path) == seen and path in known:
                files[path] = known[path]
                continue
            read = self._read_again(path)
            if read is not None:
                files[path] = read
            elif path in known:
                files[path] = known[path]
        self._seen = found
        self._take(files)

    def _read_again(self, path: str) -> AclFile | None:
        """A file that may have changed; None, and a log line, for one that cannot be used."""
        try:
            data = _read(path)
            if not data.strip():
                raise UsageError(f"{path} is empty")
            return read_file(data, path)
        except RefmqError as error:
            log.warning("%s; what the file said before goes on", error)
            return None

    def _take(self, files: dict[str, AclFile]) -> None:
        self.policy = join_files(files)
        for note in self.policy.notes:
            log.warning("%s", note)

    def _tell(self) -> None:
        self.changed(self.policy)

    def _look(self) -> dict[str, Seen]:
        """All files there are, in the order in which they count."""
        paths = [self.plain_path] if self.plain_path.exists() else []
        for folder, folders, names in os.walk(self.folder / FOLDER):
            folders.sort()
            paths += [Path(folder) / name for name in sorted(names) if name.endswith((".yml", ".yaml"))]
        if len(paths) > FILES_MAX:
            raise UsageError(f"{self.folder / FOLDER} has more than {FILES_MAX} files")
        found = {}
        for path in paths:
            with contextlib.suppress(FileNotFoundError):
                status = path.stat()
                found[str(path)] = (status.st_mtime_ns, status.st_size, status.st_ino)
        return found

    # --- changing ----------------------------------------------------------------------------------------------------

    async def put_account(self, given: UpdateAclConfigRequest, now_ms: int) -> None:
        """50: into the file that has the account, a new one into `plain_acl.yml`."""
        path = self.policy.file_of(given.access_key) or str(self.plain_path)
        await self._change(path, lambda document: put_account(document, given, now_ms))

    async def delete_account(self, access_key: str, now_ms: int) -> None:
        """51: out of the file that has it."""
        path = self.policy.file_of(access_key)
        if path is None:
            raise UsageError(f"there is no account {access_key[:80]}")
        await self._change(path, lambda document: delete_account(document, access_key, now_ms))

    async def put_white_list(self, addresses: str, path: str | None, now_ms: int) -> None:
        """53: in a file that is one of ours, or in `plain_acl.yml`."""
        named = path or str(self.plain_path)
        if named not in self.policy.files and named != str(self.plain_path):
            raise UsageError(f"{named[:200]!r} is none of the files of this broker")
        await self._change(named, lambda document: put_white_list(document, addresses, now_ms))

    async def _change(self, path: str, change: Change) -> None:
        """What would not load is not written, and what is written counts at once."""
        async with self._writing:
            await asyncio.get_running_loop().run_in_executor(None, self._write, path, change)
            self._tell()

    def _write(self, path: str, change: Change) -> None:
        there = Path(path).exists()
        document = change(read_document(_read(path), path) if there else {})
        data = write_document(document)
        read = file_of(read_document(data, path), path)
        _replace(Path(path), data)
        found = self._look()
        files = {each: read if each == path else self.policy.files[each] for each in (*self.policy.files, path)}
        ordered = {each: files[each] for each in found if each in files}
        self._seen = {each: seen for each, seen in found.items() if each == path or self._seen.get(each) == seen}
        self._take(ordered)


def _read(path: str) -> bytes:
    try:
        with Path(path).open("rb") as file:
            return file.read(FILE_BYTES_MAX + 1)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None


def _replace(path: Path, data: bytes) -> None:
    """The new content under the name of the file, flushed before and after. `DiskFailed` leaves the old one."""
    target = path.resolve()  # a link goes on being one
    temporary = target.with_name(target.name + ".tmp")
    try:
        mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else 0o600
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary.unlink(missing_ok=True)
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        try:
            with os.fdopen(descriptor, "wb") as file:
                os.fchmod(file.fileno(), mode)
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(target)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        folder = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        raise DiskFailed(str(path), "replace", error.strerror or str(error)) from None
