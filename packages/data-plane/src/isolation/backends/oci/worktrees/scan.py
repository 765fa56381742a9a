# Seals the work of a sandbox: every difference between its worktree and the base, read from its disk from outside:
#
#   scan.py    the request is JSON on stdin; the sealed copy is a directory; answers the manifest
#
# Nothing of the tree is run and no link is followed. Names are bytes: what is not UTF-8 comes as lone surrogates. The disk is
# mounted a second time, read-only and where only this process sees it.
import hashlib
import json
import os
import re
import signal
import stat
import subprocess
import sys
import zlib

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from confine import (  # noqa: E402
    MS_BIND, MS_NODEV, MS_NOEXEC, MS_NOSUID, MS_RDONLY, MS_REMOUNT, Refused, TooLarge, bind, git_environment, is_git_name, mount, open_beneath,
    read_beneath, run_git, start_git, why_not_path,
)

LINK, FILE, PROGRAM, GITLINK, TREE = "120000", "100644", "100755", "160000", "40000"
MAX_ENTRIES, MAX_COMMITS, MAX_COMMIT, MAX_IGNORE = 500_000, 1000, 1 << 20, 1 << 20
MAX_LEFT_OUT = 1000
HEX = re.compile(r"(?:[0-9a-f]{40}|[0-9a-f]{64})\Z")


def main():
    os.umask(0o022)
    request = json.load(sys.stdin)
    with open(f"{request['dir']}/listing.json", encoding="ascii") as file:
        listing = json.load(file)
    stage = Stage(request)
    root = stage.open_worktree(request["name"])
    walk = Walk(root)
    known = {path: Known(*facts) for path, *facts in listing["entries"]}
    walk.run({path for path, entry in known.items() if entry.mode == GITLINK})
    ignored = stage.ignored(root, [path for path in walk.found if path not in known], walk)
    seal = Seal(request, listing, root)
    for path, status in walk.found.items():
        if path not in ignored:
            seal.take(path, status, known.get(path))
    for path, entry in known.items():
        if entry.mode == GITLINK and path in walk.directories:
            seal.entries[path] = (GITLINK, entry.oid)
    changes = seal.changes(known)
    tree = seal.write_trees(listing["trees"])
    patch = stage.make_patch(listing["tree"], tree, request["maxPatch"]) if changes else True
    commits, complete = read_commits(root, listing["commit"], listing["format"])
    left_out = sorted(walk.left_out)
    print(json.dumps({
        "tree": tree, "changes": changes, "ignored": len(ignored), "patch": patch, "commits": commits,
        "commitsComplete": complete, "leftOut": left_out[:MAX_LEFT_OUT], "leftOutCount": len(left_out), "objects": seal.new_trees,
    }))


class Known:
    def __init__(self, mode, oid, inode, changed, size):
        self.mode, self.oid, self.inode, self.changed, self.size = mode, oid, inode, changed, size

    def is_as_it_was(self, status):
        return (status.st_ino, status.st_ctime_ns, status.st_size) == (self.inode, self.changed, self.size)


