# Tries an id-mapped mount of the directory given, detached: it is never attached anywhere and gone with this process.
import ctypes
import os
import struct
import sys

OPEN_TREE, MOUNT_SETATTR = 428, 442
AT_FDCWD, AT_EMPTY_PATH, OPEN_TREE_CLONE, MOUNT_ATTR_IDMAP = -100, 0x1000, 1, 0x100000
CLONE_NEWUSER = 0x10000000

libc = ctypes.CDLL(None, use_errno=True)


def check(result):
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


# Each closes the end that is the other's: whoever fails, the other does not wait for it.
ready, go = os.pipe(), os.pipe()
child = os.fork()
if child == 0:
    os.close(go[1])
    check(libc.unshare(CLONE_NEWUSER))
    os.write(ready[1], b"x")
    os.read(go[0], 1)
    os._exit(0)
os.close(ready[1])
if not os.read(ready[0], 1):
    # The child said why.
    sys.exit(1)
for name in ("uid_map", "gid_map"):
    with open(f"/proc/{child}/{name}", "w") as file:
        file.write("0 1879113728 65536")
namespace = os.open(f"/proc/{child}/ns/user", os.O_RDONLY)
tree = check(libc.syscall(OPEN_TREE, AT_FDCWD, sys.argv[1].encode(), OPEN_TREE_CLONE))
attributes = struct.pack("QQQQ", MOUNT_ATTR_IDMAP, 0, 0, namespace)
try:
    check(libc.syscall(MOUNT_SETATTR, tree, b"", AT_EMPTY_PATH, attributes, len(attributes)))
finally:
    os.write(go[1], b"x")
    os.waitpid(child, 0)
