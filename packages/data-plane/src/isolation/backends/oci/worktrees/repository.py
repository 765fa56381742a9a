# Reads a git repository of the host and writes a branch into it, as its owner and without any right:
#
#   repository.py look     which commit a name is; answers {commit, tree, format, dev, ino, time}
#   repository.py pack     the tree of a commit as a pack on stdout
#   repository.py export   the objects of a sealed copy, a commit and a new branch
#
# The request is JSON on stdin. Nothing of the repository but its refs and objects is read, and none of its hooks, filters
# or configuration is ever used: git runs with a directory of ours, and only the objects are the host's.
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
    Changed, MS_NODEV, MS_NOSUID, MS_NOSYMFOLLOW, MS_RDONLY, Refused, TooLarge, bind, drop, git_environment, make_git_dir, mount,
    open_beneath, open_exactly, read_beneath, run_git, start_git,
)

OUR_IDS = 0x70000000
MAX_REF, MAX_PACKED_REFS, MAX_OBJECT = 4096, 64 << 20, 512 << 20
HEX = re.compile(rb"(?:[0-9a-f]{40}|[0-9a-f]{64})\Z")
BRANCHES = "refs/heads/sandbox"


def main():
    os.umask(0o022)
    verb, request = sys.argv[1], json.load(sys.stdin)
    source = open_source(request)
    status = os.fstat(source)
    stage = request["stage"]
    mount("worktree", stage, "tmpfs", MS_NOSUID | MS_NODEV, "mode=755,size=1m")
    for object_format in ("sha1", "sha256"):
        make_git_dir(f"{stage}/{object_format}", object_format)
    if verb == "export":
        os.mkdir(f"{stage}/seal")
        bind(request["seal"], f"{stage}/seal", MS_RDONLY)
    repository = Repository(request["path"], source, stage)
    repository.show_objects()
    drop(status.st_uid, status.st_gid)
    if verb == "pack":
        return repository.pack(request)
    if verb == "export":
        return print(json.dumps(Export(repository, request).run()))
    found = repository.resolve(request["at"] or "HEAD")
    print(json.dumps({**found, "dev": str(status.st_dev), "ino": str(status.st_ino)}))


