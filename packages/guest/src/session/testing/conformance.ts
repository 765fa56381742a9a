import type { GuestRuntime } from '@airlock/contract/guest'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { requires } from '../../../../../test/support/requires.ts'

export interface ConformanceStep {
  readonly stepId?: string
  readonly timeoutMs?: number
  readonly env?: Readonly<Record<string, string>>
  readonly stdin?: string
}

export interface ConformanceResult {
  readonly status: 'completed' | 'failed'
  readonly stdout: string
  readonly stderr: string
  readonly outputs: readonly unknown[]
  readonly error: { readonly name: string; readonly message: string } | undefined
  readonly restarted: boolean
  readonly truncated: boolean
}

export interface ConformanceSession {
  run(code: string, step?: ConformanceStep): Promise<ConformanceResult>
  interrupt(): Promise<void>
  restart(): Promise<void>
  close(): Promise<void>
}

/** A guest by one of its transports. */
export interface ConformanceGuest {
  /** A directory that user code may write. */
  readonly work: string
  open(runtime: GuestRuntime): Promise<ConformanceSession>
  stop(): Promise<void>
}

/** The same things said in each language. */
interface Words {
  readonly set: (value: number) => string
  readonly print: string
  readonly fail: string
  readonly failure: string
  readonly echoStdin: string
  readonly printEnv: string
  readonly spin: string
  /** Does not obey an interrupt. */
  readonly deaf: string
  readonly append: (path: string) => string
  readonly flood: (bytes: number) => string
  readonly die: string
}

const WORDS: Readonly<Record<GuestRuntime, Words>> = {
  python: {
    set: (value) => `x = ${value}`,
    print: 'print(x)',
    fail: 'raise ValueError("no")',
    failure: 'ValueError',
    echoStdin: 'print(input())',
    printEnv: 'import os; print(os.environ.get("GREETING", "none"))',
    spin: 'while True: pass',
    deaf: 'import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass',
    append: (path) => `with open(${JSON.stringify(path)}, "a") as f: _ = f.write("once")`,
    flood: (bytes) => `print("y" * ${bytes})`,
    die: 'import os, signal; os.kill(os.getpid(), signal.SIGKILL)',
  },
  node: {
    set: (value) => `var x = ${value}`,
    print: 'console.log(x)',
    fail: 'throw new RangeError("no")',
    failure: 'RangeError',
    echoStdin: 'console.log(fs.readFileSync(0, "utf8").trim())',
    printEnv: 'console.log(process.env.GREETING ?? "none")',
    spin: 'await 0; while (true);',
    deaf: 'while (true) { try { child_process.execSync("trap \\"\\" INT; sleep 60") } catch {} }',
    append: (path) => `fs.appendFileSync(${JSON.stringify(path)}, "once")`,
    flood: (bytes) => `console.log("y".repeat(${bytes}))`,
    die: 'process.kill(process.pid, "SIGKILL")',
  },
  bash: {
    set: (value) => `x=${value}`,
    print: 'echo $x',
    fail: '(exit 3)',
    failure: 'ExitStatus',
    echoStdin: 'read -r line; echo "$line"',
    printEnv: 'echo "${GREETING:-none}"',
    spin: 'while :; do :; done',
    deaf: 'trap "" INT; while :; do :; done',
    append: (path) => `printf once >> ${path}`,
    flood: (bytes) => `head -c ${bytes} /dev/zero | tr '\\0' y`,
    die: 'kill -9 $$',
  },
}

const CAP = 2 * 1024 * 1024
const RUNTIMES = ['python', 'node', 'bash'] as const

