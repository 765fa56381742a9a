# Looks at host paths that may be granted, and brings those that are to the stage.
#
#   grants.py look <request>     one grant; answers what is at its path
#   grants.py mount              the request is on stdin; mounts each grant at its place, in this mount namespace
#
# The same checks are made both times, on a descriptor that was opened without following any link: what was checked is
# what is mounted, whatever happens to the path meanwhile. Who is refused ends with 78 and the reason on stdout.
import collections
import ctypes
import fnmatch
import json
import os
import re
import stat
import struct
import sys

OPEN_TREE, MOVE_MOUNT, OPENAT2, MOUNT_SETATTR = 428, 429, 437, 442
AT_FDCWD, AT_EMPTY_PATH, AT_RECURSIVE, OPEN_TREE_CLONE = -100, 0x1000, 0x8000, 1
MOVE_MOUNT_F_EMPTY_PATH, MOVE_MOUNT_T_EMPTY_PATH = 4, 0x40
NO_XDEV, NO_MAGICLINKS, NO_SYMLINKS, BENEATH = 1, 2, 4, 8
ATTR_RDONLY, ATTR_NOSUID, ATTR_NODEV, ATTR_IDMAP = 1, 2, 4, 0x100000
MS_NOSUID_NODEV, MNT_DETACH = 6, 2
CLONE_NEWUSER = 0x10000000
REFUSED = 78
# Nobody's: an id map must not be empty.
NO_ID = 0xFFFFFFFD
# The private uid ranges of sandboxes and of our own processes begin here.
OUR_IDS = 0x70000000
MAX_ENTRIES, MAX_FILES = 32768, 4096
# How far secrets are looked for, what is near the top first; and how many places of them can be masked.
MAX_SEARCHED, MAX_DEPTH, MAX_MASKS = 20000, 12, 256

# File systems that are windows into the kernel, wherever they are mounted.
KERNEL_FILES = {
    "autofs", "binder", "binfmt_misc", "bpf", "cgroup", "cgroup2", "configfs", "debugfs", "devpts", "devtmpfs", "efivarfs",
    "fusectl", "hugetlbfs", "mqueue", "nsfs", "proc", "pstore", "rpc_pipefs", "securityfs", "selinuxfs", "sysfs", "tracefs",
}

libc = ctypes.CDLL(None, use_errno=True)


class Refused(Exception):
    pass


def main():
    os.umask(0o022)
    if sys.argv[1] == "look":
        request = json.loads(sys.argv[2])
        (grant,) = request["grants"]
        print(json.dumps(look(request, grant)))
        return
    request = json.load(sys.stdin)
    root = request["root"]
    make_tmpfs(root, "size=64k,nr_inodes=1024")
    for grant in request["grants"]:
        os.makedirs(os.path.dirname(grant["place"]), 0o755, exist_ok=True)
        bring(request, grant, grant["place"])
    handle = os.open(root, os.O_PATH | os.O_DIRECTORY)
    set_attributes(handle, ATTR_RDONLY)
    os.close(handle)


def look(request, grant):
    handle, found = inspect(request, grant)
    if found["uid"] != 0 and grant["mode"] != "worktree":
        # Tried here already, so that a grant that cannot be mounted is not given.
        clone(handle, grant, found, request["user"])
    return {"kind": found["kind"], "dev": str(found["dev"]), "ino": str(found["ino"])}


def bring(request, grant, place):
    handle, found = inspect(request, grant)
    if (str(found["dev"]), str(found["ino"])) != (grant["dev"], grant["ino"]):
        raise Refused(f"What is at {grant['path']} is not what was granted.")
    tree = clone(handle, grant, found, request["user"])
    if found["kind"] == "file":
        os.close(os.open(place, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))
        return attach(tree, place)
    os.mkdir(place, 0o755)
    if grant["allowed"] or grant["blocked"]:
        return bring_view(tree, {**grant, "blocked": [*grant["blocked"], *request["buried"]]}, place)
    attach(tree, place)
    mask(place, found["secrets"], request["nothing"])