# What was granted, and nothing that was put in its place.
def open_source(request):
    path = request["path"]
    try:
        source = open_exactly(path, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise Refused(f"{path} cannot be opened without following a link: {error.strerror}.") from error
    status = os.fstat(source)
    if (str(status.st_dev), str(status.st_ino)) != (request["dev"], request["ino"]):
        raise Refused(f"What is at {path} is not what was granted. Grant it again.")
    if max(status.st_uid, status.st_gid) >= OUR_IDS:
        raise Refused(f"{path} belongs to Airlock itself, or to a sandbox.")
    return source


class Repository:
    def __init__(self, path, source, stage):
        self.path, self.stage = path, stage
        self.git_dir = self.find(source)
        self.objects = self.directory("objects")
        if read_kind(self.objects, "info/alternates") is not None:
            raise Refused(f"{path} borrows objects from another repository (objects/info/alternates). Clone it without --shared.")
        if read_kind(self.git_dir, "reftable") is not None:
            raise Refused(f"{path} keeps its branches as a reftable, which is not read yet.")

    def find(self, source):
        kind = read_kind(source, ".git")
        if kind is None and read_kind(source, "HEAD") == "file" and read_kind(source, "objects") == "dir":
            return source
        if kind is None:
            raise Refused(f"{self.path} is not the top of a git repository.")
        if kind == "file":
            raise Refused(f"{self.path}/.git is a file: this is a linked worktree or a submodule. Name the main repository.")
        if kind != "dir":
            raise Refused(f"{self.path}/.git is not a directory.")
        return open_beneath(source, ".git", os.O_RDONLY | os.O_DIRECTORY)

    def directory(self, name):
        try:
            return open_beneath(self.git_dir, name, os.O_RDONLY | os.O_DIRECTORY)
        except OSError as error:
            raise Refused(f"{self.path}: {name} of its git directory cannot be opened: {error.strerror}.") from error

    # git follows links among objects, and borrows those of others by name. It gets the directories of objects alone, on mounts
    # that follow no link, whatever the repository holds by then.
    def show_objects(self):
        place = f"{self.stage}/objects"
        os.makedirs(f"{place}/info")
        for name in ("pack", *(f"{number:02x}" for number in range(256))):
            kind = read_kind(self.objects, name)
            if kind is None:
                continue
            if kind != "dir":
                raise Refused(f"{self.path}: objects/{name} of its git directory is not a directory.")
            handle = open_beneath(self.objects, name, os.O_RDONLY | os.O_DIRECTORY)
            os.mkdir(f"{place}/{name}")
            bind(f"/proc/self/fd/{handle}", f"{place}/{name}", MS_RDONLY | MS_NOSYMFOLLOW)
            os.close(handle)

    # git over the objects of the host, with nothing else of it.
    def environment(self, object_format):
        return git_environment(f"{self.stage}/{object_format}", GIT_OBJECT_DIRECTORY=f"{self.stage}/objects")

    def resolve(self, name):
        oid = self.named(name)
        for object_format in ("sha1", "sha256") if len(oid) < 64 else ("sha256",):
            found = self.commit(oid, object_format)
            if found is not None:
                return {**found, "format": object_format}
        raise Refused(f"{self.path} has no commit {name}.")

    def commit(self, oid, object_format):
        environment = self.environment(object_format)
        asked = ["rev-parse", "--verify", "--quiet", "--end-of-options", f"{oid}^{{commit}}"]
        code, said, _ = run_git(asked, environment)
        commit = said.strip()
        if code != 0 or not HEX.match(commit):
            return None
        code, content, _ = run_git(["cat-file", "commit", commit.decode()], environment)
        tree = re.match(rb"tree ([0-9a-f]+)\n", content)
        if code != 0 or tree is None:
            return None
        time = re.search(rb"^committer [^\n]*> (\d{1,12}) [-+]\d{4}$", content, re.MULTILINE)
        return {"commit": commit.decode(), "tree": tree[1].decode(), "time": int(time[1]) if time else 0}

    # A branch before a tag before the beginning of an id, as a person means it.
    def named(self, name):
        places = ["HEAD"] if name == "HEAD" else [name] if name.startswith("refs/") else [f"refs/heads/{name}", f"refs/tags/{name}"]
        for place in places:
            oid = self.ref(place)
            if oid is not None:
                return oid
        if re.fullmatch(r"[0-9a-f]{7,64}", name):
            return name
        raise Refused(f"{self.path} has no branch, tag or commit {name}.")

    def ref(self, name, depth=0):
        if any(part in ("", ".", "..") for part in name.split("/")) or depth > 5:
            return None
        loose = (read_beneath(self.git_dir, name, MAX_REF) or b"").strip()
        if HEX.match(loose):
            return loose.decode()
        if loose.startswith(b"ref: refs/"):
            return self.ref(os.fsdecode(loose[5:].strip()), depth + 1)
        return self.packed_ref(name)

    def packed_ref(self, name):
        wanted = os.fsencode(name)
        return next((oid for oid, ref in self.packed_refs() if ref == wanted), None)

    # What cannot be read may name anything: it is not the same as none.
    def packed_refs(self):
        content = read_beneath(self.git_dir, "packed-refs", MAX_PACKED_REFS)
        if content is None and read_kind(self.git_dir, "packed-refs") is not None:
            raise Refused(f"{self.path}: packed-refs of its git directory is a link, too large, or cannot be read.")
        for line in (content or b"").split(b"\n"):
            oid, _, ref = line.partition(b" ")
            if HEX.match(oid):
                yield oid.decode(), ref

    def pack(self, request):
        asked = ["pack-objects", "--revs", "--stdout", "-q", "--delta-base-offset"]
        child = start_git(asked, self.environment(request["format"]), limit=request["maxBytes"],
                          stdin=subprocess.PIPE, stderr=subprocess.PIPE)
        _, errors = child.communicate(f"{request['tree']}\n".encode())
        if child.returncode == -signal.SIGXFSZ or b"too large" in errors.lower():
            raise TooLarge(f"The commit is larger than {request['maxBytes'] >> 20} MiB packed.")
        if child.returncode != 0:
            print(os.fsdecode(errors)[-500:], file=sys.stderr)
            raise Refused(f"{self.path} lacks objects of the commit, or they are damaged. Try: git fsck")


# A branch is made of plain object files and one ref, in the order that leaves a whole repository wherever it breaks off.
class Export:
    def __init__(self, repository, request):
        self.repository, self.request = repository, request
        self.algorithm = request["format"]

    def run(self):
        base = self.repository.commit(self.request["commit"], self.algorithm)
        if base is None or base["tree"] != self.request["baseTree"]:
            raise Refused(f"{self.repository.path} has no commit {self.request['commit']} any more.")
        for oid, sha256 in self.request["objects"]:
            self.write(oid, self.sealed(oid, sha256))
        commit, content = self.commit()
        self.write(commit, zlib.compress(content, 1))
        os.fsync(self.repository.objects)
        return {"commit": commit, "ref": self.publish(commit)}

    # An object of the sealed copy, which must be what was decided about: by its name, and by SHA-256 over its content.
    def sealed(self, oid, sha256):
        path = f"{self.repository.stage}/seal/objects/{oid[:2]}/{oid[2:]}"
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), "rb") as file:
            raw = file.read()
        content = zlib.decompressobj().decompress(raw, MAX_OBJECT)
        body = content.split(b"\0", 1)[1]
        if hashlib.new(self.algorithm, content).hexdigest() != oid or hashlib.sha256(body).hexdigest() != sha256:
            raise Changed("What was to leave is not what was decided about.")
        return raw

    # The same for the same sealed copy and message, so that an export that broke off can be repeated.
    def commit(self):
        who = f"Airlock <sandbox@airlock.invalid> {self.request['time']} +0000"
        lines = [f"tree {self.request['tree']}", f"parent {self.request['commit']}", f"author {who}", f"committer {who}"]
        text = "\n".join([*lines, "", self.request["message"].rstrip("\n"), ""]).encode("utf-8", "replace")
        content = b"commit %d\0" % len(text) + text
        return hashlib.new(self.algorithm, content).hexdigest(), content

    def write(self, oid, raw):
        objects = self.repository.objects
        if read_kind(objects, f"{oid[:2]}/{oid[2:]}") == "file":
            return
        directory = make_directory(objects, oid[:2])
        try:
            put(directory, oid[2:], raw, mode=0o444)
        finally:
            os.close(directory)

    # Both git and a second export hold the lock of a ref while they write it; it is never overwritten.
    def publish(self, commit):
        name = self.request["branch"]
        ref = f"{BRANCHES}/{name}"
        parts = [read_kind(self.repository.git_dir, BRANCHES), self.repository.packed_ref(BRANCHES)]
        if parts[0] not in (None, "dir") or parts[1] is not None:
            raise Refused("There is a branch named sandbox, so no branch can be below it. Rename it: git branch -m sandbox old-sandbox")
        heads = self.repository.directory("refs/heads")
        directory = make_directory(heads, "sandbox")
        lock = f"{name}.lock"
        wanted = f"{commit}\n".encode()
        if not self.take(directory, lock, wanted):
            raise Refused(f"Another program is writing {ref}: sandbox/{lock} exists. Try again; remove that file if none does.")
        if not self.is_free(directory, name, commit):
            os.unlink(lock, dir_fd=directory)
            raise Refused(f"The branch sandbox/{name} exists already. Choose another name, or delete it: git branch -D sandbox/{name}")
        os.rename(lock, name, src_dir_fd=directory, dst_dir_fd=directory)
        os.fsync(directory)
        return ref

    # A file that names no commit, such as a symbolic ref, is a branch as well; so is one below.
    def is_free(self, directory, name, commit):
        ref = f"{BRANCHES}/{name}"
        kind = read_kind(directory, name)
        if kind not in (None, "file") or any(other.startswith(os.fsencode(f"{ref}/")) for _, other in self.repository.packed_refs()):
            return False
        there = self.repository.ref(ref)
        return there == commit or (there is None and kind is None)

    # A lock with this very commit in it is of an export that was killed.
    def take(self, directory, lock, wanted):
        try:
            # Made beside the refs: git would take a file among them for a branch.
            put(directory, lock, wanted, mode=0o644, scratch=self.repository.git_dir)
            return True
        except FileExistsError:
            return read_beneath(directory, lock, MAX_REF) == wanted


