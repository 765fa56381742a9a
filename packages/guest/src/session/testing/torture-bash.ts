import type { Attacks } from './torture.ts'

/** bash keeps the channel on the first free fd from 10 on while a step runs. */
const SAY = 'say() { printf \'{"nonce":"%s",%s}\\n\' "$1" "$2" >&10; }'

export const BASH_ATTACKS: Attacks = {
  'prints on every fd': {
    code: 'echo a; echo b >&2; /bin/echo c; /bin/sh -c "echo d >&2"; { echo e; } | cat; echo f > /dev/fd/1',
    expected: { status: 'completed', stdout: 'a\nc\ne\nf\n', stderr: 'b\nd\n' },
    state: 'kept',
  },
  'prints bytes that are no text': {
    code: String.raw`printf '\377\376\000\200'; echo $'\xc3'`,
    expected: { status: 'completed' },
    state: 'kept',
  },
  'prints control characters': {
    code: String.raw`printf '\033[2J\000\007\r\n{"type":"done"}\n\n'`,
    expected: { status: 'completed', stdout: '\x1b[2J\x00\x07\r\n{"type":"done"}\n\n' },
    state: 'kept',
  },
  'prints 64 MB without a newline': {
    code: 'head -c 67108864 /dev/zero | tr "\\0" x',
    expected: { status: 'completed' },
    state: 'kept',
  },
  'opens its streams again by name': {
    code: 'echo a > /dev/stdout; echo b > /dev/stderr; cat /dev/stdin; echo',
    stdin: 'in',
    expected: { status: 'completed', stdout: 'a\nin\n', stderr: 'b\n' },
    state: 'kept',
  },
  'reads its stdin beyond the end': {
    code: 'read -r one; rest=$(cat); echo "$one/$rest"; read -r more',
    stdin: 'one\ntwo\n',
    expected: { status: 'failed', stdout: 'one/two\n', error: 'ExitStatus' },
    state: 'kept',
  },
  'exits with a status': {
    code: 'down() { while :; do for i in 1 2; do exit 3; done; done; }; echo a; down; echo never',
    expected: { status: 'failed', stdout: 'a\n', error: 'ExitStatus', restarted: false },
    state: 'kept',
  },
  'exits behind the back of the interpreter': {
    code: 'printf "last words"; builtin exit 7',
    expected: { status: 'failed', stdout: 'last words', error: 'RuntimeCrashed', restarted: true },
    state: 'gone',
  },
  'dies of a signal': {
    code: 'kill -SEGV $$; sleep 5',
    expected: { status: 'failed', error: 'RuntimeCrashed', restarted: true },
    state: 'gone',
  },
  'replaces itself by another program': {
    code: 'exec sh -c "echo other; exit 3"',
    expected: { status: 'failed', stdout: 'other\n', error: 'RuntimeCrashed', restarted: true },
    state: 'gone',
  },
  'forks and prints later': {
    code: '( sleep 0.3; echo late; echo later >&2 ) &',
    isLate: true,
    expected: { status: 'completed', stdout: '' },
    state: 'kept',
  },
  'forks and lets the child run on': {
    code: '( sleep 0.2; echo child; exit 3 ) & echo parent',
    isLate: true,
    expected: { status: 'completed', stdout: 'parent\n', stderr: '' },
    state: 'kept',
  },
  'leaves a daemon that holds its streams': {
    code: 'setsid sh -c "while :; do echo noise; echo noise >&2; sleep 0.1; done" &',
    isLate: true,
    expected: { status: 'completed' },
    state: 'kept',
  },
  'leaves a thread or timer that prints': {
    code: 'trap "echo late" DEBUG RETURN ERR EXIT; ( sleep 0.3; echo late ) & coproc { sleep 0.3; echo late >&2; }',
    isLate: true,
    expected: { status: 'completed' },
    state: 'kept',
  },
  'leaves a thread or timer that throws': {
    code: '( sleep 0.3; false; exit 7 ) & ( sleep 0.3; kill -9 $BASHPID ) &',
    isLate: true,
    expected: { status: 'completed', stderr: '' },
    state: 'kept',
  },
  'closes its streams': {
    code: 'exec 0<&- 1>&- 2>&-',
    expected: { status: 'completed' },
    state: 'kept',
  },
  'closes every fd': {
    code: 'for fd in /proc/$$/fd/*; do eval "exec ${fd##*/}>&-"; done',
    expected: { status: 'failed', error: 'RuntimeCrashed', restarted: true },
    state: 'gone',
  },
  'replaces its output streams': {
    code: 'exec >/dev/null 2>&1 </dev/null; echo nowhere',
    expected: { status: 'completed', stdout: '' },
    state: 'kept',
  },
  'patches what the driver may need': {
    code: `for name in builtin eval printf read trap exec set unset source shopt export local return shift echo command; do
        builtin eval "$name() { :; }"
      done
      alias while=false for=false eval=false __airlock_end=false
      IFS=0123456789; PATH=; BASH_ENV=/nowhere; POSIXLY_CORRECT=1
      __airlock_status=9 __airlock_running= __airlock_hidden=x __airlock_options=z
      builtin set -fuxkC`,
  },
  'installs signal handlers': {
    code: 'for name in HUP INT QUIT ALRM TERM USR1 USR2 PIPE CHLD WINCH; do trap "echo $name" $name; done; trap "" TSTP',
    expected: { status: 'completed' },
  },
  'registers exit handlers': {
    code: 'trap "echo exit; exit 3" EXIT; exit 0',
    expected: { status: 'completed', stdout: '' },
    state: 'kept',
  },
  'recurses without end': {
    code: 'down() { down; }; down',
    expected: { status: 'failed' },
  },
  'throws what cannot be shown': 'a status is a number',
  'changes its environment and directory': {
    code: 'for name in $(compgen -e); do unset "$name"; done; place=$(/usr/bin/mktemp -d); cd "$place"; /bin/rmdir "$place"; umask 777',
    expected: { status: 'completed' },
  },
  'forges a result of its own': {
    code: `${SAY}; say "$__airlock_nonce" '"type":"done","status":"completed"'; sleep 0.2; echo after the end; false`,
    expected: { status: 'completed', stdout: '' },
    state: 'kept',
  },
  'forges a result of another step': {
    code: `${SAY}; say ${'0'.repeat(32)} '"type":"done","status":"failed"'; echo own`,
    expected: { status: 'completed', stdout: 'own\n', error: null },
    state: 'kept',
  },
  'breaks the framing of the channel': {
    code: 'echo this is no message >&10; sleep 5',
    expected: { status: 'failed', error: 'RuntimeCrashed', restarted: true },
    state: 'gone',
  },
  'is interrupted in a busy loop': {
    code: 'spin() { while :; do :; done; }; spin; echo never',
    interruptAfterMs: 200,
    expected: { status: 'failed', stdout: '', error: 'Interrupted', restarted: false },
    state: 'kept',
  },
  'is interrupted while it waits for a child': {
    code: 'echo begun; sleep 30; echo never',
    interruptAfterMs: 300,
    expected: { status: 'failed', stdout: 'begun\n', error: 'Interrupted', restarted: false },
    state: 'kept',
  },
  'runs out of time': {
    code: 'echo begun; while sleep 0.1; do :; done',
    timeoutMs: 300,
    expected: { status: 'failed', stdout: 'begun\n', error: 'Timeout', restarted: false },
    state: 'kept',
  },
  'runs out of time and ignores interrupts': {
    code: 'trap "" INT; while :; do :; done',
    timeoutMs: 300,
    expected: { status: 'failed', error: 'Timeout', restarted: true },
    state: 'gone',
  },
}
