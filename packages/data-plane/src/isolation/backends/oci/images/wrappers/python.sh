#!/bin/sh
# Python: `python` is `python3` where nothing else is, and modules that would need a network say so in one sentence.
me=${0##*/}
. "${0%/*}/../find.sh"

if ! find_real "$me" && ! find_real python3; then
  echo "$me: there is no Python in this template" >&2
  exit 127
fi

module=
case ${1-} in
-m) module=${2-} ;;
esac
case $module in
pip | pip3)
  shift 2
  AIRLOCK_PYTHON=$real exec "${0%/*}/../wrappers/pip" "$@"
  ;;
venv)
  case " $* " in
  *' --without-pip '* | *' -h '* | *' --help '*) ;;
  *)
    if ! "$real" -c 'import ensurepip' 2>/dev/null; then
      echo "$me: there is no python3-venv in this template. On the host: airlock template build NAME --package python3-venv; without pip in it: $me -m venv --without-pip DIR" >&2
      exit 1
    fi
    ;;
  esac
  ;;
esac
exec "$real" "$@"