def make_directory(parent, name):
    try:
        os.mkdir(name, 0o755, dir_fd=parent)
    except FileExistsError:
        pass
    return open_beneath(parent, name, os.O_RDONLY | os.O_DIRECTORY)


# Whole or not at all; FileExistsError when it is there. git removes such files when they were left.
def put(directory, name, content, mode, scratch=None):
    fresh, scratch = f"tmp_obj_{os.urandom(8).hex()}", directory if scratch is None else scratch
    handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode, dir_fd=scratch)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.link(fresh, name, src_dir_fd=scratch, dst_dir_fd=directory, follow_symlinks=False)
    finally:
        os.unlink(fresh, dir_fd=scratch)


# By name alone: a link is "other", whatever it leads to.
def read_kind(directory, path):
    try:
        handle = open_beneath(directory, path, os.O_PATH | os.O_NOFOLLOW)
    except FileNotFoundError:
        return None
    except NotADirectoryError:
        return None
    except OSError:
        return "other"
    try:
        mode = os.fstat(handle).st_mode
    finally:
        os.close(handle)
    return "dir" if stat.S_ISDIR(mode) else "file" if stat.S_ISREG(mode) else "other"


try:
    main()
except Refused as reason:
    print(reason)
    sys.exit(reason.exit_code)
except OSError as error:
    print(f"The repository cannot be used: {error.strerror}.")
    sys.exit(Refused.exit_code)
