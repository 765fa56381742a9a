#!/bin/sh
# Starts one sandbox: launch.sh <its directory> <the runtime> <its arguments…>
#
# It enters the sandbox's groups before it does anything else, so that whoever finds those groups finds it too; takes
# mount and cgroup namespaces of its own, so that no mount of it is ever on the host; and becomes the runtime. Any step
# that fails ends it.
set -eu

# Each line of the file: another file, and what to write to it.
write_all() {
  while read -r file value; do
    echo "$value" >"$file"
  done <"$1"
}

dir=$1

if [ "${AIRLOCK_LAUNCH:-}" != inside ]; then
  write_all "$dir/launch/enter"
  AIRLOCK_LAUNCH=inside exec unshare --mount --propagation private --cgroup /bin/sh "$0" "$@"
fi
shift

write_all "$dir/launch/settle"
while read -r point; do
  mount --options remount,bind,ro,nosuid,nodev "$point"
done <"$dir/launch/closed"
mount --all --fstab "$dir/launch/fstab"
if [ -e "$dir/launch/grants" ]; then
  python3 -I -S "${0%/*}/grants/grants.py" mount <"$dir/launch/grants" >"$dir/launch/refused"
fi
read -r owner directories <"$dir/launch/owned"
# shellcheck disable=SC2086
chown "$owner" $directories
cd /
exec "$@" </dev/null >/dev/null 2>&1
