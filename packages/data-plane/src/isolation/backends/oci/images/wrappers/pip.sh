#!/bin/sh
# pip where there may be no way to an index: what is here is installed from here, all else is refused in one sentence.
me=$(basename "$0")
here=$(dirname "$0")

say_no() {
  echo "$me: this sandbox has no egress door, so nothing can be fetched. A rule that allows pypi.org:443 and files.pythonhosted.org:443 would let it; local files and --no-index work without." >&2
}

real=
IFS=:
for dir in $PATH; do
  if [ "$dir" != "$here" ] && [ -x "$dir/$me" ]; then
    real=$dir/$me
    break
  fi
done
unset IFS
if [ -z "$real" ]; then
  echo "$me: there is no pip in this image; the template \"data\" has it" >&2
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
  --no-index | -h | --help | --version | -V) exec "$real" "$@" ;;
  -r | --requirement) remote=yes ;;
  -c | --constraint | -t | --target | --prefix | --root | --src | -i | --index-url | --extra-index-url | -f | --find-links) skip=yes ;;
  --platform | --python-version | --implementation | --abi | --progress-bar | --log | --proxy | --python | -d | --dest | -w | --wheel-dir) skip=yes ;;
  -*) ;;
  *://* | *@*http*) remote=yes ;;
  *)
    if [ -z "$verb" ]; then
      verb=$word
    elif [ ! -e "${word%%\[*}" ]; then
      remote=yes
    fi
    ;;
  esac
done

case $verb in
install | download | wheel) ;;
search | index) remote=yes ;;
*) exec "$real" "$@" ;;
esac
if [ -n "$remote" ]; then
  say_no
  exit 1
fi
PIP_NO_INDEX=1 "$real" "$@" --no-build-isolation
code=$?
[ $code -eq 0 ] || say_no
exit $code
