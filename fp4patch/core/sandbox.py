"""A program of a source tree, confined by the kernel: ``python -I -S -B sandbox.py SCRATCH PROGRAM ARGUMENT…``.

This file is run as a program that confines itself and then becomes PROGRAM, so it imports nothing of fp4patch. What
PROGRAM can still do: read what its user may read, use the processor for a minute and 4 GiB of memory, and write below
SCRATCH. It changes nothing elsewhere, no modes, owners or times; it starts no process, opens no socket, signals nobody.

Landlock (landlock(7), Linux 5.13) refuses writing outside of SCRATCH. What it does not know, a seccomp filter
(seccomp(2)) refuses by the number of the system call; numbers after those that were looked through are refused too.
The privileges of root are dropped (capabilities(7)).
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import resource
import struct
import sys
from contextlib import suppress

NAME = "fp4patch's sandbox"
"""Begins the message if this process cannot be confined."""
NOT_CONFINED, NOT_STARTED = 125, 126
"""Exit statuses: the kernel refuses to confine this process; the program does not start."""
LIMITS = {resource.RLIMIT_CPU: 60, resource.RLIMIT_AS: 4 << 30, resource.RLIMIT_FSIZE: 16 << 20}
"""Processor seconds, bytes of memory, and bytes of each file that is written."""

# --- landlock(7) -----------------------------------------------------------------------------------------------------

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
"""System calls, with the same numbers on every processor."""
_WRITE_FILE = 1 << 1
_RIGHTS = {
    1: _WRITE_FILE | sum(1 << bit for bit in range(4, 13)),  # REMOVE_DIR … MAKE_SYM
    2: 1 << 13,  # REFER
    3: 1 << 14,  # TRUNCATE
    5: 1 << 15,  # IOCTL_DEV
}
"""Rights that change something, by the version of Landlock that has them first."""
_OF_FILES = _WRITE_FILE | 1 << 14
_NETWORK = 4, 0b11
"""The version that knows TCP, and its rights: to bind and to connect."""
_SCOPES = 6, 0b11
"""The version that keeps abstract sockets and signals to the sandbox, and both of them."""

# --- seccomp(2) ------------------------------------------------------------------------------------------------------

_MACHINES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}
"""AUDIT_ARCH of a processor, and its column in the tables of numbers."""
_NEWEST = 468
"""The newest system call that was looked through (file_getattr). All after it are refused."""
_NONE = -1
"""There is no such call on this processor."""
CALLS = {
    # modes, owners, times and attributes
    "chmod": (90, _NONE), "fchmod": (91, 52), "fchmodat": (268, 53), "fchmodat2": (452, 452),
    "chown": (92, _NONE), "fchown": (93, 55), "lchown": (94, _NONE), "fchownat": (260, 54),
    "utime": (132, _NONE), "utimes": (235, _NONE), "futimesat": (261, _NONE), "utimensat": (280, 88),
    "setxattr": (188, 5), "lsetxattr": (189, 6), "fsetxattr": (190, 7), "setxattrat": (463, 463),
    "removexattr": (197, 14), "lremovexattr": (198, 15), "fremovexattr": (199, 16), "removexattrat": (466, 466),
    # writing that no open file is needed for
    "truncate": (76, 45), "openat2": (437, 437), "open_by_handle_at": (304, 265), "io_uring_setup": (425, 425),
    "quotactl": (179, 60), "quotactl_fd": (443, 443), "acct": (163, 89), "swapon": (167, 224), "swapoff": (168, 225),
    # processes, other than threads
    "fork": (57, _NONE), "vfork": (58, _NONE), "ptrace": (101, 117),
    "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "process_madvise": (440, 440),
    "process_mrelease": (448, 448), "pidfd_open": (434, 434), "pidfd_getfd": (438, 438), "kcmp": (312, 272),
    "migrate_pages": (256, 238), "move_pages": (279, 239),
    "setpriority": (141, 140), "ioprio_set": (251, 30), "sched_setaffinity": (203, 122),
    "sched_setscheduler": (144, 119), "sched_setparam": (142, 118), "sched_setattr": (314, 274),
    "setpgid": (109, 154), "unshare": (272, 97), "setns": (308, 268),
    # signals
    "tkill": (200, 130), "rt_sigqueueinfo": (129, 138), "rt_tgsigqueueinfo": (297, 240),
    "pidfd_send_signal": (424, 424),
    # the network, and memory and messages that processes share
    "socket": (41, 198), "shmget": (29, 194), "shmat": (30, 196), "shmctl": (31, 195), "msgget": (68, 186),
    "semget": (64, 190), "mq_open": (240, 180), "mq_unlink": (241, 181),
    "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219),
    # the machine
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51), "open_tree": (428, 428),
    "move_mount": (429, 429), "fsopen": (430, 430), "fsconfig": (431, 431), "fsmount": (432, 432),
    "fspick": (433, 433), "mount_setattr": (442, 442), "reboot": (169, 142), "kexec_load": (246, 104),
    "kexec_file_load": (320, 294), "init_module": (175, 105), "finit_module": (313, 273), "delete_module": (176, 106),
    "bpf": (321, 280), "perf_event_open": (298, 241), "userfaultfd": (323, 282), "syslog": (103, 116),
    "settimeofday": (164, 170), "clock_settime": (227, 112), "adjtimex": (159, 171), "clock_adjtime": (305, 266),
    "sethostname": (170, 161), "setdomainname": (171, 162), "iopl": (172, _NONE), "ioperm": (173, _NONE),
    "vhangup": (153, 58), "fanotify_init": (300, 262),
}  # fmt: skip
"""Refused system calls with their numbers, x86-64's and arm64's."""
_CLONE, _CLONE3 = (56, 220), 435
_KILL, _TGKILL = (62, 129), (234, 131)
_PRLIMIT64 = (302, 261)
_OPENAT, _OPEN = (257, 56), (2, _NONE)
_THREAD = 0x00010000
"""CLONE_THREAD."""
_X32 = 0x40000000
"""x86-64's second set of numbers begins here."""


