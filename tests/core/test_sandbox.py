"""What a program of a tree can do in the sandbox, tried on a real kernel, and what it can not."""

import errno
import os
import re
import struct
import sys
from pathlib import Path

import pytest

from fp4patch.core import sandbox
from fp4patch.core.errors import ToolchainError
from fp4patch.core.process import Done, Trust, run_confined

HEAD = """
import ctypes, mmap, os, resource, shutil, signal, socket, subprocess, sys, threading, time
victim, folder, scratch, parent = sys.argv[1], sys.argv[2], sys.argv[3], os.getppid()
libc = ctypes.CDLL(None, use_errno=True)
def call(name, *arguments):
    if getattr(libc, name)(*arguments) < 0:
        raise OSError(ctypes.get_errno(), name)
"""
HARM = {
    "open and write": "open(victim, 'w').write('x')",
    "append": "open(victim, 'a').write('x')",
    "a new file": "open(folder + '/new', 'w')",
    "os.open with O_CREAT": "os.open(folder + '/new', os.O_CREAT | os.O_WRONLY)",
    "os.open with O_CREAT alone": "os.open(folder + '/new', os.O_CREAT)",
    "O_TRUNC on a file that is read": "os.open(victim, os.O_RDONLY | os.O_TRUNC)",
    "O_TMPFILE": "os.open(folder, os.O_TMPFILE | os.O_RDWR)",
    "creat": "call('creat', (folder + '/new').encode(), 0o644)",
    "truncate": "os.truncate(victim, 0)",
    "by a directory's descriptor": "os.open('new', os.O_CREAT | os.O_WRONLY, dir_fd=os.open(folder, os.O_RDONLY))",
    "through /proc/self/cwd": "os.chdir(folder); open('/proc/self/cwd/new', 'w')",
    "through /proc/self/fd": "open(f'/proc/self/fd/{os.open(victim, os.O_RDONLY)}', 'w')",
    "through a link": "os.symlink(victim, scratch + '/link'); open(scratch + '/link', 'w')",
    "a hard link into the scratch": "os.link(victim, scratch + '/hard'); open(scratch + '/hard', 'w')",
    "a hard link out of it": "open(scratch + '/own', 'w'); os.link(scratch + '/own', folder + '/new')",
    "rename to elsewhere": "open(scratch + '/own', 'w'); os.rename(scratch + '/own', victim)",
    "rename from elsewhere": "os.rename(victim, scratch + '/stolen')",
    "rename in place": "os.rename(victim, folder + '/new')",
    "remove": "os.remove(victim)",
    "rmdir": "os.rmdir(folder + '/empty')",
    "mkdir": "os.mkdir(folder + '/new')",
    "symlink": "os.symlink('/', folder + '/new')",
    "mkfifo": "os.mkfifo(folder + '/new')",
    "mknod": "os.mknod(folder + '/new')",
    "a socket's file": "socket.socket(socket.AF_UNIX).bind(folder + '/new')",
    "chmod": "os.chmod(victim, 0o777)",
    "fchmod": "os.fchmod(os.open(victim, os.O_RDONLY), 0o777)",
    "fchmodat2": "call('syscall', 452, -100, victim.encode(), 0o777, 0)",
    "chown": "os.chown(victim, 1, 1)",
    "utime": "os.utime(victim, (0, 0))",
    "utime of a descriptor": "os.utime(os.open(victim, os.O_RDONLY), (0, 0))",
    "an attribute": "os.setxattr(victim, 'user.x', b'1')",
    "a shared mapping": "mmap.mmap(os.open(victim, os.O_RDWR), 1)",
    "POSIX shared memory": "open('/dev/shm/fp4patch-test-sandbox', 'w')",
    "System V shared memory": "call('shmget', 0x7f4, 4096, 0o1666)",
    "a message queue": "libc.mq_open.argtypes = None; call('mq_open', b'/fp4patch-test', 0o102, 0o600, None)",
    "fork": "os.fork()",
    "vfork through the library": "subprocess.Popen(['/bin/sh', '-c', 'true'])",
    "posix_spawn": "os.posix_spawn('/bin/sh', ['sh', '-c', 'true'], {})",
    "system": "assert os.system('true') == 0",
    "clone3": "call('syscall', 435, b'\\0' * 88, 88)",
    "a program in place of this one": "os.execv('/bin/sh', ['sh', '-c', f'echo x > {victim}; exit 3'])",
    "TCP": "socket.socket(socket.AF_INET)",
    "UDP": "socket.socket(socket.AF_INET, socket.SOCK_DGRAM)",
    "a socket of this machine": "socket.socket(socket.AF_UNIX).connect('/var/run/docker.sock')",
    "netlink": "socket.socket(socket.AF_NETLINK)",
    "io_uring": "call('syscall', 425, 8, b'\\0' * 120)",
    "a signal to the parent": "os.kill(parent, signal.SIGUSR1)",
    "a signal to the group": "os.killpg(os.getpgid(parent), 0)",
    "a signal to all": "os.kill(-1, 0)",
    "a signal through a descriptor": "signal.pidfd_send_signal(os.pidfd_open(parent), 0)",
    "the parent's memory": "open(f'/proc/{parent}/mem', 'r+b')",
    "the parent's limits": "resource.prlimit(parent, resource.RLIMIT_NOFILE, (1, 1))",
    "the parent's priority": "os.setpriority(os.PRIO_PROCESS, parent, 19)",
    "ptrace": "call('ptrace', 16, parent, 0, 0)",
    "a mount": "call('mount', b'none', folder.encode(), b'tmpfs', 0, None)",
    "a namespace": "call('unshare', 0x10000000)",
    "chroot": "os.chroot(folder)",
    "the host's name": "socket.sethostname('x')",
    "the clock": "time.clock_settime(time.CLOCK_REALTIME, 0)",
    "a setting of the kernel": "open('/proc/sys/kernel/hostname', 'w').write('x')",
    "17 GB of memory": "bytearray(17 << 30)",
    "a file of 17 MB": "open(scratch + '/big', 'wb').write(bytes(17 << 20))",
    "higher limits": "resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY,) * 2)",
}
"""Python that fails in the sandbox, with an exception or the exit status 3."""
ORDINARY = (
    "open and write",
    "os.open with O_CREAT alone",
    "O_TRUNC on a file that is read",
    "creat",
    "truncate",
    "by a directory's descriptor",
    "through /proc/self/fd",
    "through a link",
    "rename to elsewhere",
    "rename from elsewhere",
    "mkfifo",
    "a socket's file",
    "chmod",
    "utime of a descriptor",
    "a shared mapping",
    "vfork through the library",
    "posix_spawn",
    "a program in place of this one",
    "UDP",
    "a signal to the group",
)
"""Those of HARM that take no privilege, and that no test has to be protected from."""
USUAL = {
    "reading": "assert open(victim).read() == 'victim'",
    "writing to the scratch": "open(scratch + '/a', 'w').write('x'); os.rename(scratch + '/a', scratch + '/b')",
    "directories in the scratch": "os.makedirs(scratch + '/a/b'); shutil.rmtree(scratch + '/a')",
    "links in the scratch": "os.symlink('b', scratch + '/c')",
    "truncating in the scratch": "open(scratch + '/a', 'w').write('x'); open(scratch + '/a', 'r+').truncate(0)",
    "/dev/null": "open('/dev/null', 'w').write('x')",
    "threads": "one = threading.Thread(target=int); one.start(); one.join()",
    "the time": "time.sleep(0.01); time.time()",
    "the limits of its own": "resource.getrlimit(resource.RLIMIT_AS)",
    "a pipe": "os.pipe()",
    "memory": "bytearray(1 << 28)",
}


