# Puts the tree of a commit onto the disk of a sandbox, before any code of the user ran there:
#
#   place.py    the request is JSON on stdin: the pack, the commit, the loop device; answers what was placed
#
# The tree is by objects and byte for byte: no attribute, filter or line ending is applied. Beside it is a private .git with
# one commit, which holds the tree and nothing else of the repository. Files belong to the user of the sandbox.
import collections
import hashlib
import json
import os
import stat
import subprocess
import sys
import time
import zlib

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from confine import (  # noqa: E402
    MS_NODEV, MS_NOEXEC, MS_NOSUID, Refused, TooLarge, bind, git_environment, make_git_dir, mount, open_beneath, run_git,
    start_git, why_not_path,
)

LINK, FILE, PROGRAM, GITLINK = "120000", "100644", "100755", "160000"
BLOCK = 4096

Entry = collections.namedtuple("Entry", "path mode oid size")


def main():
    os.umask(0o022)
    request = json.load(sys.stdin)
    stage, user = request["stage"], request["builder"]
    mount("worktree", stage, "tmpfs", MS_NOSUID | MS_NODEV, "mode=755,size=1m")
    os.mkdir(f"{stage}/git")
    os.mkdir(f"{stage}/disk")
    base = f"{request['dir']}/base"
    make_git_dir(base, request["format"])
    bind(base, f"{stage}/git")
    git = Git(f"{stage}/git", user)
    git.take_pack(f"{request['dir']}/base.pack", request["maxBytes"])
    entries, trees = git.list_tree(request["tree"])
    mount(f"/dev/{request['device']}", f"{stage}/disk", "ext4", MS_NOSUID | MS_NODEV | MS_NOEXEC, "noinit_itable")
    workspace = os.open(f"{stage}/disk/workspace", os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    assert_room(workspace, entries, os.path.getsize(f"{request['dir']}/base.pack"))
    place = Place(workspace, git, request)
    listing = place.fill(entries)
    commit = place.make_private_git(f"{base}/objects/pack")
    place.finish()
    kept = {"entries": listing, "trees": trees, "commit": commit, "tree": request["tree"], "format": request["format"]}
    with open(f"{request['dir']}/listing.json", "x", encoding="ascii") as file:
        json.dump(kept, file)
    files = sum(1 for entry in entries if entry.mode != GITLINK)
    print(json.dumps({"commit": commit, "files": files, "bytes": sum(entry.size for entry in entries)}))


class Git:
    def __init__(self, directory, user):
        self.user, self.environment = user, git_environment(directory)
        self.directory = directory

    # Ids are made anew of what the pack holds: what is not the tree that was asked for is not there afterwards.
    def take_pack(self, path, limit):
        objects = f"{self.directory}/objects/pack"
        os.chown(objects, self.user, self.user)
        with open(path, "rb") as pack:
            code, _, errors = run_git(["index-pack", "--stdin", f"--max-input-size={limit}"], self.environment, user=self.user, stdin=pack)
        os.chown(objects, 0, 0)
        if code != 0:
            raise Refused(f"The commit cannot be read: {os.fsdecode(errors).strip()[-200:]}")

    def list_tree(self, tree):
        code, said, _ = run_git(["ls-tree", "-r", "-t", "-z", "-l", "--full-tree", tree], self.environment, user=self.user)
        if code != 0:
            raise Refused("The tree of the commit lacks objects, or they are damaged.")
        entries, trees = [], {"": tree}
        for line in said.split(b"\0")[:-1]:
            facts, _, name = line.partition(b"\t")
            mode, kind, oid, size = facts.decode().split()
            path = os.fsdecode(name)
            why = why_not_path(path)
            if why is not None:
                raise Refused(f"The commit has a path that {why}: {path!r}.")
            if kind == "tree":
                trees[path] = oid
            else:
                entries.append(Entry(path, plain_mode(mode), oid, 0 if size == "-" else int(size)))
        return entries, trees

    # Contents in the order of the entries, each as (entry, size, reader of so many bytes).
    def contents(self, entries):
        child = start_git(["cat-file", "--batch", "--buffer"], self.environment, user=self.user, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        feeder = os.fork()
        if feeder == 0:
            child.stdout.close()
            with child.stdin as pipe:
                pipe.writelines(f"{entry.oid}\n".encode() for entry in entries)
            os._exit(0)
        child.stdin.close()
        for entry in entries:
            head = child.stdout.readline().split()
            if len(head) != 3 or head[1] != b"blob":
                raise Refused("The commit lacks objects, or they are damaged.")
            yield entry, int(head[2]), child.stdout
            child.stdout.read(1)
        os.waitpid(feeder, 0)
        child.wait()


def plain_mode(mode):
    if mode in (LINK, GITLINK):
        return mode
    return PROGRAM if int(mode, 8) & 0o100 else FILE


def assert_room(directory, entries, pack):
    there = os.fstatvfs(directory)
    names = len(entries) + len({os.path.dirname(entry.path) for entry in entries})
    # The pack is there a second time, in the private .git, with its index and that of git.
    wanted = sum(-(-entry.size // BLOCK) * BLOCK for entry in entries) + pack + names * 200
    room = there.f_bavail * there.f_frsize
    if wanted > room:
        raise TooLarge(f"The commit needs {wanted >> 20} MiB with its .git, and the disk of the sandbox has {room >> 20} MiB free.")
    if names + 32 > there.f_favail:
        raise TooLarge(f"The commit needs {names} files, and the disk of the sandbox has room for {there.f_favail}.")


class Place:
    def __init__(self, workspace, git, request):
        self.git, self.request = git, request
        owner = os.fstat(workspace)
        self.owner = (owner.st_uid, owner.st_gid)
        os.mkdir(request["name"], 0o755, dir_fd=workspace)
        self.root = os.open(request["name"], os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=workspace)
        self.directories = {"": self.root}

    # What is needed to see later, without reading it, that a file is as it was.
    def fill(self, entries):
        listing = []
        for entry in entries:
            if entry.mode == GITLINK:
                self.directory(entry.path)
                listing.append([entry.path, entry.mode, entry.oid, 0, 0, 0])
        for entry, size, reader in self.git.contents([entry for entry in entries if entry.mode != GITLINK]):
            head, name = os.path.split(entry.path)
            directory = self.directory(head)
            if entry.mode == LINK:
                self.link(directory, name, reader.read(size))
            else:
                self.file(directory, name, 0o755 if entry.mode == PROGRAM else 0o644, copy_of(reader, size))
            found = os.stat(name, dir_fd=directory, follow_symlinks=False)
            listing.append([entry.path, entry.mode, entry.oid, found.st_ino, found.st_ctime_ns, found.st_size])
        return listing

    def directory(self, path):
        if path not in self.directories:
            if len(self.directories) > 512:
                self.forget()
            head, name = os.path.split(path)
            parent = self.directory(head)
            try:
                os.mkdir(name, 0o755, dir_fd=parent)
                made = True
            except FileExistsError:
                made = False
            handle = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=parent)
            if made:
                os.fchown(handle, *self.owner)
            self.directories[path] = handle
        return self.directories[path]

    def forget(self):
        for path, handle in self.directories.items():
            if path != "":
                os.close(handle)
        self.directories = {"": self.root}

    def link(self, directory, name, target):
        if len(target) == 0 or b"\0" in target or len(target) > 4095:
            raise Refused("The commit has a link that no file system can hold.")
        os.symlink(target, os.fsencode(name), dir_fd=directory)
        os.chown(name, *self.owner, dir_fd=directory, follow_symlinks=False)

    def file(self, directory, name, mode, chunks):
        handle = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode, dir_fd=directory)
        with os.fdopen(handle, "wb") as file:
            for chunk in chunks:
                file.write(chunk)
            file.flush()
            os.fchmod(handle, mode)
            os.fchown(handle, *self.owner)

    # One commit without a parent: its tree is that of the base, and nothing leads anywhere else.
    def make_private_git(self, packs):
        tree, text = self.request["tree"], f"{self.request['commit']}"
        who = f"Airlock <base@airlock.invalid> {self.request['time']} +0000"
        body = f"tree {tree}\nauthor {who}\ncommitter {who}\n\nBase: {text}\n".encode()
        raw = b"commit %d\0" % len(body) + body
        commit = hashlib.new(self.request["format"], raw).hexdigest()
        is_old = self.request["format"] == "sha1"
        config = ["[core]", f"\trepositoryformatversion = {0 if is_old else 1}", "\tfilemode = true", "\tbare = false",
                  "\tlogallrefupdates = true", *([] if is_old else ["[extensions]", "\tobjectformat = sha256"]),
                  "[user]", "\tname = sandbox", "\temail = sandbox@airlock.invalid", ""]
        files = {"HEAD": b"ref: refs/heads/main\n", "config": "\n".join(config).encode(),
                 "refs/heads/main": f"{commit}\n".encode(), "index": self.make_index(tree),
                 f"objects/{commit[:2]}/{commit[2:]}": zlib.compress(raw)}
        for path, content in files.items():
            head, name = os.path.split(f".git/{path}")
            self.file(self.directory(head), name, 0o644, [content])
        pack = self.directory(".git/objects/pack")
        for name in os.listdir(packs):
            with open(f"{packs}/{name}", "rb") as source:
                self.file(pack, name, 0o444, copy_of(source, os.fstat(source.fileno()).st_size))
        return commit

    def make_index(self, tree):
        place = f"{self.git.directory}/made-index"
        os.mkdir(place)
        os.chown(place, self.git.user, self.git.user)
        environment = {**self.git.environment, "GIT_INDEX_FILE": f"{place}/index"}
        code, _, errors = run_git(["read-tree", tree], environment, user=self.git.user)
        if code != 0:
            raise Refused(f"The tree of the commit cannot be read: {os.fsdecode(errors).strip()[-200:]}")
        with open(os.open(f"{place}/index", os.O_RDONLY | os.O_NOFOLLOW), "rb") as file:
            return file.read()

    # The clock of the file system moves in steps: what is written after this has another time than what was placed.
    def finish(self):
        self.forget()
        os.fchown(self.root, *self.owner)
        time.sleep(0.02)


def copy_of(reader, size):
    left = size
    while left > 0:
        chunk = reader.read(min(left, 1 << 20))
        if not chunk:
            raise Refused("The commit lacks objects, or they are damaged.")
        left -= len(chunk)
        yield chunk


try:
    main()
except Refused as reason:
    print(reason)
    sys.exit(reason.exit_code)
