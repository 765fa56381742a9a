#!/bin/sh
# Runs one program of a build: confined.sh <stage> <directory of the build> <directory of apt> <uid> <program> <arguments…>
#
# It is the first process of namespaces of its own: what it mounts is nowhere else, and all that it started ends with it.
# The program gets the two directories under names that it may pass, and no right at all. With AIRLOCK_MERGED it sees the
# packages over the system of the host.
set -u
stage=$1 build=$2 apt=$3 uid=$4
shift 4

mount -t tmpfs -o mode=755,size=64k tmpfs "$stage" &&
  mkdir "$stage/build" "$stage/apt" &&
  mount --bind "$build" "$stage/build" &&
  mount --bind "$apt" "$stage/apt" &&
  cd "$stage/build" || exit 125
if [ -n "${AIRLOCK_MERGED:-}" ]; then
  over=ro,lowerdir=$stage/build/root
  mount -t overlay -o "$over/usr:/usr" overlay /usr &&
    mount -t overlay -o "$over/etc/alternatives:/etc/alternatives" overlay /etc/alternatives || exit 125
fi
unset AIRLOCK_MERGED
# A child, for whoever changes its uid no longer dies with its parent.
setpriv --reuid "$uid" --regid "$uid" --clear-groups --no-new-privs --inh-caps=-all --bounding-set=-all -- "$@"
exit $?
