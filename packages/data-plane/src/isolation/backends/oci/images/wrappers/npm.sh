#!/bin/sh
# npm where there may be no way to a registry: what is here is installed from here, all else is refused in one sentence.
. "${0%/*}/../find.sh"

say_no() {
  name_of "$1"
  echo "npm: sandboxes have no network. On the host: npm install $name, then copy it in: --with node_modules. Directories and tarballs that are here install." >&2
  exit 1
}

find_real npm

pass_on() {
  if [ -z "$real" ]; then
    echo "npm: there is no npm in this template" >&2
    exit 127
  fi
  exec "$real" "$@"
}
[ -e /run/airlock/egress ] && pass_on "$@"

verb=
skip=
remote=
for word in "$@"; do
  if [ -n "$skip" ]; then
    skip=
    continue
  fi
  case $word in
  -h | --help | -v | --version) pass_on "$@" ;;
  --prefix | --cache | --userconfig | --registry | --tag | -w | --workspace | -C) skip=yes ;;
  -*) ;;
  file:*) ;;
  *)
    if [ -z "$verb" ]; then
      verb=$word
    elif [ ! -e "$word" ]; then
      remote=${remote:-$word}
    fi
    ;;
  esac
done

case $verb in
install | i | in | add | ci | install-test | it | update | up | upgrade) ;;
view | info | show | search | s | publish | outdated | audit | ping | login | adduser | whoami) remote=${remote:-PACKAGE} ;;
exec | x | init | create) exec "${0%/*}/npx" ${remote:+"$remote"} ;;
*) pass_on "$@" ;;
esac
[ -z "$remote" ] || say_no "$remote"
[ -n "$real" ] || pass_on
npm_config_offline=true "$real" "$@" || say_no PACKAGE
