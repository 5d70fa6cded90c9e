"""A tree that a command has locked: its pristine bytes, its current bytes and its receipt."""

import re
from collections.abc import Mapping
from functools import cache, cached_property
from pathlib import PurePosixPath

from fp4patch.catalog.identify import Identified
from fp4patch.catalog.manifest import load
from fp4patch.core.errors import Refused
from fp4patch.core.globs import glob
from fp4patch.core.results import State
from fp4patch.tree.files import locate, mode, read, sha256
from fp4patch.tree.origin import Origin, Origins
from fp4patch.tree.receipt import Receipt, ReceiptFile, StateDirectory
from fp4patch.tree.recovered import Recovered
from fp4patch.tree.stamp import in_upstreams_names, stamped

COMPLETION = "`fp4patch apply` completes the change, `fp4patch revert` restores the pristine files"
"""What to do about an interrupted command."""


class LockedTree:
    """A tree under its lock: its files as they were when they were read, and its receipt."""

    def __init__(self, known: Identified, recovered: Recovered | None = None) -> None:
        self.known = known
        self.root = known.root
        self.state_directory = StateDirectory(known.root, self.may_change)
        self.recovered = recovered
        """What the receipt would say, if the tree is patched and has none."""
        self.receipt: Receipt | None = recovered.receipt if recovered else self.state_directory.receipt()
        """Record of what was done to the tree; None if nothing was."""
        named = {patch.partition(" ")[0]: None for patch in self.receipt.patches} if self.receipt else {}
        diffs = self.state_directory.outside(self.receipt) if self.receipt else ()
        kept = {patch.id: patch for patch in reversed(diffs)}
        self.outside = tuple(kept[name] for name in named if name in kept)
        """Patches of the receipt that the catalog does not have."""
        self._contents: dict[str, bytes | None] = {}
        self.pristine = cache(self._pristine)
        self.origins = Origins(known, self.receipt, self.blob) if self.receipt else None
        self.origin = cache(self._origin)

    @cached_property
    def _changeable(self) -> re.Pattern[str]:
        """Pattern of the files that a patch of the target is about, or was."""
        patches = load().patches.values()
        own = {place for p in patches if p.target == self.known.target.name for e in p.edits for place in e.search}
        return glob((*self.known.target.touches, *sorted(own)))

    def may_change(self, path: str) -> bool:
        """Tell whether a receipt may name the file: one that a patch of the target is about, or was."""
        hidden = any(part.startswith(".") for part in PurePosixPath(path).parts)
        return not hidden and self._changeable.fullmatch(path) is not None

    @property
    def interrupted(self) -> bool:
        """True if a command was interrupted while it replaced files."""
        return self.receipt is not None and self.receipt.state == "applying"

    @property
    def on_record(self) -> Mapping[str, ReceiptFile]:
        """Files that the receipt names; none without a receipt."""
        return self.receipt.files if self.receipt else {}

    def current(self, path: str) -> bytes | None:
        """Return the file's bytes, read once; None if there is none. Refused: see :func:`files.read`."""
        if path not in self._contents:
            self._contents[path] = read(self.root, path)
        return self._contents[path]

    def read_before(self, contents: Mapping[str, bytes]) -> None:
        """Take the bytes of files that were read already, so that nobody sees others."""
        self._contents = {**contents, **self._contents}

    def _pristine(self, path: str) -> bytes | None:
        """Return the bytes before fp4patch touched the file: those of its origin, of the receipt, or the current ones.

        None: there is no such file, or upstream has none any more.
        """
        recorded = self.on_record.get(path)
        if recorded is None:
            return self.current(path)
        if origin := self.origin(path):
            return origin.pristine
        current = self.current(path) if self.interrupted else None
        if sha256(current) == recorded.pristine_sha256 or not recorded.pristine_sha256:
            return current if recorded.pristine_sha256 else None
        return self.blob(recorded.pristine_sha256)

    def mode(self, path: str) -> int | None:
        """Return the permission bits of a file as it is; None if there is none."""
        return mode(locate(self.root, path))

    def pristine_mode(self, path: str) -> int | None:
        """Return the permission bits before fp4patch touched the file; None if there was none."""
        recorded = self.on_record.get(path)
        if recorded and recorded.mode is not None:
            return recorded.mode
        return None if recorded and not recorded.pristine_sha256 else self.mode(path)

    def blob(self, digest: str) -> bytes:
        """Return the pristine bytes of a hash. Refused: they are gone."""
        kept = self.recovered.blobs.get(digest) if self.recovered else None
        return self.state_directory.blob(digest) if kept is None else kept

    def signed(self, data: bytes, path: str, variant: str, patches: tuple[str, ...]) -> bytes:
        """Return a patched file as it is to be written: with its stamp, or as the export has it that was committed."""
        if self.recovered and self.recovered.commits:
            return in_upstreams_names(data, self.known.target.name)
        return stamped(data, self.pristine(path), path, variant, patches)

    def _origin(self, path: str) -> Origin | None:
        """Return who brought a file of the receipt, if its bytes are none of those that the receipt names."""
        recorded, current = self.on_record.get(path), self.current(path)
        if recorded is None or self.origins is None:
            return None
        named = {recorded.pristine_sha256, recorded.written_sha256}
        named |= {recorded.before_sha256} if self.interrupted else set()
        return None if sha256(current) in named else self.origins.of(path, current)

    def read(self, path: str) -> bytes | None:
        """Return the pristine bytes that a plan looks at; None if they cannot be read."""
        try:
            return self.pristine(path)
        except Refused:
            return None

    def state(self, path: str, desired: bytes | None) -> State:
        """Return the state of a file, from its pristine bytes, the bytes that we wrote, and the desired ones."""
        if self.current(path) == desired:
            recorded = self.on_record.get(path)
            if desired is None and recorded and recorded.written_sha256:
                return State.PRISTINE  # what fp4patch wrote is gone, and upstream has no such file any more
            changed = recorded and recorded.executable is not None
            if recorded and changed and bool((self.mode(path) or 0) & 0o100) != recorded.executable:
                return State.OUTDATED
            return State.APPLIED if recorded else State.PRISTINE
        return self._other_state(path)

    def state_on_record(self, path: str) -> State:
        """Return the state of a file of the receipt whose desired bytes are not known: those that we wrote count."""
        state = self._other_state(path)
        written = sha256(self.current(path)) == self.on_record[path].written_sha256
        return State.APPLIED if written and state is not State.FOREIGN else state

    def _other_state(self, path: str) -> State:
        """Return the state of a file whose bytes are not the desired ones."""
        recorded, current = self.on_record.get(path), self.current(path)
        if current == self.pristine(path):
            return State.PRISTINE
        if recorded is None or ((origin := self.origin(path)) and not origin.known):
            return State.FOREIGN
        return State.OUTDATED