def _filter(machine: str) -> bytes:
    """Return the program that decides about each system call (struct sock_filter)."""
    audit, column = _MACHINES[machine]
    load, equal, greater, any_bit, masked, answer = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
    allow, refuse, unknown = 0x7FFF0000, 0x00050000 | errno.EPERM, 0x00050000 | errno.ENOSYS
    program: list[tuple[int, int, int, int]] = []

    def step(code: int, value: int, if_so: int = 0, if_not: int = 0) -> None:
        program.append((code, if_so, if_not, value))

    def only_if(number: int, test: int, *values: int) -> None:
        """Allow a call if its first argument passes the test of a value, else refuse it."""
        step(equal, number, 0, 2 * len(values) + 2)
        step(load, 16)
        for value in values:
            step(test, value, 0, 1)
            step(answer, allow)
        step(answer, refuse)

    step(load, 4)
    step(equal, audit, 1, 0)
    step(answer, refuse)
    step(load, 0)
    step(greater, _NEWEST + 1, 0, 1)  # the numbers of x32 too
    step(answer, unknown)
    step(equal, _CLONE3, 0, 1)
    step(answer, unknown)  # its flags are in memory; the C library takes clone then
    for numbers in CALLS.values():
        if numbers[column] != _NONE:
            step(equal, numbers[column], 0, 1)
            step(answer, refuse)
    own = os.getpid()
    only_if(_CLONE[column], any_bit, _THREAD)
    only_if(_KILL[column], equal, own)
    only_if(_TGKILL[column], equal, own)  # abort()
    only_if(_PRLIMIT64[column], equal, 0, own)
    # Landlock 1 and 2 let a file be truncated that is opened for reading.
    for number, flags in ((_OPENAT[column], 2), (_OPEN[column], 1)):
        if number != _NONE:
            step(equal, number, 0, 5)
            step(load, 16 + 8 * flags)
            step(masked, os.O_TRUNC | os.O_ACCMODE)
            step(equal, os.O_TRUNC, 0, 1)
            step(answer, refuse)
            step(answer, allow)
    step(answer, allow)
    return b"".join(struct.pack("<HBBI", *row) for row in program)