# What is at a path, opened, if it may be granted at all.
def inspect(request, grant):
    path = grant["path"]
    handle = open_exactly(path)
    status = os.fstat(handle)
    kind = "dir" if stat.S_ISDIR(status.st_mode) else "file" if stat.S_ISREG(status.st_mode) else "other"
    if kind == "other":
        raise Refused(f"{path} is neither a file nor a directory.")
    if grant["kind"] not in (None, kind):
        raise Refused(f"{path} is not a {grant['kind']}.")
    if status.st_nlink == 0 or (kind == "file" and status.st_nlink > 1):
        raise Refused(f"{path} has other names, or none any more.")
    if grant["mode"] == "worktree" and kind != "dir":
        raise Refused(f"{path} is not a directory, so it has no worktrees.")
    refuse_sensitive(request, path, handle, kind, grant["mode"])
    found = {"kind": kind, "dev": status.st_dev, "ino": status.st_ino, "uid": status.st_uid, "gid": status.st_gid}
    refuse_owner(grant, found)
    if grant["mode"] == "worktree":
        return handle, {**found, "secrets": []}
    found["secrets"] = find_secrets(handle, request["buried"]) if kind == "dir" else []
    if grant["mode"] == "rw" and found["secrets"]:
        raise Refused(f"{path} has secrets in it ({found['secrets'][0]}), so it cannot be granted for writing.")
    if found["secrets"] and not grant["isMaskable"]:
        raise Refused(f"{path} has secrets in it ({found['secrets'][0]}); below /grants they can be masked.")
    return handle, found


def open_exactly(path):
    how = struct.pack("QQQ", os.O_PATH | os.O_CLOEXEC, 0, NO_SYMLINKS | NO_MAGICLINKS)
    try:
        return call(OPENAT2, AT_FDCWD, os.fsencode(path), how, len(how))
    except OSError as error:
        raise Refused(f"{path} cannot be opened without following a link: {error.strerror}.") from error


# Where secrets lie below a directory, as far as it is looked through: a search, for what is near the top, and no wall.
def find_secrets(handle, names):
    secrets, wanted, seen = [], set(names), 0
    places = collections.deque([("", 0)])
    while places and seen < MAX_SEARCHED and len(secrets) < MAX_MASKS:
        prefix, depth = places.popleft()
        for name, is_directory in list_directory(handle, prefix):
            seen += 1
            if name in wanted:
                secrets.append(prefix + name)
            elif is_directory and depth < MAX_DEPTH:
                places.append((f"{prefix}{name}/", depth + 1))
    return secrets


def list_directory(handle, inner):
    try:
        directory = open_beneath(handle, inner or ".", os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        # Gone meanwhile, or another mount, which is not brought along.
        return []
    try:
        with os.scandir(directory) as entries:
            return sorted((entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries)
    finally:
        os.close(directory)


def open_beneath(handle, inner, flags):
    how = struct.pack("QQQ", flags | os.O_CLOEXEC, 0, BENEATH | NO_XDEV | NO_SYMLINKS | NO_MAGICLINKS)
    return call(OPENAT2, handle, os.fsencode(inner), how, len(how))


# An empty directory or file over each: what lies there is not seen.
def mask(place, secrets, nothing):
    if not secrets:
        return
    if not os.path.exists(nothing):
        os.close(os.open(nothing, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o444))
    root = os.open(place, os.O_PATH | os.O_DIRECTORY)
    for secret in secrets:
        handle = open_beneath(root, secret, os.O_PATH)
        if stat.S_ISDIR(os.fstat(handle).st_mode):
            make_tmpfs(f"/proc/self/fd/{handle}", "size=4k,nr_inodes=2")
        else:
            tree = call(OPEN_TREE, AT_FDCWD, os.fsencode(nothing), OPEN_TREE_CLONE | os.O_CLOEXEC)
            call(MOVE_MOUNT, tree, b"", handle, b"", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH)
            os.close(tree)
        os.close(handle)
    set_attributes(root, ATTR_RDONLY | ATTR_NOSUID | ATTR_NODEV, flags=AT_RECURSIVE)
    os.close(root)


def refuse_owner(grant, found):
    if max(found["uid"], found["gid"]) >= OUR_IDS:
        raise Refused(f"{grant['path']} belongs to Airlock itself, or to a sandbox.")
    if grant["mode"] == "rw" and 0 in (found["uid"], found["gid"]):
        raise Refused(f"{grant['path']} belongs to root, so it cannot be granted for writing.")


# By name, and by where it is in its file system: a bind mount gives a place another name.
# Of a worktree only what was committed is ever seen, so it may lie in the home of root, and have names of secrets in it.
def refuse_sensitive(request, path, handle, kind, mode):
    mounts = read_mounts()
    device, place, type_ = locate(mounts, handle)
    if type_ in KERNEL_FILES:
        raise Refused(f"{path} is a part of the kernel ({type_}).")
    names = [path] if place == path else [path, place]
    is_worktree = mode == "worktree"
    for other in request["closed"]:
        if is_worktree and other == "/root" and path.startswith("/root/"):
            continue
        there = locate_path(mounts, other)
        within = is_within(path, other) or (there and there[0] == device and is_within(place, there[1]))
        if within or holds(path, (device, place), other, there):
            raise Refused(f"{path} is, is in, or has in it {other}, which is never granted.")
    for home in request["homes"]:
        if holds(path, (device, place), home, locate_path(mounts, home)):
            raise Refused(f"{path} is or has in it the home directory {home}; grant a directory in it.")
    for secret in request["secrets"]:
        if any(f"/{secret}/" in f"{name}/" for name in names):
            raise Refused(f"{path} is for secrets ({secret}), which are never granted.")
        if kind == "dir" and not is_worktree and exists(handle, secret):
            raise Refused(f"{path} has secrets in it ({secret}).")


def holds(path, at, other, there):
    device, place = at
    return is_within(other, path) or (there is not None and there[0] == device and is_within(there[1], place))


def is_within(path, directory):
    return path == directory or path.startswith(directory if directory == "/" else directory + "/")


def exists(handle, name):
    try:
        os.stat(name, dir_fd=handle, follow_symlinks=False)
        return True
    except FileNotFoundError:
        return False
    except NotADirectoryError:
        return False


def read_mounts():
    mounts = {}
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
        for line in file:
            fields = line.split(" ")
            type_ = fields[fields.index("-") + 1]
            mounts[fields[0]] = (fields[2], unescape(fields[3]), unescape(fields[4]), type_)
    return mounts


def unescape(text):
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), text)


