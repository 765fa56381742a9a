# The driver of bash. It reads steps from fd 3 and evaluates them in this shell, so that all of its state stays.
#
# Steps are sourced at the top, not called: `declare` stays global and `break` finds no loop but ours. What would end the
# shell ends the step instead, by a DEBUG trap that makes everything return until we are back here. Functions of a step
# may hide any builtin but `builtin`, which is taken back after each.

set +o history +m -E
BASH_ARGV0=bash
PS1= PS2= PS4='+ '
unset PROMPT_COMMAND HISTFILE MAILCHECK
# High enough to be in nobody's way. While a step runs it is closed, and bash's own copy is closed on exec.
exec 197<&3 3<&-
__airlock_dir=${BASH_SOURCE%/*} __airlock_status=0 __airlock_options='' __airlock_running=''
readonly __airlock_dir

# nonce stdin stdout stderr code [name=value...]
__airlock_begin() {
  __airlock_nonce=$1
  exec 0<"$2" 1>|"$3" 2>|"$4"
  # The whole is one command: an error in it gives up the rest.
  __airlock_code="{ __airlock_enter; $5
}"
  builtin shift 5
  __airlock_hidden=()
  local __airlock_variable
  for __airlock_variable; do __airlock_set_env "${__airlock_variable%%=*}" "${__airlock_variable#*=}"; done
  exit() { __airlock_exit "$?" "$@"; }
  builtin set -E +m
  builtin trap __airlock_interrupt INT
  builtin trap __airlock_error ERR
  __airlock_error='' __airlock_ended='' __airlock_errexit='' __airlock_running=1
}

__airlock_set_env() {
  if [[ ! -v $1 ]]; then __airlock_hidden+=("unset -v $1")
  else
    local -n __airlock_old=$1
    local __airlock_flag=-g
    [[ ${__airlock_old@a} == *x* ]] && __airlock_flag=-gx
    __airlock_hidden+=("unset -v $1; declare $__airlock_flag $1=${__airlock_old@Q}")
  fi
  builtin export "$1=$2"
}

# The options that a step left and that would be in our way, and its status for the next one to ask.
__airlock_enter() {
  {
    # With `set -e` a status that is not 0 would already be the end.
    [[ $__airlock_options == *e* ]] && __airlock_status=0
    [[ -n $__airlock_options ]] && builtin set "-$__airlock_options"
    builtin return "$__airlock_status"
  } 2>/dev/null
}

__airlock_exit() {
  [[ $BASHPID != "$$" || -z $__airlock_running ]] && builtin exit "${2-$1}"
  if [[ ${2-$1} =~ ^([+-]?)0*([0-9]{1,18})$ ]]; then
    __airlock_unwind "$(( ${BASH_REMATCH[1]}${BASH_REMATCH[2]} & 255 ))"
  else
    __airlock_unwind 2
  fi
}

__airlock_interrupt() {
  [[ $BASHPID == "$$" && -n $__airlock_running ]] || builtin return 0
  __airlock_error=Interrupted
  __airlock_unwind 130
}

# `set -e` would end the shell right after this trap.
__airlock_error() {
  local __airlock_failed=$?
  [[ $- == *e* && $BASHPID == "$$" && -n $__airlock_running ]] || builtin return 0
  __airlock_errexit=1
  builtin set +e
  __airlock_unwind "$__airlock_failed"
}

__airlock_unwind() {
  [[ -n $__airlock_ended ]] || __airlock_ended=$1
  builtin shopt -s extdebug
  builtin trap __airlock_return DEBUG
}

# 2 is `return` where there is something to return from.
__airlock_return() {
  [[ ${#FUNCNAME[@]} == 2 || ${FUNCNAME[1]} == __airlock_* ]] || builtin return 2
}

__airlock_end() {
  __airlock_running=''
  builtin trap - ERR EXIT
  # One that comes between two steps finds nobody, and must not end the shell.
  builtin trap __airlock_interrupt INT
  builtin shopt -u extdebug
  __airlock_status=${__airlock_ended:-$__airlock_status}
  exec 0</dev/null 1>|/dev/null 2>|/dev/null
  local __airlock_restore
  for __airlock_restore in "${__airlock_hidden[@]}"; do builtin eval "$__airlock_restore"; done
  if [[ $__airlock_status == 0 ]]; then __airlock_say completed
  else
    local __airlock_name=${__airlock_error:-ExitStatus} __airlock_message="exit status $__airlock_status"
    builtin printf '{"type":"rich","nonce":"%s","line":{"kind":"error","error":{"name":"%s","message":"%s","traceback":""}}}\n' \
      "$__airlock_nonce" "$__airlock_name" "$__airlock_message" >&197
    __airlock_say failed
  fi
}

__airlock_say() {
  builtin printf '{"type":"done","nonce":"%s","status":"%s"}\n' "$__airlock_nonce" "$1" >&197
}

# A length, a space, and so many characters: a socket cannot be read line by line but slowly.
__airlock_next() {
  # Into REPLY, which is never split: IFS may be anything.
  local REPLY
  until builtin read -r -d ' ' -u 197; do
    # More than 128 is a signal; anything else the end.
    (( $? > 128 )) || builtin exit 0
  done
  builtin read -r -N "$REPLY" -u 197 __airlock_line
}

readonly -f __airlock_begin __airlock_set_env __airlock_enter __airlock_exit __airlock_interrupt __airlock_error
readonly -f __airlock_unwind __airlock_return __airlock_end __airlock_say __airlock_next

trap __airlock_interrupt INT
printf '{"type":"ready","version":"bash %s"}\n' "${BASH_VERSION%%(*}" >&197

while :; do
  __airlock_next
  builtin eval "$__airlock_line"
  # Three loops of one turn, for a `break` or `continue` that has no loop of its own.
  for __airlock_loop in 1; do for __airlock_loop in 1; do for __airlock_loop in 1; do
    builtin source "$__airlock_dir/bash-step.sh" 197<&-
  done; done; done
  # First of all what a step may have hidden and we need: in POSIX mode no function hides `unset`.
  {
    __airlock_status=$? POSIXLY_CORRECT=1
    unset -f builtin exec
    unset POSIXLY_CORRECT
    [[ $- == *e* || -n $__airlock_errexit ]] && __airlock_options=e || __airlock_options=''
    [[ $- == *x* ]] && __airlock_options+=x
    # In a function it would come back.
    builtin trap - DEBUG RETURN
    builtin set +ex
  } >/dev/null 2>&1
  __airlock_end
done
