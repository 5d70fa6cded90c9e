"""Safe access to the files of one source tree: nothing outside it, nothing that is not a regular file of text."""

import errno
import hashlib
import io
import os
import shutil
import stat
from contextlib import suppress
from pathlib import Path, PurePosixPath

from fp4patch.core.errors import Refused
from fp4patch.core.results import Problem, State
from fp4patch.core.tree_path import is_inside

STATE_DIR = ".fp4patch"
"""The directory in a tree's root that holds all that fp4patch keeps there."""
LARGEST = 16 << 20
"""Bytes of the largest file that is read: no source file comes near it, and a sparse one must not fill the memory."""


def sha256(data: bytes | None) -> str:
    """Return the SHA-256 in hexadecimal; empty for None, which stands for a missing file."""
    return "" if data is None else hashlib.sha256(data).hexdigest()


def refuse(
    rel: str,
    expected: str,
    found: str,
    *,
    help: str = "put back the file that upstream released",  # noqa: A002 - the reader's word
    line: int | None = None,
    state: State | None = None,
) -> Refused:
    """Return the refusal of one file of a tree, with its problem."""
    problem = Problem(expected=expected, found=found, file=rel, line=line, help=help, state=state)
    return Refused(f"{rel}: expected {expected}, found {found}", help=help, problems=[problem])


# --- one tree --------------------------------------------------------------------------------------------------------


def locate(root: Path, rel: str) -> Path:
    """Return where ``rel`` really is; the last component is not followed. Refused if not inside the tree at ``root``.

    Paths in a tree are relative, with slashes. A receipt, which is JSON, could not name one that is not in UTF-8.
    """
    if not is_inside(rel) or not rel.isprintable():
        raise refuse(rel, "a printable path inside the tree", "another one")
    folder = Path(os.path.realpath((root / rel).parent))
    # Links within the tree are upstream's business; what counts is where the file really is.
    if not folder.is_relative_to(root):
        raise refuse(rel, "a file inside the tree", f"a symlink out of it, to {folder}")
    for part in (*PurePosixPath(rel).parts, *folder.relative_to(root).parts):
        if part.lower() in (STATE_DIR, ".git"):
            raise refuse(rel, "a source file", f"a path into {part}")
    return folder / PurePosixPath(rel).name


def read(root: Path, rel: str) -> bytes | None:
    """Return the bytes of a file of the tree; None if there is none.

    Refused, with one problem, if it is outside the tree, no regular file, too large, or may not be read.
    """
    try:
        return read_file(locate(root, rel))
    except OSError as error:
        advice = "put back the file that upstream released, or run fp4patch as a user who may read it"
        raise refuse(rel, "a readable file", error.strerror or str(error), help=advice) from error


def mode(path: Path) -> int | None:
    """Return the permission bits of a file; None if there is none."""
    try:
        return stat.S_IMODE(path.lstat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return None


def allowed(permissions: int) -> int:
    """Return permission bits without those that this process gives to no file: a receipt can have any."""
    mask = os.umask(0o077)
    os.umask(mask)
    return permissions & 0o775 & ~mask


def must_be_replaceable(root: Path, rel: str) -> None:
    """Refuse a file that must not, or cannot, be replaced: one without a write bit too, even for root."""
    place = locate(root, rel)
    with suppress(FileNotFoundError, NotADirectoryError):
        info = place.lstat()
        mode = stat.S_IMODE(info.st_mode)
        if mode & 0o7000 or not mode & 0o222 or not os.access(place, os.W_OK):
            found = f"one of mode {mode:04o} and owner {info.st_uid}"
            advice = "give it the mode of a source file (chmod u+w,ug-s,-t), or run fp4patch as its owner"
            if os.statvfs(place).f_flag & os.ST_RDONLY:
                found, advice = "one that is mounted read-only", "mount it for writing"
            advice += "; of a tree that must stay as it is, `fp4patch apply --output DIR` writes a patched copy"
            raise refuse(rel, "a file that can be replaced", found, help=advice)


# --- the disk --------------------------------------------------------------------------------------------------------


def step(what: str) -> None:
    """Test hook, called before every change of the disk with the change in words. The kill tests patch it."""


def read_file(path: Path) -> bytes | None:
    """Return the bytes of a regular file; None if there is none.

    OSError: it is something else, is larger than any source file, or cannot be read.
    """
    try:
        found = path.lstat()
        # The kind is checked before opening: opening a FIFO waits, and opening a device can have any effect.
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "no regular file", str(path))
        if found.st_size > LARGEST:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), str(path))
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    with os.fdopen(descriptor, "rb") as file:
        return file.read(LARGEST)