# The file system of what is open, the path in it, and its type.
def locate(mounts, handle):
    with open(f"/proc/self/fdinfo/{handle}", encoding="ascii") as file:
        number = re.search(r"^mnt_id:\s*(\d+)$", file.read(), re.MULTILINE)[1]
    if number not in mounts:
        raise Refused("It is not in a mount of this host.")
    device, root, point, type_ = mounts[number]
    path = os.readlink(f"/proc/self/fd/{handle}")
    if not is_within(path, point):
        raise Refused("It is not where it was.")
    rest = path[len(point):] if point != "/" else path
    return device, os.path.normpath(f"{root}/{rest.lstrip('/')}").replace("//", "/"), type_


def locate_path(mounts, path):
    try:
        handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        # Not there: then nothing of it can be granted by another name.
        return None
    try:
        return locate(mounts, handle)[:2]
    finally:
        os.close(handle)


# A mount of exactly what is open, attached nowhere yet, without whatever is mounted below it. The owner is the user of
# the sandbox; root is nobody there, so that of its files only what everybody may read can be read.
def clone(handle, grant, found, user):
    tree = call(OPEN_TREE, handle, b"", AT_EMPTY_PATH | OPEN_TREE_CLONE | os.O_CLOEXEC)
    attributes = ATTR_NOSUID | ATTR_NODEV | (ATTR_RDONLY if grant["mode"] == "ro" else 0)
    if found["uid"] == 0:
        set_attributes(tree, attributes)
        return tree
    namespace = make_map(found["uid"], found["gid"] or NO_ID, user)
    try:
        set_attributes(tree, attributes | ATTR_IDMAP, namespace=namespace)
    except OSError as error:
        raise Refused(f"The file system of {grant['path']} cannot map owners: {error.strerror}.") from error
    finally:
        os.close(namespace)
    return tree


def set_attributes(tree, attributes, namespace=0, flags=0):
    packed = struct.pack("QQQQ", attributes, 0, 0, namespace)
    call(MOUNT_SETATTR, tree, b"", AT_EMPTY_PATH | flags, packed, len(packed))


# A user namespace that says who the owner is inside. Its only process ends before this returns.
def make_map(uid, gid, user):
    # Each closes the end that is the other's: whoever fails, the other does not wait for it.
    ready, go = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        os.close(ready[0])
        os.close(go[1])
        done = libc.unshare(CLONE_NEWUSER)
        if done == 0:
            os.write(ready[1], b"x")
            os.read(go[0], 1)
        os._exit(0)
    os.close(ready[1])
    os.close(go[0])
    try:
        if not os.read(ready[0], 1):
            raise Refused("This host has no user namespaces.")
        for name, owner in (("uid_map", uid), ("gid_map", gid)):
            with open(f"/proc/{child}/{name}", "w", encoding="ascii") as file:
                file.write(f"{owner} {user} 1")
        return os.open(f"/proc/{child}/ns/user", os.O_RDONLY | os.O_CLOEXEC)
    finally:
        os.close(ready[0])
        os.close(go[1])
        os.waitpid(child, 0)


