#!/bin/sh
# npm where there may be no way to a registry: what is here is installed from here, all else is refused in one sentence.
here=$(dirname "$0")

say_no() {
  echo "npm: this sandbox has no egress door, so nothing can be fetched. A rule that allows registry.npmjs.org:443 would let it; local directories and tarballs work without." >&2
}

real=
IFS=:
for dir in $PATH; do
  if [ "$dir" != "$here" ] && [ -x "$dir/npm" ]; then
    real=$dir/npm
    break
  fi
done
unset IFS
if [ -z "$real" ]; then
  echo "npm: there is no npm in this image" >&2
  exit 127
fi
[ -e /run/airlock/egress ] && exec "$real" "$@"

verb=
skip=
remote=
for word in "$@"; do
  if [ -n "$skip" ]; then
    skip=
    continue
  fi
  case $word in
  -h | --help | -v | --version) exec "$real" "$@" ;;
  --prefix | --cache | --userconfig | --registry | --tag | -w | --workspace | -C) skip=yes ;;
  -*) ;;
  file:*) ;;
  *)
    if [ -z "$verb" ]; then
      verb=$word
    elif [ ! -e "$word" ]; then
      remote=yes
    fi
    ;;
  esac
done

case $verb in
install | i | in | add | ci | install-test | it | update | up | upgrade) ;;
view | info | show | search | s | publish | outdated | audit | ping | login | adduser | whoami) remote=yes ;;
*) exec "$real" "$@" ;;
esac
if [ -n "$remote" ]; then
  say_no
  exit 1
fi
npm_config_offline=true "$real" "$@"
code=$?
[ $code -eq 0 ] || say_no
exit $code