@pytest.fixture
def tried(tmp_path: Path) -> "Tried":
    return Tried(tmp_path)


class Tried:
    """A directory with a victim and an empty directory, and another to write to."""

    def __init__(self, place: Path) -> None:
        self.folder, self.scratch = place / "tree", place / "scratch"
        (self.folder / "empty").mkdir(parents=True)
        self.scratch.mkdir()
        self.victim = self.folder / "victim"
        self.victim.write_text("victim")
        self.before = self.state()

    def state(self) -> list[tuple[object, ...]]:
        """Return what could be changed of the directory."""
        rows: list[tuple[object, ...]] = []
        for path in (self.folder, *sorted(self.folder.rglob("*"))):
            stat = path.lstat()
            content = path.read_bytes() if path.is_file() else None
            owner = stat.st_uid, stat.st_gid, stat.st_nlink
            rows.append((path, stat.st_mode, *owner, stat.st_mtime_ns, stat.st_size, content))
        return rows

    def python(self, text: str) -> Done:
        """Run a text in the sandbox."""
        arguments = (self.victim, self.folder, self.scratch)
        return run_confined([sys.executable, "-I", "-B", "-c", HEAD + text, *arguments], self.scratch, limit=60)


@pytest.mark.parametrize("text", HARM.values(), ids=HARM)
def test_harm_is_refused_by_the_kernel(tried: Tried, text: str) -> None:
    done = tried.python(f"{text}\nprint('done')")
    assert done.status in (1, 3), (done.out, done.err)
    assert done.status == 3 or re.search(r"(Error|Errno|SystemExit|MemoryError)", done.err), done.err
    assert "SyntaxError" not in done.err
    assert "AttributeError" not in done.err
    assert tried.state() == tried.before


