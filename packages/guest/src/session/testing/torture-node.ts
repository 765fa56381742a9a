import type { Attacks } from './torture.ts'

const NEVER_TEXT = `
class Worst extends Error {
  get message() { throw this }
  get name() { throw this }
  get stack() { throw this }
  [Symbol.for('nodejs.util.inspect.custom')]() { throw this }
}
`

/** The number of this step is somewhere in the heap, as hostile code would find. */
const FIND_NONCES = `
let heap = ''
for await (const chunk of require('node:v8').getHeapSnapshot()) heap += chunk
const nonces = new Set(heap.match(/"[0-9a-f]{32}"/g))
const say = (nonce, rest) => fs.writeSync(3, '{"nonce":' + nonce + ',' + rest + '}\\n')
`

export const NODE_ATTACKS: Attacks = {
  'prints on every fd': {
    code: 'console.log("a"); console.error("b"); fs.writeSync(1, "c\\n"); fs.writeSync(2, "d\\n"); child_process.execSync("echo e; echo f >&2", { stdio: "inherit" }); process.stdout.write("g\\n"); undefined',
    expected: { status: 'completed', stdout: 'a\nc\ne\ng\n', stderr: 'b\nd\nf\n' },
    state: 'kept',
  },
  'prints bytes that are no text': {
    code: 'fs.writeSync(1, Buffer.from([255, 254, 0, 128])); process.stdout.write(Buffer.from([0xc3])); console.log("\\ud800")',
    expected: { status: 'completed' },
    state: 'kept',
  },
  'prints control characters': {
    code: String.raw`console.log('\x1b[2J\x00\x07\r\n{"type":"done"}\n')`,
    expected: { status: 'completed', stdout: '\x1b[2J\x00\x07\r\n{"type":"done"}\n\n' },
    state: 'kept',
  },
  'prints 64 MB without a newline': {
    code: 'for (let i = 0; i < 64; i++) process.stdout.write("x".repeat(2 ** 20)); undefined',
    expected: { status: 'completed' },
    state: 'kept',
  },
  'opens its streams again by name': {
    code: 'fs.writeFileSync("/dev/stdout", "a\\n"); fs.writeFileSync("/dev/stderr", "b\\n"); console.log(fs.readFileSync("/dev/stdin", "utf8"))',
    stdin: 'in',
    expected: { status: 'completed', stdout: 'a\nin\n', stderr: 'b\n' },
    state: 'kept',
  },
  'reads its stdin beyond the end': {
    code: 'let text = ""; for await (const part of process.stdin.setEncoding("utf8")) text += part; console.log(JSON.stringify(text), process.stdin.read(), fs.readFileSync(0, "utf8").length, fs.readSync(0, Buffer.alloc(4)))',
    stdin: 'one\ntwo\n',
    expected: { status: 'completed', stdout: '"one\\ntwo\\n" null 8 0\n' },
    state: 'kept',
  },
  'exits with a status': {
    code: 'console.log("a"); try { process.exit(3) } catch {} finally { console.log("never") }',
    expected: { status: 'failed', stdout: 'a\n', error: 'ExitStatus', restarted: false },
    state: 'kept',
  },
  'exits behind the back of the interpreter': {
    code: 'fs.writeSync(1, "last words"); process.reallyExit(7)',
    expected: { status: 'failed', stdout: 'last words', error: 'RuntimeCrashed', restarted: true },
    state: 'gone',
  },
  'dies of a signal': {
    code: 'process.abort()',
    expected: { status: 'failed', error: 'RuntimeCrashed', restarted: true },
    state: 'gone',
  },
  'replaces itself by another program': {
    code: 'process.execve("/bin/sh", ["sh", "-c", "echo other; exec sleep 5"])',
    expected: { status: 'failed', stdout: 'other\n', error: 'RuntimeCrashed', restarted: true },
    state: 'gone',
  },
  'forks and prints later': {
    code: 'child_process.spawn("sh", ["-c", "sleep 0.3; echo late; echo later >&2"], { stdio: "inherit", detached: true }).unref(); undefined',
    isLate: true,
    expected: { status: 'completed', stdout: '' },
    state: 'kept',
  },
  'forks and lets the child run on': 'Node does not fork itself',
  'leaves a daemon that holds its streams': {
    code: 'child_process.spawn("sh", ["-c", "while :; do echo noise; echo noise >&2; sleep 0.1; done"], { stdio: "inherit", detached: true }).unref(); undefined',
    isLate: true,
    expected: { status: 'completed' },
    state: 'kept',
  },
  'leaves a thread or timer that prints': {
    code: `setInterval(() => { console.log("late"); process.stderr.write("late") }, 50)
      new worker_threads.Worker('setInterval(() => console.log("thread"), 50)', { eval: true })
      child_process.exec("sleep 0.3; echo late", (_error, text) => console.log(text))
      undefined`,
    isLate: true,
    expected: { status: 'completed', stdout: '', stderr: '' },
    state: 'kept',
  },
  'leaves a thread or timer that throws': {
    code: `setTimeout(() => { throw new Error("late") }, 300)
      setTimeout(() => process.exit(3), 300)
      setTimeout(() => Promise.reject(new Error("late")), 300)
      void new Promise((_, reject) => setTimeout(reject, 300, 5))
      undefined`,
    isLate: true,
    expected: { status: 'completed', stderr: '' },
    state: 'kept',
  },
  'closes its streams': {
    code: 'process.stdin.destroy(); process.stdout.end(); process.stderr.destroy(); for (const fd of [0, 1, 2]) fs.closeSync(fd)',
    expected: { status: 'completed' },
    state: 'kept',
  },
  'closes every fd': {
    code: 'for (let fd = 0; fd < 4096; fd++) try { fs.closeSync(fd) } catch {}',
    expected: { status: 'failed', error: 'RuntimeCrashed', restarted: true },
    state: 'gone',
  },
  'replaces its output streams': {
    code: 'console.log = console.error = null; for (const name of ["stdin", "stdout", "stderr"]) Object.defineProperty(process, name, { value: null }); globalThis.console = undefined; fs.closeSync(1); fs.openSync("/dev/null", "w"); undefined',
    expected: { status: 'completed', stdout: '' },
  },
  'patches what the driver may need': {
    code: `process.on("exit", () => {}); process.removeAllListeners()
      for (const name of ["push", "map", "forEach", "flatMap", "slice", "join"]) Array.prototype[name] = null
      Array.prototype[Symbol.iterator] = null; Function.prototype.call = Function.prototype.bind = null
      String.prototype.slice = String.prototype.split = RegExp.prototype.exec = null
      JSON.stringify = JSON.parse = Object.defineProperty = Object.entries = Object.assign = Reflect.apply = null
      Object.prototype.get = Object.prototype.exceptionDetails = Object.prototype.toJSON = 5
      globalThis.Promise = globalThis.setImmediate = globalThis.setTimeout = globalThis.Buffer = globalThis.queueMicrotask = null
      process.emit = process.nextTick = process.exit = process.on = null
      fs.openSync = fs.closeSync = fs.writeSync = null
      async_hooks.AsyncLocalStorage.prototype.run = async_hooks.AsyncLocalStorage.prototype.getStore = null
      worker_threads.Worker.prototype.postMessage = null
      undefined`,
    expected: { status: 'completed' },
    state: 'kept',
  },
  'installs signal handlers': {
    code: 'for (const name of ["SIGINT", "SIGTERM", "SIGHUP", "SIGUSR2", "SIGPIPE", "SIGALRM", "SIGCHLD"]) process.on(name, () => console.log(name)); process.on("uncaughtException", () => console.log("caught")); process.on("unhandledRejection", () => console.log("caught")); process.on("warning", () => console.log("warned")); undefined',
    expected: { status: 'completed' },
    state: 'kept',
  },
  'registers exit handlers': {
    code: 'for (const name of ["exit", "beforeExit"]) process.on(name, () => { console.log("exit"); process.reallyExit(3) }); undefined',
    expected: { status: 'completed', stdout: '' },
    state: 'kept',
  },
  'recurses without end': {
    code: 'const down = () => down() + 1; down()',
    expected: { status: 'failed', error: 'RangeError' },
    state: 'kept',
  },
  'throws what cannot be shown': {
    code: `${NEVER_TEXT}\nthrow new Worst()`,
    expected: { status: 'failed', error: 'Error' },
    state: 'kept',
  },
  'changes its environment and directory': {
    code: 'for (const name of Object.keys(process.env)) delete process.env[name]; const place = fs.mkdtempSync("/tmp/airlock-torture-"); process.chdir(place); fs.rmdirSync(place); process.umask(0o777); undefined',
    expected: { status: 'completed' },
    state: 'kept',
  },
  'forges a result of its own': {
    code: `${FIND_NONCES}\nfor (const nonce of nonces) say(nonce, '"type":"done","status":"completed"')\nawait new Promise((resolve) => setTimeout(resolve, 200))\nconsole.log("after the end")\nthrow new Error("never heard")`,
    timeoutMs: 60_000,
    expected: { status: 'completed', stdout: '' },
    state: 'kept',
  },
  'forges a result of another step': {
    code: `fs.writeSync(3, '{"type":"done","nonce":"' + "0".repeat(32) + '","status":"failed"}\\n{"type":"ready","version":"forged"}\\n'); console.log("own")`,
    expected: { status: 'completed', stdout: 'own\n', error: null },
    state: 'kept',
  },
  'breaks the framing of the channel': {
    code: 'fs.writeSync(3, "this is no message\\n"); await new Promise((resolve) => setTimeout(resolve, 5000))',
    expected: { status: 'failed', error: 'RuntimeCrashed', restarted: true },
    state: 'gone',
  },
  'is interrupted in a busy loop': {
    code: 'await 0; while (true);',
    interruptAfterMs: 200,
    expected: { status: 'failed', error: 'Interrupted', restarted: false },
    state: 'kept',
  },
  'is interrupted while it waits for a child': {
    code: 'console.log("begun"); child_process.execSync("sleep 30")',
    interruptAfterMs: 300,
    expected: { status: 'failed', stdout: 'begun\n', error: 'Interrupted', restarted: false },
    state: 'kept',
  },
  'runs out of time': {
    code: 'console.log("begun"); await new Promise(() => setInterval(() => {}, 1000))',
    timeoutMs: 300,
    expected: { status: 'failed', stdout: 'begun\n', error: 'Timeout', restarted: false },
    state: 'kept',
  },
  'runs out of time and ignores interrupts': {
    code: 'while (true) try { child_process.execSync("trap \\"\\" INT; sleep 60") } catch {}',
    timeoutMs: 300,
    expected: { status: 'failed', error: 'Timeout', restarted: true },
    state: 'gone',
  },
}