class Stage:
    def __init__(self, request):
        self.place, self.user = request["stage"], request["builder"]
        mount("worktree", self.place, "tmpfs", MS_NOSUID | MS_NODEV, "mode=755,size=128m")
        for name in ("git", "disk", "seal", "ignore", "out"):
            os.mkdir(f"{self.place}/{name}")
        bind(f"{request['dir']}/base", f"{self.place}/git", MS_RDONLY)
        os.makedirs(f"{request['seal']}/objects/info", 0o755)
        bind(request["seal"], f"{self.place}/seal")
        # A second mount of a device that is in use must be writable; it is closed at once.
        mount(f"/dev/{request['device']}", f"{self.place}/disk", "ext4", MS_NOSUID | MS_NODEV | MS_NOEXEC, "noinit_itable")
        mount(None, f"{self.place}/disk", None, MS_BIND | MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC)

    def open_worktree(self, name):
        workspace = os.open(f"{self.place}/disk/workspace", os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            return open_beneath(workspace, name, os.O_RDONLY | os.O_DIRECTORY)
        except OSError as error:
            raise Refused(f"The worktree at /workspace/{name} was removed or replaced: {error.strerror}.") from error

    # Files that the base does not have and that a .gitignore of the worktree names. Those files alone are shown to git.
    def ignored(self, root, untracked, walk):
        rules = [path for path in walk.found if os.path.basename(path) == ".gitignore" and stat.S_ISREG(walk.found[path].st_mode)]
        if not rules or not untracked:
            return set()
        for path in rules:
            content = read_beneath(root, path, MAX_IGNORE)
            if content is None:
                continue
            os.makedirs(f"{self.place}/ignore/{os.path.dirname(path)}", 0o755, exist_ok=True)
            with open(f"{self.place}/ignore/{path}", "xb") as file:
                file.write(content)
        environment = git_environment(f"{self.place}/git", GIT_WORK_TREE=f"{self.place}/ignore")
        given = b"\0".join(os.fsencode(path) for path in untracked) + b"\0"
        arguments = ["-C", f"{self.place}/ignore", "-c", "core.bare=false", "-c", "core.excludesFile=/dev/null", "check-ignore", "--no-index", "-z", "--stdin"]
        code, said, errors = run_git(arguments, environment, given, user=self.user)
        if code not in (0, 1):
            raise Refused(f"The .gitignore of the worktree cannot be read: {os.fsdecode(errors).strip()[-200:]}")
        return {os.fsdecode(name) for name in said.split(b"\0")[:-1]}

    # Whether there is a patch: one that would be larger than the bound is none.
    def make_patch(self, base, tree, limit):
        environment = git_environment(f"{self.place}/git", GIT_OBJECT_DIRECTORY=f"{self.place}/seal/objects",
                                      GIT_ALTERNATE_OBJECT_DIRECTORIES=f"{self.place}/git/objects")
        asked = ["diff-tree", "-r", "-p", "--binary", "--full-index", "--no-renames", "--no-ext-diff", "--no-textconv", base, tree]
        with open(f"{self.place}/seal/patch", "xb") as file:
            child = start_git(asked, environment, user=self.user, limit=limit, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.PIPE)
            _, errors = child.communicate()
        if child.returncode == 0:
            return True
        os.unlink(f"{self.place}/seal/patch")
        if child.returncode != -signal.SIGXFSZ:
            raise Refused(f"The patch could not be made: {os.fsdecode(errors).strip()[-200:]}")
        return False


# Everything in the worktree but its own .git, by lstat alone.
class Walk:
    def __init__(self, root):
        self.root, self.found, self.directories, self.left_out = root, {}, set(), []

    def run(self, gitlinks):
        places = [""]
        while places:
            prefix = places.pop()
            if prefix[:-1] in gitlinks:
                self.leave_out_submodule(prefix)
                continue
            directory = open_beneath(self.root, prefix or ".", os.O_RDONLY | os.O_DIRECTORY)
            try:
                with os.scandir(directory) as entries:
                    for entry in entries:
                        self.look(prefix, entry, places)
            finally:
                os.close(directory)

    def leave_out_submodule(self, prefix):
        directory = open_beneath(self.root, prefix, os.O_RDONLY | os.O_DIRECTORY)
        with os.scandir(directory) as entries:
            if any(True for _ in entries):
                self.left_out.append([prefix[:-1], "submodule"])
        os.close(directory)

    def look(self, prefix, entry, places):
        path = prefix + entry.name
        if path == ".git":
            return
        if is_git_name(entry.name) or why_not_path(path) is not None:
            self.left_out.append([path, "git-name"])
            return
        status = entry.stat(follow_symlinks=False)
        if stat.S_ISDIR(status.st_mode):
            self.directories.add(path)
            places.append(f"{path}/")
        elif stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode):
            self.found[path] = status
        else:
            self.left_out.append([path, "special"])
        if len(self.found) + len(self.directories) + len(self.left_out) > MAX_ENTRIES:
            raise TooLarge(f"The worktree has more than {MAX_ENTRIES} files.")


