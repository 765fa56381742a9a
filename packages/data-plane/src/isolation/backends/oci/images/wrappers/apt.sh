#!/bin/sh
# apt where there is neither a network nor root: what is here can be asked about, all else is refused in one sentence.
me=${0##*/}
. "${0%/*}/../find.sh"

verb=
names=
for word in "$@"; do
  case $word in
  -*) ;;
  *)
    if [ -z "$verb" ]; then
      verb=$word
    else
      name_of "$word"
      names="$names --package $name"
    fi
    ;;
  esac
done

case $verb in
install | reinstall | remove | purge | autoremove | update | upgrade | full-upgrade | dist-upgrade | download | source | build-dep)
  [ "$verb" = install ] && [ -n "$names" ] || names=' --package PACKAGE'
  echo "$me: sandboxes have no network and no root. On the host: airlock template build NAME$names, then --template NAME." >&2
  exit 1
  ;;
esac
if ! find_real "$me"; then
  echo "$me: there is no $me in this template" >&2
  exit 127
fi
exec "$real" "$@"
