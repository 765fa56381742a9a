# What the programs of worktrees share: opening without links, giving up rights, names that git must never have, and git
# without any configuration but ours.
import ctypes
import os
import resource
import signal
import struct
import subprocess
import unicodedata

OPENAT2 = 437
NO_MAGICLINKS, NO_SYMLINKS, BENEATH = 2, 4, 8
PR_SET_PDEATHSIG, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 1, 24, 38
CAPABILITY_VERSION = 0x20080522
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT, MS_NOSYMFOLLOW, MS_BIND = 1, 2, 4, 8, 32, 256, 4096
# How a program ends when it refuses, with the reason on stdout; and when a bound was reached.
REFUSED, TOO_LARGE, CHANGED = 78, 79, 80
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

libc = ctypes.CDLL(None, use_errno=True)


class Refused(Exception):
    exit_code = REFUSED


class TooLarge(Refused):
    exit_code = TOO_LARGE


class Changed(Refused):
    exit_code = CHANGED


def check(result):
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


# A path of the host, as it is: a link in any part of it is an error.
def open_exactly(path, flags):
    return open_how(-100, os.fsencode(path), flags, NO_SYMLINKS | NO_MAGICLINKS)


# A path below an open directory, never outside of it and never by a link.
def open_beneath(directory, path, flags, mode=0):
    return open_how(directory, os.fsencode(path), flags, BENEATH | NO_SYMLINKS | NO_MAGICLINKS, mode)


def open_how(directory, path, flags, resolve, mode=0):
    how = struct.pack("QQQ", flags | os.O_CLOEXEC, mode, resolve)
    return check(libc.syscall(OPENAT2, directory, path, how, len(how)))


def read_beneath(directory, path, limit):
    try:
        handle = open_beneath(directory, path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return None
    with os.fdopen(handle, "rb") as file:
        content = file.read(limit + 1)
    return content if len(content) <= limit else None


def mount(source, place, kind, flags, options=""):
    # Ownership of the strings stays here: the kernel has copied them when the call returns.
    arguments = [os.fsencode(text) if text is not None else None for text in (source, place, kind)]
    check(libc.mount(*arguments, ctypes.c_ulong(flags), os.fsencode(options)))


def bind(source, place, flags=0):
    mount(source, place, None, MS_BIND)
    mount(source, place, None, MS_BIND | MS_REMOUNT | MS_NOSUID | MS_NODEV | MS_NOEXEC | flags)


# From here on the process is this user without any right, and so is all that it starts.
def drop(uid, gid):
    for capability in range(64):
        if libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) < 0:
            break
    os.setgroups([])
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)
    header = struct.pack("Ii", CAPABILITY_VERSION, 0)
    check(libc.capset(header, bytes(24)))
    check(libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))


def git_environment(git_dir, **more):
    return {
        "PATH": PATH, "LC_ALL": "C", "HOME": "/nonexistent", "GIT_DIR": git_dir,
        "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_ATTR_NOSYSTEM": "1",
        "GIT_NO_REPLACE_OBJECTS": "1", "GIT_NO_LAZY_FETCH": "1", "GIT_ALLOW_PROTOCOL": "none",
        "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", **more,
    }


# `user`: who runs it, when that is not already who we are. `limit`: the largest file that it may write.
def start_git(arguments, environment, user=None, limit=None, **options):
    def prepare():
        if user is not None:
            drop(user, user)
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    plain = ["-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "pack.threads=1"]
    return subprocess.Popen(["git", *plain, *arguments], env=environment, cwd="/", preexec_fn=prepare, **options)


def run_git(arguments, environment, given=b"", **options):
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    child = start_git(arguments, environment, **pipes)
    said, errors = child.communicate(given if pipes["stdin"] == subprocess.PIPE else None)
    return child.returncode, said, errors


# A git directory of ours: no hook, no template, no remote, no configuration but the format of its objects.
def make_git_dir(place, object_format):
    for name in ("", "refs", "refs/heads", "objects", "objects/pack", "objects/info"):
        os.makedirs(f"{place}/{name}", 0o755, exist_ok=True)
    version = 0 if object_format == "sha1" else 1
    lines = ["[core]", f"\trepositoryformatversion = {version}", "\tbare = true"]
    if version == 1:
        lines += ["[extensions]", f"\tobjectformat = {object_format}"]
    for name, text in (("HEAD", "ref: refs/heads/none\n"), ("config", "\n".join(lines) + "\n")):
        with open(f"{place}/{name}", "w", encoding="ascii") as file:
            file.write(text)


# What file systems of Apple ignore in a name.
IGNORABLE = {chr(code) for code in (*range(0x200C, 0x2010), *range(0x202A, 0x202F), *range(0x206A, 0x2070), 0xFEFF)}


# A name as the most forgiving file system reads it.
def folded(name):
    text = "".join(character for character in name if character not in IGNORABLE)
    plain = unicodedata.normalize("NFC", text).casefold()
    return plain.split(":", 1)[0].rstrip(" .") or plain


def is_git_name(name):
    plain = folded(name)
    return plain == ".git" or (plain.startswith("git~") and plain[4:].isdigit())


# Why git must not have a path, or None.
def why_not_path(path):
    parts = path.split("/")
    if any(part in ("", ".", "..") for part in parts):
        return "is not a plain path"
    if any(is_git_name(part) for part in parts):
        return "has a part that is a name of .git"
    if len(parts) > 128 or len(os.fsencode(path)) > 4095 or any(len(os.fsencode(part)) > 255 for part in parts):
        return "is too deep or too long"
    return None
