import type { Attacks } from './torture.ts'

/** Finds the driver from the code of a step, as hostile code would. */
const FIND_DRIVER = `
import json, os, sys, time
frame = sys._getframe()
while "Driver" not in frame.f_globals: frame = frame.f_back
driver = frame.f_globals["Driver"]
def say(**message): os.write(driver.channel, json.dumps(message).encode() + b"\\n")
`

const RAISES = `
class Worst(Exception):
    def __str__(self): raise SystemExit(9)
    def __repr__(self): raise Worst()
`

export const PYTHON_ATTACKS: Attacks = {
  'prints on every fd': {
    code: 'import os, sys\nprint("a")\nsys.stderr.write("b\\n")\nos.write(1, b"c\\n")\nos.write(2, b"d\\n")\nos.system("echo e; echo f >&2")\nsys.stdout.buffer.write(b"g\\n")\nprint("h", file=sys.__stdout__)',
    expected: { status: 'completed', stdout: 'a\nc\ne\ng\nh\n', stderr: 'b\nd\nf\n' },
    state: 'kept',
  },
  'prints bytes that are no text': {
    code: 'import os, sys\nos.write(1, b"\\xff\\xfe\\x00\\x80")\nprint("\\udcff")\nprint("\\ud800")',
    expected: { status: 'failed', error: 'UnicodeEncodeError' },
    state: 'kept',
  },
  'prints control characters': {
    code: 'print("\\x1b[2J\\x00\\x07\\r\\n{\\"type\\":\\"done\\"}\\n")',
    expected: { status: 'completed', stdout: '\x1b[2J\x00\x07\r\n{"type":"done"}\n\n' },
    state: 'kept',
  },
  'prints 64 MB without a newline': {
    code: 'import sys\nfor _ in range(64): sys.stdout.write("x" * 2**20)',
    expected: { status: 'completed' },
    state: 'kept',
  },
  'opens its streams again by name': {
    code: 'open("/dev/stdout", "w").write("a\\n")\nopen("/dev/stderr", "w").write("b\\n")\nprint(open("/dev/stdin").read())',
    stdin: 'in',
    expected: { status: 'completed', stdout: 'a\nin\n', stderr: 'b\n' },
    state: 'kept',
  },
  'reads its stdin beyond the end': {
    code: 'import sys\nprint(input("? "), repr(sys.stdin.read()))\ninput()',
    stdin: 'one\ntwo\n',
    expected: { status: 'failed', stdout: "? one 'two\\n'\n", error: 'EOFError' },
    state: 'kept',
  },
  'exits with a status': {
    code: 'import sys\nprint("a")\nsys.exit(3)',
    expected: { status: 'failed', stdout: 'a\n', error: 'SystemExit', restarted: false },
    state: 'kept',
  },
  'exits behind the back of the interpreter': {
    code: 'import os\nos.write(1, b"last words")\nos._exit(7)',
    expected: { status: 'failed', stdout: 'last words', error: 'RuntimeCrashed', restarted: true },
    state: 'gone',
  },
  'dies of a signal': {
    code: 'import ctypes\nctypes.string_at(0)',
    expected: { status: 'failed', error: 'RuntimeCrashed', restarted: true },
    state: 'gone',
  },
  'replaces itself by another program': {
    code: 'import os\nos.execv("/bin/sh", ["sh", "-c", "echo other; exec sleep 5"])',
    expected: { status: 'failed', stdout: 'other\n', error: 'RuntimeCrashed', restarted: true },
    state: 'gone',
  },
  'forks and prints later': {
    code: 'import os, time\nif os.fork() == 0:\n    time.sleep(0.3)\n    print("late")\n    os.system("echo later")\n    os._exit(0)',
    isLate: true,
    expected: { status: 'completed', stdout: '' },
    state: 'kept',
  },
  'forks and lets the child run on': {
    code: 'import os, time\nchild = os.fork()\nif child == 0: time.sleep(0.2)\nprint("child" if child == 0 else "parent")\nif child == 0: raise ValueError("of the child")',
    isLate: true,
    expected: { status: 'completed', stdout: 'parent\n', stderr: '' },
    state: 'kept',
  },
  'leaves a daemon that holds its streams': {
    code: 'import subprocess\nsubprocess.Popen("while :; do echo noise; echo noise >&2; sleep 0.1; done", shell=True, start_new_session=True)\nNone',
    isLate: true,
    expected: { status: 'completed' },
    state: 'kept',
  },
  'leaves a thread or timer that prints': {
    code: 'import threading, time, _thread\ndef late():\n    for _ in range(8):\n        time.sleep(0.1)\n        print("late")\nthreading.Thread(target=late).start()\nthreading.Thread(target=late, daemon=True).start()\n_thread.start_new_thread(late, ())\nthreading.Timer(0.3, late).start()',
    isLate: true,
    expected: { status: 'completed', stdout: '' },
    state: 'kept',
  },
  'leaves a thread or timer that throws': {
    code: 'import threading, sys\ndef late(): raise ValueError("late")\nthreading.Timer(0.3, late).start()\nthreading.Timer(0.3, sys.exit).start()',
    isLate: true,
    expected: { status: 'completed', stderr: '' },
    state: 'kept',
  },
  'closes its streams': {
    code: 'import os, sys\nsys.stdin.close(); sys.stdout.close(); sys.stderr.close()\nfor fd in (0, 1, 2): os.close(fd)',
    expected: { status: 'completed' },
    state: 'kept',
  },
  'closes every fd': {
    code: 'import os\nos.closerange(0, 4096)',
    expected: { status: 'failed', error: 'RuntimeCrashed', restarted: true },
    state: 'gone',
  },
  'replaces its output streams': {
    code: 'import io, sys, os\nsys.stdout = io.StringIO(); sys.stderr = None; sys.__stdout__ = 3; sys.stdin = None\nprint("nowhere")\nos.dup2(os.open("/dev/null", os.O_WRONLY), 1)',
    expected: { status: 'completed', stdout: '' },
    state: 'kept',
  },
  'patches what the driver may need': {
    code: 'import builtins, json, os, traceback, linecache, io, sys\nfor name in ("len", "open", "isinstance", "repr", "str", "type", "eval", "exec", "compile", "memoryview", "dict", "list"): setattr(builtins, name, None)\njson.loads = json.dumps = os.write = os.read = os.dup2 = os._exit = os.environ = traceback.format_exception = io.TextIOWrapper = None\nsys.setrecursionlimit(60)\nsys.settrace(lambda *a: 1 / 0)',
    state: 'kept',
  },
  'installs signal handlers': {
    code: 'import signal\nfor number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}: signal.signal(number, signal.SIG_IGN)\nsignal.signal(signal.SIGALRM, lambda *a: 1 / 0)\nsignal.setitimer(signal.ITIMER_REAL, 0.2)\nNone',
    isLate: false,
    expected: { status: 'completed' },
  },
  'registers exit handlers': {
    code: 'import atexit, os\natexit.register(print, "exit")\natexit.register(os._exit, 3)\nNone',
    expected: { status: 'completed', stdout: '' },
    state: 'kept',
  },
  'recurses without end': {
    code: 'def down(): down()\ndown()',
    expected: { status: 'failed', error: 'RecursionError' },
    state: 'kept',
  },
  'throws what cannot be shown': {
    code: `${RAISES}\nraise Worst()`,
    expected: { status: 'failed', error: 'Worst' },
    state: 'kept',
  },
  'changes its environment and directory': {
    code: 'import os, shutil, tempfile\nos.environ.clear()\nplace = tempfile.mkdtemp(dir="/tmp")\nos.chdir(place)\nos.rmdir(place)\nos.umask(0o777)\nNone',
    expected: { status: 'completed' },
    state: 'kept',
  },
  'forges a result of its own': {
    code: `${FIND_DRIVER}\nsay(type="rich", nonce=driver.step.nonce, line={"kind": "result", "data": {"text/plain": "forged"}})\nsay(type="done", nonce=driver.step.nonce, status="completed")\ntime.sleep(0.2)\nprint("after the end")\n1/0`,
    expected: { status: 'completed', stdout: '' },
    state: 'kept',
  },
  'forges a result of another step': {
    code: `${FIND_DRIVER}\nsay(type="rich", nonce="0" * 32, line={"kind": "error", "error": {"name": "a", "message": "b", "traceback": "c"}})\nsay(type="done", nonce="0" * 32, status="failed")\nsay(type="ready", version="forged")\nprint("own")`,
    expected: { status: 'completed', stdout: 'own\n', error: null },
    state: 'kept',
  },
  'breaks the framing of the channel': {
    code: `${FIND_DRIVER}\nos.write(driver.channel, b"this is no message\\n")\ntime.sleep(5)`,
    expected: { status: 'failed', error: 'RuntimeCrashed', restarted: true },
    state: 'gone',
  },
  'is interrupted in a busy loop': {
    code: 'while True: pass',
    interruptAfterMs: 200,
    expected: { status: 'failed', error: 'Interrupted', restarted: false },
    state: 'kept',
  },
  'is interrupted while it waits for a child': {
    code: 'import subprocess\nprint("begun")\nsubprocess.run(["sleep", "30"])',
    interruptAfterMs: 300,
    expected: { status: 'failed', stdout: 'begun\n', error: 'Interrupted', restarted: false },
    state: 'kept',
  },
  'runs out of time': {
    code: 'print("begun")\nwhile True: pass',
    timeoutMs: 300,
    expected: { status: 'failed', stdout: 'begun\n', error: 'Timeout', restarted: false },
    state: 'kept',
  },
  'runs out of time and ignores interrupts': {
    code: 'import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass',
    timeoutMs: 300,
    expected: { status: 'failed', error: 'Timeout', restarted: true },
    state: 'gone',
  },
}
