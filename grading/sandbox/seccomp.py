"""Which calls to the kernel a program in the sandbox can't make, as the filter that bubblewrap loads."""

import errno
import os
from functools import cache

from exercises.handed.checks import CouldNotDecide

# What a checker never needs, and what has been a way out of sandboxes. All answer EPERM.
DENIED = """
ptrace process_vm_readv process_vm_writev process_madvise kcmp pidfd_open pidfd_getfd pidfd_send_signal
memfd_create memfd_secret userfaultfd io_uring_setup io_uring_enter io_uring_register bpf perf_event_open
socket socketpair bind listen accept accept4 connect
mount umount2 pivot_root chroot move_mount open_tree fsopen fsconfig fsmount fspick mount_setattr swapon swapoff
unshare setns name_to_handle_at open_by_handle_at mknod mknodat quotactl acct reboot syslog
keyctl add_key request_key init_module finit_module delete_module kexec_load kexec_file_load
shmget shmat shmctl semget semop semtimedop semctl msgget msgsnd msgrcv msgctl mq_open mq_unlink
fanotify_init inotify_init inotify_init1 personality iopl ioperm settimeofday clock_settime adjtimex clock_adjtime
sethostname setdomainname vhangup lookup_dcookie nfsservctl mbind set_mempolicy migrate_pages move_pages
execveat
""".split()  # noqa: SIM905  a list of ninety strings reads worse
NAMESPACES = 0x7E020000  # every CLONE_NEW… flag of clone(2)


@cache
def program() -> bytes:
    """The filter, as the kernel takes it. Raises CouldNotDecide where libseccomp is not there."""
    try:
        import pyseccomp as seccomp

        made = seccomp.SyscallFilter(seccomp.ALLOW)
    except Exception as missing:
        raise CouldNotDecide(
            f"There is no sandbox here: libseccomp can't be loaded ({missing}); apt-get install libseccomp2."
        ) from missing
    for name in DENIED:
        try:
            made.add_rule(seccomp.ERRNO(errno.EPERM), name)
        except Exception:  # noqa: S112  a call that this kernel or this libseccomp has not got
            continue
    # Its flags can't be read by a filter: "not there" makes the C library use clone(2), whose flags can.
    made.add_rule(seccomp.ERRNO(errno.ENOSYS), "clone3")
    for bit in (bit for bit in range(32) if NAMESPACES >> bit & 1):
        made.add_rule(seccomp.ERRNO(errno.EPERM), "clone", seccomp.Arg(0, seccomp.MASKED_EQ, 1 << bit, 1 << bit))
    return _exported(made)


def _exported(made: object) -> bytes:
    read, write = os.pipe()
    with os.fdopen(read, "rb") as reading:
        with os.fdopen(write, "wb") as writing:
            made.export_bpf(writing)  # type: ignore[attr-defined]
        return reading.read()
