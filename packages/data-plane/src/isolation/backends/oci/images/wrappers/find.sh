# Read by the wrappers, with $me and $here. Sets $real: the first program of that name in PATH that is not ours.
find_real() {
  real=
  IFS=:
  for dir in $PATH; do
    case $dir in
    /opt/airlock/wrappers | /opt/airlock/python | /opt/airlock/fallback) continue ;;
    esac
    if [ -f "$dir/$1" ] && [ -x "$dir/$1" ]; then
      real=$dir/$1
      break
    fi
  done
  unset IFS
  [ -n "$real" ]
}

# What a package is called, without version, extra and path; PACKAGE where that cannot be told.
name_of() {
  name=${1%%[][<>=!~@\; ]*}
  case $name in
  '' | */* | *:* | *[!A-Za-z0-9._-]*) name=PACKAGE ;;
  esac
}
