#!/bin/sh
# npx where there may be no way to a registry: runs what is installed here, and says in one sentence what is not.
. "${0%/*}/../find.sh"

find_real npx
pass_on() {
  if [ -z "$real" ]; then
    echo "npx: there is no npm in this template" >&2
    exit 127
  fi
  exec "$real" "$@"
}
[ -e /run/airlock/egress ] && pass_on "$@"

wanted=
skip=
for word in "$@"; do
  if [ -n "$skip" ]; then
    skip=
    continue
  fi
  case $word in
  -h | --help | -v | --version | --no | --no-install | -c | --call) pass_on "$@" ;;
  -p | --package | -w | --workspace | --cache | --prefix) skip=yes ;;
  -*) ;;
  *)
    wanted=$word
    break
    ;;
  esac
done
[ -n "$wanted" ] || pass_on "$@"

dir=$PWD
while :; do
  [ -x "$dir/node_modules/.bin/$wanted" ] && pass_on "$@"
  [ -n "$dir" ] || break
  dir=${dir%/*}
done
[ -x "$HOME/.local/bin/$wanted" ] && pass_on "$@"
[ -e "$wanted" ] && pass_on "$@"
name_of "$wanted"
echo "npx: sandboxes have no network, and $name is not installed here. On the host: npm install $name, then copy it in: --with node_modules." >&2
exit 1