/** What every transport of the guest must do, in every language. */
export function describeGuest(name: string, start: () => Promise<ConformanceGuest>): void {
  describe(`the guest over ${name}`, requires('root', 'python3'), () => {
    let guest: ConformanceGuest
    beforeAll(async () => {
      guest = await start()
    })
    afterAll(() => guest.stop())

    describe.each(RUNTIMES)('%s', (runtime) => {
      const words = WORDS[runtime]
      const open = async () => {
        const session = await guest.open(runtime)
        return { session, [Symbol.asyncDispose]: () => session.close() }
      }

      it('remembers what a step did', async () => {
        await using opened = await open()
        expect(await opened.session.run(words.set(41))).toEqual(completed(''))
        expect(await opened.session.run(words.print)).toEqual(completed('41\n'))
      })

      it('fails a step that fails, by the name of its error, and goes on', async () => {
        await using opened = await open()
        const failed = await opened.session.run(words.fail)
        expect(failed).toMatchObject({ status: 'failed', error: { name: words.failure }, restarted: false })
        await opened.session.run(words.set(1))
        expect(await opened.session.run(words.print)).toEqual(completed('1\n'))
      })

      it('gives a step its own stdin and its own variables', async () => {
        await using opened = await open()
        expect(await opened.session.run(words.echoStdin, { stdin: 'hello\n' })).toEqual(completed('hello\n'))
        expect(await opened.session.run(words.printEnv, { env: { GREETING: 'hi "there"\\' } })).toEqual(
          completed('hi "there"\\\n'),
        )
        expect(await opened.session.run(words.printEnv)).toEqual(completed('none\n'))
      })

      it('keeps its state when a step is interrupted', async () => {
        await using opened = await open()
        await opened.session.run(words.set(7))
        const running = opened.session.run(words.spin)
        await interruptUntilOver(opened.session, running)
        expect(await running).toMatchObject({ status: 'failed', error: { name: 'Interrupted' }, restarted: false })
        expect(await opened.session.run(words.print)).toEqual(completed('7\n'))
      })

      it('keeps its state when a step takes too long and obeys', async () => {
        await using opened = await open()
        await opened.session.run(words.set(8))
        const late = await opened.session.run(words.spin, { timeoutMs: 300 })
        expect(late).toMatchObject({ status: 'failed', error: { name: 'Timeout' }, restarted: false })
        expect(await opened.session.run(words.print)).toEqual(completed('8\n'))
      })

      it('starts anew and says so when a step takes too long and does not obey', async () => {
        await using opened = await open()
        const late = await opened.session.run(words.deaf, { timeoutMs: 300 })
        expect(late).toMatchObject({ status: 'failed', error: { name: 'Timeout' }, restarted: true })
        await opened.session.run(words.set(2))
        expect(await opened.session.run(words.print)).toEqual(completed('2\n'))
      })

      it('starts anew and says so when the interpreter dies', async () => {
        await using opened = await open()
        expect(await opened.session.run(words.die)).toMatchObject({
          status: 'failed',
          error: { name: 'RuntimeCrashed' },
          restarted: true,
        })
        await opened.session.run(words.set(3))
        expect(await opened.session.run(words.print)).toEqual(completed('3\n'))
      })

      it('forgets everything when it is restarted', async () => {
        await using opened = await open()
        await opened.session.run(`${words.set(5)}\n${words.append(`${guest.work}/${runtime}-before`)}`)
        await opened.session.restart()
        const after = await opened.session.run(words.print)
        expect(after.stdout.trim()).toBe('')
      })

      it('runs a step id at most once', async () => {
        await using opened = await open()
        const code = `${words.set(6)}\n${words.append(`${guest.work}/${runtime}-once`)}\n${words.print}`
        const both = await Promise.all([
          opened.session.run(code, { stepId: 'the-one' }),
          opened.session.run(code, { stepId: 'the-one' }),
        ])
        expect(both).toEqual([completed('6\n'), completed('6\n')])
        expect(await opened.session.run(code, { stepId: 'the-one' })).toEqual(completed('6\n'))
        const read = await guest.open('bash')
        expect(await read.run(`cat ${guest.work}/${runtime}-once`)).toEqual(completed('once'))
        await read.close()
      })

      it('lets steps take turns, each with its own output', async () => {
        await using opened = await open()
        const values = [1, 2, 3, 4, 5]
        const results = await Promise.all(
          values.map((value) => opened.session.run(`${words.set(value)}\n${words.print}`)),
        )
        expect(results).toEqual(values.map((value) => completed(`${value}\n`)))
      })

      it('does not mix two sessions', async () => {
        await using one = await open()
        await using two = await open()
        await Promise.all([one.session.run(words.set(1)), two.session.run(words.set(10))])
        expect(await Promise.all([one.session.run(words.print), two.session.run(words.print)])).toEqual([
          completed('1\n'),
          completed('10\n'),
        ])
      })

      it('cuts output at its cap and goes on', async () => {
        await using opened = await open()
        const flood = await opened.session.run(words.flood(3 * 1024 * 1024))
        expect(flood).toEqual({ ...completed('y'.repeat(CAP)), truncated: true })
        await opened.session.run(words.set(9))
        expect(await opened.session.run(words.print)).toEqual(completed('9\n'))
      })
    })
  })
}

function completed(stdout: string): ConformanceResult {
  return { status: 'completed', stdout, stderr: '', outputs: [], error: undefined, restarted: false, truncated: false }
}

/** An interrupt that comes before the code runs finds nothing: again, until it did. */
async function interruptUntilOver(session: ConformanceSession, running: Promise<unknown>): Promise<void> {
  const isOver = running.then(() => true)
  const again = async () => {
    await session.interrupt()
    await new Promise((resolve) => setTimeout(resolve, 100))
    return false
  }
  while (!(await Promise.race([isOver, again()])));
}