# The new objects, and of each path what a tree says of it.
class Seal:
    def __init__(self, request, listing, root):
        self.request, self.root, self.algorithm = request, root, listing["format"]
        self.entries, self.facts, self.new_trees = {}, {}, []
        self.base = {entry[2] for entry in listing["entries"]}
        self.bytes = 0

    def take(self, path, status, known):
        is_link = stat.S_ISLNK(status.st_mode)
        mode = LINK if is_link else PROGRAM if status.st_mode & 0o100 else FILE
        if known is not None and known.is_as_it_was(status) and (mode == LINK) == (known.mode == LINK):
            self.entries[path] = (mode, known.oid)
            return
        content = os.fsencode(self.read_link(path)) if is_link else self.read(path)
        oid = self.write(b"blob", content)
        self.entries[path] = (mode, oid)
        self.facts[path] = (hashlib.sha256(content).hexdigest(), len(content))

    def read_link(self, path):
        handle = open_beneath(self.root, path, os.O_PATH | os.O_NOFOLLOW)
        try:
            return os.readlink("", dir_fd=handle)
        finally:
            os.close(handle)

    def read(self, path):
        handle = open_beneath(self.root, path, os.O_RDONLY | os.O_NONBLOCK)
        with os.fdopen(handle, "rb") as file:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise Refused("The worktree changed while it was read. Try again when nothing writes to it.")
            content = file.read(self.request["maxFile"] + 1)
        self.bytes += len(content)
        if len(content) > self.request["maxFile"]:
            raise TooLarge(f"{path!r} is larger than {self.request['maxFile'] >> 20} MiB: remove it, or name it in .gitignore.")
        if self.bytes > self.request["maxBytes"]:
            raise TooLarge(f"The changed files are larger than {self.request['maxBytes'] >> 20} MiB together.")
        return content

    def write(self, kind, content):
        raw = kind + b" %d\0" % len(content) + content
        oid = hashlib.new(self.algorithm, raw).hexdigest()
        place = f"{self.request['seal']}/objects/{oid[:2]}"
        if os.path.exists(f"{place}/{oid[2:]}"):
            return oid
        os.makedirs(place, 0o755, exist_ok=True)
        with open(f"{place}/{oid[2:]}", "xb") as file:
            file.write(zlib.compress(raw, 1))
        return oid

    # A path that is a file now and was a directory, or the other way round, is a deletion and additions.
    def changes(self, known):
        changed = []
        for path in sorted(set(known) | set(self.entries), key=os.fsencode):
            old = (known[path].mode, known[path].oid) if path in known else None
            new = self.entries.get(path)
            if old == new:
                continue
            sha256, size = self.facts.get(path, (None, None)) if new else (None, None)
            changed.append({"path": path, "oldMode": old and old[0], "newMode": new and new[0], "oldOid": old and old[1],
                            "newOid": new and new[1], "sha256": sha256, "size": size, "isNew": bool(new) and new[1] not in self.base and new[0] != GITLINK})
        if len(changed) > self.request["maxChanges"]:
            raise TooLarge(f"{len(changed)} files are changed; at most {self.request['maxChanges']} can leave at once.")
        return changed

    def write_trees(self, base):
        known = set(base.values())
        tree = {}
        for path, entry in self.entries.items():
            place = tree
            *parents, name = path.split("/")
            for parent in parents:
                place = place.setdefault(parent, {})
            place[name] = entry
        return self.write_tree(tree, known)

    def write_tree(self, tree, known):
        lines = []
        for name, entry in tree.items():
            mode, oid = (TREE, self.write_tree(entry, known)) if isinstance(entry, dict) else entry
            # git sorts directories as if their names ended with a slash.
            key = os.fsencode(name) + (b"/" if mode == TREE else b"")
            lines.append((key, f"{mode} ".encode() + os.fsencode(name) + b"\0" + bytes.fromhex(oid)))
        content = b"".join(line for _, line in sorted(lines))
        raw = b"tree %d\0" % len(content) + content
        oid = hashlib.new(self.algorithm, raw).hexdigest()
        if oid not in known:
            known.add(oid)
            self.write(b"tree", content)
            self.new_trees.append([oid, hashlib.sha256(content).hexdigest()])
        return oid


# Commits that were made inside, newest first, by reading its .git as data; whether all of them could be read.
def read_commits(root, base, object_format):
    try:
        git_dir = open_beneath(root, ".git", os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return [], False
    oid = read_head(git_dir)
    commits = []
    while oid is not None and oid != base:
        raw = read_object(git_dir, oid)
        if raw is None or len(commits) >= MAX_COMMITS:
            return commits, False
        headers, _, message = raw.partition(b"\n\n")
        parents = re.findall(rb"^parent ([0-9a-f]+)$", headers, re.MULTILINE)
        subject = message.split(b"\n", 1)[0][:200].decode("utf-8", "replace")
        commits.append({"id": oid, "subject": subject})
        if len(parents) != 1:
            return commits, False
        oid = parents[0].decode()
    return commits, oid == base


def read_head(git_dir):
    name = "HEAD"
    for _ in range(5):
        text = (read_beneath(git_dir, name, 4096) or b"").decode("latin-1").strip()
        if HEX.match(text):
            return text
        if not text.startswith("ref: refs/"):
            return None
        name = text[5:]
    return None


def read_object(git_dir, oid):
    raw = read_beneath(git_dir, f"objects/{oid[:2]}/{oid[2:]}", MAX_COMMIT) if HEX.match(oid) else None
    if raw is None:
        return None
    try:
        content = zlib.decompressobj().decompress(raw, MAX_COMMIT)
    except zlib.error:
        return None
    return content.split(b"\0", 1)[1] if content.startswith(b"commit ") and b"\0" in content else None


try:
    main()
except Refused as reason:
    print(str(reason).encode("utf-8", "backslashreplace").decode())
    sys.exit(reason.exit_code)
except OSError as error:
    if error.filename is None and error.errno not in (2, 20, 40):
        raise
    print("The worktree changed while it was read. Try again when nothing writes to it.")
    sys.exit(Refused.exit_code)
