#!/bin/sh
# Makes the container a place where sandboxes can be made, tries one, and becomes `airlock <arguments>`.
#
# Which right each step needs is in docs/deploy.md. A step that is not permitted is left undone; the trial says what that
# means, and nothing is served where a sandbox could not be isolated.
set -u

TRIAL=/var/lib/airlock/trial

prepare() {
  make_groups_writable
  mount_whole_proc
  make_loop_nodes
} 2>/dev/null

# Docker mounts the control groups of the container read-only. They stay those of the container: what bounds it bounds
# all of its sandboxes, and they are gone with it.
make_groups_writable() {
  while read -r _ _ _ _ at _ rest; do
    case $rest in
      *'- cgroup '* | *'- cgroup2 '*) mount -o remount,bind,rw "$at" ;;
    esac
  done </proc/self/mountinfo
}

# The kernel lets a user namespace mount /proc only where a whole one can be seen, and Docker covers parts of the usual.
# Nothing reads this one.
mount_whole_proc() {
  mkdir -p /run/airlock-proc
  grep -q ' /run/airlock-proc ' /proc/self/mountinfo || mount -t proc -o nosuid,nodev,noexec proc /run/airlock-proc
}

# Nodes of loop devices that the kernel makes later appear only in the /dev of the host.
make_loop_nodes() {
  number=0
  while [ $number -lt 256 ]; do
    [ -b /dev/loop$number ] || mknod -m 660 /dev/loop$number b 7 $number || return
    number=$((number + 1))
  done
}

# On the disk where sandboxes will have theirs. What is left of a trial that was cut off goes first.
try_sandbox() {
  rm -rf "$TRIAL"
  mkdir -p "$TRIAL" && TMPDIR=$TRIAL airlock doctor && rm -rf "$TRIAL"
}

prepare
if [ "${1:-}" = serve ] && ! try_sandbox; then
  echo 'Airlock does not start: this container cannot isolate a sandbox. What to give it: docs/deploy.md, "Server image".' >&2
  exit 1
fi
exec airlock "$@"
