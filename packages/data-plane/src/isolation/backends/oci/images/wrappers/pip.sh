#!/bin/sh
# pip where nothing can be fetched: what is here is installed from here, all else is refused in one sentence.
# $AIRLOCK_PYTHON: the Python that was told `-m pip`.
me=${0##*/}
. "${0%/*}/../find.sh"

say_no() {
  name_of "$1"
  [ "$name" = PACKAGE ] || name=$(printf %s "$name" | tr A-Z_ a-z-)
  echo "$me: sandboxes have no network. On the host: airlock template build NAME --package python3-$name; wheels that --with copies in install with --no-index." >&2
  exit 1
}

python=$AIRLOCK_PYTHON
unset AIRLOCK_PYTHON
if [ -z "$python" ]; then
  find_real "$me"
elif "$python" -c 'import importlib.util, sys; sys.exit(importlib.util.find_spec("pip") is None)'; then
  real=$python
else
  real=
fi

pip() {
  if [ -n "$python" ]; then "$python" -m pip "$@"; else "$real" "$@"; fi
}

pass_on() {
  if [ -z "$real" ]; then
    echo "$me: there is no pip in this template; data has it: --template data" >&2
    exit 127
  fi
  pip "$@"
  exit
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
  --no-index | -h | --help | --version | -V) pass_on "$@" ;;
  -r | --requirement) remote=${remote:-PACKAGE} skip=yes ;;
  -c | --constraint | -t | --target | --prefix | --root | --src | -i | --index-url | --extra-index-url | -f | --find-links) skip=yes ;;
  --platform | --python-version | --implementation | --abi | --progress-bar | --log | --proxy | --python | -d | --dest | -w | --wheel-dir) skip=yes ;;
  -*) ;;
  *://* | *@*http*) remote=${remote:-PACKAGE} ;;
  *)
    if [ -z "$verb" ]; then
      verb=$word
    elif [ ! -e "${word%%\[*}" ]; then
      remote=${remote:-$word}
    fi
    ;;
  esac
done

case $verb in
install | download | wheel) ;;
search | index) remote=PACKAGE ;;
*) pass_on "$@" ;;
esac
[ -z "$remote" ] || say_no "$remote"
[ -n "$real" ] || pass_on
export PIP_NO_INDEX=1
pip "$@" --no-build-isolation || say_no PACKAGE