# Only what the patterns leave, file by file: whatever is made or moved there later is not seen.
def bring_view(tree, grant, place):
    hidden = f"{place}.tree"
    os.mkdir(hidden, 0o700)
    attach(tree, hidden)
    make_tmpfs(place, f"size=16m,nr_inodes={MAX_ENTRIES * 2}")
    root = os.open(hidden, os.O_RDONLY | os.O_DIRECTORY)
    View(grant, place).fill(root, "")
    os.close(root)
    check(libc.umount2(os.fsencode(hidden), MNT_DETACH))
    os.rmdir(hidden)
    view = os.open(place, os.O_PATH | os.O_DIRECTORY)
    set_attributes(view, ATTR_RDONLY | ATTR_NOSUID | ATTR_NODEV, flags=AT_RECURSIVE)
    os.close(view)


def make_tmpfs(place, options):
    check(libc.mount(b"grant", os.fsencode(place), b"tmpfs", MS_NOSUID_NODEV, f"mode=755,{options}".encode()))


class View:
    def __init__(self, grant, place):
        self.path, self.place = grant["path"], place
        self.allowed, self.blocked = grant["allowed"], grant["blocked"]
        self.entries = self.files = 0

    def fill(self, directory, prefix):
        for name in sorted(os.listdir(directory)):
            self.count("entries", MAX_ENTRIES)
            inner = f"{prefix}{name}"
            if matches(inner, self.blocked):
                continue
            handle = os.open(name, os.O_PATH | os.O_NOFOLLOW, dir_fd=directory)
            try:
                self.show(handle, inner)
            finally:
                os.close(handle)

    def show(self, handle, inner):
        mode = os.fstat(handle).st_mode
        if stat.S_ISDIR(mode):
            opened = os.open(".", os.O_RDONLY | os.O_DIRECTORY, dir_fd=handle)
            try:
                return self.fill(opened, f"{inner}/")
            finally:
                os.close(opened)
        if self.allowed and not matches(inner, self.allowed):
            return None
        shown = f"{self.place}/{inner}"
        if stat.S_ISLNK(mode):
            os.makedirs(os.path.dirname(shown), 0o755, exist_ok=True)
            os.symlink(os.readlink("", dir_fd=handle), shown)
        if stat.S_ISREG(mode):
            self.count("files", MAX_FILES)
            os.makedirs(os.path.dirname(shown), 0o755, exist_ok=True)
            os.close(os.open(shown, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))
            attach(call(OPEN_TREE, handle, b"", AT_EMPTY_PATH | OPEN_TREE_CLONE | os.O_CLOEXEC), shown)
        return None

    def count(self, what, limit):
        setattr(self, what, getattr(self, what) + 1)
        if getattr(self, what) > limit:
            raise Refused(f"{self.path} has more than {limit} {what}, too many for patterns.")


# A pattern without a slash is for names at any depth; one that matches a directory covers all that is in it.
def matches(path, patterns):
    names = path.split("/")
    ways = [names[:end] for end in range(1, len(names) + 1)]
    return any(match(way, expand(pattern)) for way in ways for pattern in patterns)


def expand(pattern):
    names = [name for name in pattern.split("/") if name]
    return names if "/" in pattern.rstrip("/") else ["**", *names]


# All ways through the pattern at once, so that no pattern takes long.
def match(names, pattern):
    places = skip_depths({0}, pattern)
    for name in names:
        stay = {at for at in places if at < len(pattern) and pattern[at] == "**"}
        step = {at + 1 for at in places - stay if at < len(pattern) and fnmatch.fnmatchcase(name, pattern[at])}
        places = skip_depths(stay | step, pattern)
    return len(pattern) in places


def skip_depths(places, pattern):
    reached = set(places)
    for at in range(len(pattern)):
        if at in reached and pattern[at] == "**":
            reached.add(at + 1)
    return reached


def attach(tree, place):
    call(MOVE_MOUNT, tree, b"", AT_FDCWD, os.fsencode(place), MOVE_MOUNT_F_EMPTY_PATH)
    os.close(tree)


def call(number, *arguments):
    return check(libc.syscall(number, *arguments))


def check(result):
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


try:
    main()
except Refused as reason:
    print(reason)
    sys.exit(REFUSED)