# --- confining -------------------------------------------------------------------------------------------------------


class _RefusedError(Exception):
    """The kernel refuses a step."""


def _library() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _checked(what: str, result: int) -> int:
    if result < 0:
        raise _RefusedError(f"{what}: {os.strerror(ctypes.get_errno())}")
    return result


def missing() -> str:
    """Return what this machine lacks for a sandbox; empty if it has all."""
    if sys.platform != "linux":
        return f"{sys.platform} has no Landlock"
    if platform.machine() not in _MACHINES:
        return f"there is no filter of system calls for {platform.machine()}"
    if _version(_library()) < 1:
        return "this kernel has no Landlock, or the container refuses it"
    return ""


def _version(library: ctypes.CDLL) -> int:
    return int(library.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(1)))


def confine(scratch: str) -> None:
    """Confine this process, which has one thread, for good: it writes below ``scratch`` and to /dev/null alone."""
    for limit, most in LIMITS.items():
        with suppress(ValueError, OSError):  # a lower limit is in force
            resource.setrlimit(limit, (most, most))
    library = _library()
    version = _checked("Landlock", _version(library))
    rights = sum(bits for first, bits in _RIGHTS.items() if first <= version)
    network = _NETWORK[1] if version >= _NETWORK[0] else 0
    scopes = _SCOPES[1] if version >= _SCOPES[0] else 0
    attributes = struct.pack("<QQQ", rights, network, scopes)
    size = 24 if scopes else 16 if network else 8
    rules = _checked(
        "Landlock", library.syscall(_CREATE_RULESET, attributes, ctypes.c_size_t(size), ctypes.c_uint32(0))
    )
    for path, allowed in ((scratch, rights), (os.devnull, rights & _OF_FILES)):
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
        rule = struct.pack("<Qi", allowed, place)
        _checked("Landlock", library.syscall(_ADD_RULE, rules, ctypes.c_int(1), rule, ctypes.c_uint32(0)))
        os.close(place)
    _drop_privileges(library)
    _checked("no_new_privs", library.prctl(38, 1, 0, 0, 0))
    _checked("Landlock", library.syscall(_RESTRICT_SELF, rules, ctypes.c_uint32(0)))
    os.close(rules)
    program = _filter(platform.machine())
    instructions = ctypes.create_string_buffer(program, len(program))
    pointer = struct.pack("@HP", len(program) // 8, ctypes.addressof(instructions))
    _checked("seccomp", library.prctl(22, 2, pointer, 0, 0))


_KEPT = {1, 2}
"""Capabilities that let root read a tree of another user: CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH."""


def _drop_privileges(library: ctypes.CDLL) -> None:
    """Leave root no privilege but to read; Landlock decides where it writes."""
    for capability in range(64):
        if capability not in _KEPT:
            library.prctl(
                24, capability, 0, 0, 0
            )  # PR_CAPBSET_DROP: fails without the privilege, and none is there then
    header = struct.pack("<Ii", 0x20080522, 0)
    sets = ctypes.create_string_buffer(24)
    _checked("capget", library.syscall(_CAPGET[platform.machine()], header, sets))
    words = list(struct.unpack("<6I", sets.raw))
    kept = sum(1 << capability for capability in _KEPT)
    low = [word & kept for word in words[:3]]
    low[2] = 0  # inheritable
    _checked("capset", library.syscall(_CAPGET[platform.machine()] + 1, header, struct.pack("<6I", *low, 0, 0, 0)))


_CAPGET = {"x86_64": 125, "aarch64": 90}


def main(scratch: str, *command: str) -> int:
    """Confine this process, and become the program."""
    try:
        confine(scratch)
    except (OSError, _RefusedError) as error:
        sys.stderr.write(f"{NAME}: {error}\n")
        return NOT_CONFINED
    try:
        os.execv(command[0], command)  # noqa: S606 - a program, not a text for a shell
    except OSError as error:
        sys.stderr.write(f"{command[0]}: {error.strerror}\n")
        return NOT_STARTED


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