def create(path: Path, data: bytes, *, like: Path | None = None, permissions: int | None = None) -> None:
    """Make a file that is on the disk when this returns; what a killed command left under that name goes first.

    It has the permissions, the owner and the attributes of the file ``like`` if that is there; what root makes without
    such a file, or of one of root's, belongs to the owner of the directory. ``permissions`` may be others.
    """
    remove(path)
    step(f"create {path}")
    found = like.lstat() if like and os.path.lexists(like) else None
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(path, flags, 0o600 if found else 0o644), "wb") as file:
        step(f"fill {path}")
        file.write(data)
        file.flush()
        if found and like:
            shutil.copystat(like, path, follow_symlinks=False)
            os.utime(path)  # build systems must see the change
        if permissions is not None:
            os.fchmod(file.fileno(), permissions)
        # Root's own file among a user's is as a hard link would be: the user's bytes must not become root's.
        _give(path, found if found and found.st_uid else path.parent.stat())
        os.fsync(file.fileno())


def _give(path: Path, owner: os.stat_result) -> None:
    with suppress(OSError):  # only root may give files away, and then it should; capabilities get lost
        os.chown(path, owner.st_uid, owner.st_gid, follow_symlinks=False)


def make_folder(path: Path) -> None:
    """Make a directory, if it is not there; what root makes belongs to the owner of the one around it."""
    if not os.path.lexists(path):
        step(f"make {path}")
        path.mkdir()
        _give(path, path.parent.stat())


def rename(path: Path, to: Path) -> None:
    """Atomic: another process sees the old file or the new one. A link at ``to`` is replaced, not followed."""
    step(f"rename {path} to {to}")
    path.rename(to)


def remove(path: Path) -> None:
    """Remove a file, a symlink or an empty directory, if it is there."""
    if os.path.lexists(path):
        step(f"remove {path}")
        if path.is_dir() and not path.is_symlink():
            path.rmdir()
        else:
            path.unlink()


def remove_folder(path: Path) -> None:
    """Remove a directory if it is there, and empty."""
    if path.is_dir() and not path.is_symlink() and not any(path.iterdir()):
        step(f"remove {path}")
        path.rmdir()


def sync(folder: Path) -> None:
    """Names in a directory survive a power cut only after this."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    with suppress(OSError):  # some network file systems have no such thing
        os.fsync(descriptor)
    os.close(descriptor)


def unified(path: str, before: bytes, after: bytes) -> str:
    """Return the unified diff of one file, as ``git apply`` takes it: only a line feed ends a line there."""
    import difflib  # noqa: PLC0415 - most commands print no diff

    texts = (data.decode("utf-8", errors="surrogateescape") for data in (before, after))
    # ``splitlines`` would also cut at a form feed, or at a lone carriage return.
    old_lines, new_lines = (list(io.StringIO(text, newline="\n")) for text in texts)
    lines = difflib.unified_diff(old_lines, new_lines, f"a/{path}", f"b/{path}")
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def decode(data: bytes, path: str) -> str:
    """Return the text of a file, its byte-order mark and line ends as they are. Refused: not UTF-8, or with a NUL."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise refuse(path, "UTF-8 text", f"byte 0x{data[error.start]:02x}", line=line) from error
    if "\0" in text:
        raise refuse(path, "UTF-8 text", "a NUL byte")
    return text