@pytest.mark.parametrize("text", [HARM[name] for name in ORDINARY], ids=ORDINARY)
def test_the_same_succeeds_outside_of_the_sandbox(tried: Tried, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(Trust, "trees", True)
    done = tried.python(f"{text}\nprint('done')")
    assert done.out == "done\n" or done.status == 3, done.err


@pytest.mark.parametrize("text", USUAL.values(), ids=USUAL)
def test_what_a_build_does_works(tried: Tried, text: str) -> None:
    done = tried.python(f"{text}\nprint('done')")
    assert (done.status, done.out, done.err) == (0, "done\n", "")
    assert tried.state() == tried.before


def test_a_loop_ends(tried: Tried, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TimeoutError, match="did not finish in 1 s"):
        run_confined([sys.executable, "-c", "while True: pass"], tried.scratch, limit=1)


def test_a_program_that_is_not_there_is_an_error_as_ever(tried: Tried) -> None:
    with pytest.raises(OSError, match="does not run: No such file") as error:
        run_confined(["/no/such/program"], tried.scratch, limit=1)
    assert error.value.strerror == "does not run: No such file or directory"


def test_without_a_sandbox_nothing_runs_unless_the_tree_is_trusted(
    tried: Tried, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandbox, "missing", lambda: "this kernel has no Landlock")
    with pytest.raises(ToolchainError, match="no Landlock") as error:
        tried.python("open(victim, 'w')")
    assert "--trust-tree" in error.value.help
    assert tried.state() == tried.before
    monkeypatch.setattr(Trust, "trees", True)
    assert tried.python("open(victim, 'w')").status == 0
    assert tried.victim.read_text() == ""


HEADERS = [
    (0, Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h")),
    (1, Path("/usr/include/asm-generic/unistd.h")),
]


def _of_both(behind: int) -> tuple[int, int]:
    return sandbox._CAPGET["x86_64"] + behind, sandbox._CAPGET["aarch64"] + behind


def test_the_numbers_are_those_of_the_kernel_s_headers() -> None:
    """Those of x86-64 are on such machines alone; arm64 has the general ones."""
    checked = 0
    numbers = sandbox.CALLS | {"clone": sandbox._CLONE, "kill": sandbox._KILL, "tgkill": sandbox._TGKILL}
    numbers |= {"prlimit64": sandbox._PRLIMIT64, "openat": sandbox._OPENAT, "open": sandbox._OPEN}
    numbers |= {"capget": _of_both(0), "capset": _of_both(1), "clone3": (sandbox._CLONE3,) * 2}
    calls = ("landlock_create_ruleset", sandbox._CREATE_RULESET), ("landlock_add_rule", sandbox._ADD_RULE)
    numbers |= {name: (number, number) for name, number in (*calls, ("landlock_restrict_self", sandbox._RESTRICT_SELF))}
    for column, header in HEADERS:
        text = header.read_text() if header.is_file() else ""
        # Example: #define __NR_fchmod 52
        stated = {name: int(number) for name, number in re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)\b", text)}
        for name, of in numbers.items():
            if name in stated:
                assert stated[name] == of[column], name
                checked += 1
            elif of[column] == sandbox._NONE:
                assert name not in stated
        assert not stated or max(stated.values()) <= sandbox._NEWEST or column == 1
    assert checked > 80


OTHER = "another process"
# System calls of the kernel's header for arm64, with arguments, and what the filter answers: 0 lets them through.
ON_ARM64: dict[tuple[int | str, ...], int] = {
    (63,): 0,  # read
    (64,): 0,  # write
    (56, 0, 0, os.O_RDONLY): 0,  # openat
    (56, 0, 0, os.O_WRONLY | os.O_TRUNC): 0,  # Landlock decides
    (56, 0, 0, os.O_RDONLY | os.O_TRUNC): errno.EPERM,
    (2, 0, os.O_RDONLY | os.O_TRUNC): 0,  # io_submit: `open` of x86-64
    (57,): 0,  # close: `fork` of x86-64
    (222,): 0,  # mmap
    (221,): 0,  # execve
    (53,): errno.EPERM,  # fchmodat
    (88,): errno.EPERM,  # utimensat
    (198,): errno.EPERM,  # socket
    (117,): errno.EPERM,  # ptrace
    (220, 0x00010000): 0,  # clone, of a thread
    (220, 17): errno.EPERM,  # of a process
    (129, "own", 9): 0,  # kill
    (129, OTHER, 9): errno.EPERM,
    (131, OTHER, 9): errno.EPERM,  # tgkill
    (261, 0): 0,  # prlimit64
    (261, OTHER): errno.EPERM,
    (435,): errno.ENOSYS,  # clone3
    (sandbox._NEWEST + 1,): errno.ENOSYS,
}


@pytest.mark.parametrize("call", ON_ARM64, ids=str)
def test_the_filter_for_arm64_decides_by_the_numbers_of_arm64(call: tuple[int | str, ...]) -> None:
    """Run here as the kernel would run it there (Documentation/networking/filter.rst, struct seccomp_data)."""
    processes = {"own": os.getpid(), OTHER: os.getpid() + 1}
    number, *given = (processes[one] if isinstance(one, str) else one for one in call)
    arguments = struct.pack("<6Q", *given, *[0] * (6 - len(given)))
    answers = {
        audit: _decided(sandbox._filter("aarch64"), struct.pack("<IIQ", number, audit, 0) + arguments)
        for audit in (0xC00000B7, 0x40000028, 0xC000003E)
    }
    assert answers[0xC00000B7] == (0x7FFF0000 if ON_ARM64[call] == 0 else 0x00050000 | ON_ARM64[call])
    assert answers[0x40000028] == answers[0xC000003E] == 0x00050000 | errno.EPERM  # 32 bits, and x86-64


def _decided(program: bytes, data: bytes) -> int:
    """Return what a filter of these instructions answers."""
    at = value = 0
    tests = {0x15: lambda k: value == k, 0x35: lambda k: value >= k, 0x45: lambda k: value & k}
    while True:
        code, if_so, if_not, k = struct.unpack_from("<HBBI", program, 8 * at)
        at += 1
        if code == 0x06:
            return int(k)
        if code == 0x20:
            (value,) = struct.unpack_from("<I", data, k)
        elif code == 0x54:
            value &= k
        else:
            at += if_so if tests[code](k) else if_not
