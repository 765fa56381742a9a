import { Airlock, type Session, type Step } from '@airlock/sdk'
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { stripVTControlCharacters } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { CLI, CliProcess, type Ended } from '../../packages/cli/src/testing/cli-process.ts'
import { requires } from '../support/requires.ts'
import { borrowServer, type BorrowedServer } from '../support/borrow-server.ts'

const EXAMPLES = fileURLToPath(new URL('../../examples', import.meta.url))
const PATIENT = { timeout: 100_000 }

describe('what people do', requires('root', 'crun', 'python3'), () => {
  let server: BorrowedServer
  let airlock: Airlock
  let home: string
  beforeAll(async () => {
    server = await borrowServer()
    airlock = new Airlock({ url: server.url, apiKey: server.developerKey })
    home = mkdtempSync(join(tmpdir(), 'airlock-people-'))
  })
  afterAll(async () => {
    await server?.giveBack()
    if (home) rmSync(home, { recursive: true })
  })

  const env = (): NodeJS.ProcessEnv => ({
    PATH: process.env['PATH'] ?? '',
    HOME: home,
    AIRLOCK_URL: server.url,
    AIRLOCK_API_KEY: server.developerKey,
  })
  const cli = async (...argv: string[]): Promise<Ended> => {
    const process_ = new CliProcess(argv, { env: env(), cwd: home })
    process_.child.stdin.end()
    return process_.ended
  }
  const living = async (): Promise<readonly string[]> => (await airlock.sandboxes.list()).items.map(({ id }) => id)

  describe('from TypeScript', () => {
    it('runs an async program with types that remembers', async () => {
      await using session = await airlock.sessions.create({ runtime: 'node' })
      await session.run(`
        interface Point { readonly x: number; readonly y: number }
        const points: Point[] = []
        async function add(x: number): Promise<void> {
          await new Promise((resolve) => setTimeout(resolve, 10))
          points.push({ x, y: x ** 2 })
        }`)
      const result = await session.run('await Promise.all([1, 2, 3].map(add)); points.map(({ y }) => y)')
      expect(result).toMatchObject({ status: 'completed', error: null, restarted: false })
      expect(result.outputs.map(({ kind, text }) => [kind, text])).toEqual([['result', '[ 1, 4, 9 ]']])
      expect((await session.run('points.length')).outputs[0]?.text).toBe('3')
    })

    it('keeps a shell with its functions, variables and directory', async () => {
      await using session = await airlock.sessions.create({ runtime: 'bash' })
      await session.run('greet() { echo "hello $1 from $PWD"; }; mkdir -p deep/er; cd deep/er; NAME=Ada')
      expect((await session.run('greet "$NAME"')).stdout).toBe('hello Ada from /workspace/deep/er\n')
      await session.files.write('deep/er/in.txt', 'one\ntwo\n')
      expect((await session.run('wc -l < in.txt')).stdout.trim()).toBe('2')
      expect(await session.run('false')).toMatchObject({ stdout: '' })
    })

    it('streams, interrupts by a signal, and goes on with what it had', async () => {
      await using session = await python(airlock)
      await session.run('x = 41')
      const enough = new AbortController()
      const heard: string[] = []
      const endless = session.run(
        'import time\nfor i in range(10_000):\n    print(i, flush=True)\n    time.sleep(0.05)',
        {
          signal: enough.signal,
          onStdout: (text) => {
            heard.push(text)
            if (heard.join('').includes('2\n')) enough.abort(new TypeError('enough'))
          },
        },
      )
      await expect(endless).rejects.toThrow('enough')
      expect(heard.join('')).toMatch(/^0\n1\n2\n/)
      const next = await session.run('x + 1')
      expect([next.status, next.outputs[0]?.text, next.restarted]).toEqual(['completed', '42', false])
      // The server learns of the end of a step that its client left by asking the data plane, maybe after the next step has ended.
      const ends = async () => (await session.steps()).items.map(({ status, error }) => [status, error?.name])
      await expect.poll(ends, PATIENT).toEqual([
        ['completed', undefined],
        ['failed', 'Interrupted'],
        ['completed', undefined],
      ])
    })

    it('takes back a step that waits for its turn, and leaves alone the one that runs', async () => {
      await using session = await airlock.sessions.create({ runtime: 'bash' })
      let waiting: Promise<unknown> = Promise.resolve()
      const enough = new AbortController()
      const running = session.run('echo ready; until [ -e go ]; do sleep 0.05; done; echo first', {
        onStdout: (text) => {
          if (text === 'ready\n')
            waiting = session.run('echo second > said', { stepId: 'second', signal: enough.signal }).catch(String)
        },
      })
      const find = async (): Promise<Step | undefined> =>
        (await session.steps()).items.find(({ stepId }) => stepId === 'second')
      await expect.poll(find, PATIENT).toBeDefined()
      enough.abort(new TypeError('enough'))
      expect(await waiting).toContain('enough')
      await expect.poll(async () => (await find())?.error?.name, PATIENT).toBe('Interrupted')
      await session.files.write('go', '')
      expect(await running).toMatchObject({ status: 'completed', stdout: 'ready\nfirst\n' })
      expect((await session.run('ls said')).status).toBe('failed')
    })

    it('gets what was raised, and input, and runs a step once', async () => {
      await using session = await python(airlock)
      const failed = await session.run('def f():\n    return 1 / 0\nf()')
      expect(failed).toMatchObject({
        status: 'failed',
        error: { name: 'ZeroDivisionError', message: 'division by zero' },
      })
      expect(failed.error?.traceback).toContain('line 2')
      expect((await session.run('print(input() + input())', { stdin: 'a\nb\n' })).stdout).toBe('ab\n')
      const count = 'n = globals().get("n", 0) + 1\nprint(n)'
      const [first, second] = [
        await session.run(count, { stepId: 'same' }),
        await session.run(count, { stepId: 'same' }),
      ]
      expect([first.stdout, second.stdout, second.id]).toEqual(['1\n', '1\n', first.id])
    })
  })

  describe('from a shell', () => {
    it('runs a TypeScript file and a shell file of the examples', async () => {
      const typescript = await cli('run', join(EXAMPLES, 'workers.ts'))
      expect(typescript).toMatchObject({ code: 0, stderr: '' })
      expect(typescript.stdout).toContain('0 8ed3f6ad\n1 f44e64e7\n2 be9d587d\n')
      const shell = await cli('run', join(EXAMPLES, 'tour.sh'), "Ada's friend")
      expect(shell).toEqual({
        code: 0,
        stdout:
          "hello Ada's friend, from user in /workspace/notes\n 1 ./one.txt\n 1 ./three.txt\n 1 ./two.txt\n 3 total\n",
        stderr: '',
      })
      expect(await living()).toEqual([])
    })

    it('passes arguments to each interpreter as they are', async () => {
      const odd = ['--flag', 'a b', `it's "$HOME" \\n ü`]
      writeFileSync(join(home, 'args.py'), 'import sys, json\nprint(json.dumps(sys.argv, ensure_ascii=False))')
      writeFileSync(join(home, 'args.js'), 'console.log(JSON.stringify(process.argv.slice(1)))')
      writeFileSync(join(home, 'args.sh'), 'printf "%s|" "$0" "$@"')
      const python3 = await cli('run', '--template', 'base', 'args.py', ...odd)
      expect(JSON.parse(python3.stdout.replaceAll('": "', '":"'))).toEqual(['args.py', ...odd])
      expect(JSON.parse((await cli('run', 'args.js', ...odd)).stdout)).toEqual(['args.js', ...odd])
      expect((await cli('run', 'args.sh', ...odd)).stdout).toBe(`args.sh|${odd.join('|')}|`)
    })

    it('sees where a file failed', async () => {
      writeFileSync(join(home, 'fails.py'), 'x = 1\nraise ValueError("no")\n')
      const failed = await cli('run', '--template', 'base', 'fails.py')
      expect(failed).toMatchObject({ code: 1, stdout: '' })
      expect(failed.stderr).toMatch(/line 2[^]*ValueError: no\n$/)
    })
  })

  describe('at the prompt', () => {
    /** On a terminal of its own; what is written to stdin is typed there. */
    function open(argv: string): CliProcess {
      const command = ['script', '-qec', `"${process.execPath}" "${CLI}" ${argv}`, '/dev/null']
      const onTerminal = { ...env(), TERM: 'xterm', NO_COLOR: '1', SHELL: '/bin/sh' }
      return new CliProcess([], { command, env: onTerminal, cwd: home })
    }

    async function type(repl: CliProcess, keys: string, until: RegExp): Promise<string> {
      const before = repl.stdout.length
      repl.child.stdin.write(keys)
      const said = (): string => stripVTControlCharacters(repl.stdout.subarray(before).toString()).replaceAll('\r', '')
      await expect.poll(said, PATIENT).toMatch(until)
      return said()
    }

    async function leave(repl: CliProcess, keys = '\u0004', code = 0): Promise<void> {
      repl.child.stdin.write(keys)
      expect((await repl.ended).code).toBe(code)
      await expect.poll(living, PATIENT).toEqual([])
    }

    it('writes Python in several lines, interrupts it, and finds it as it was', async () => {
      const repl = open('python --template base')
      expect(await type(repl, '', />>> $/)).toMatch(/Python 3\.\d+\.\d+ in sbx_\w+\. Ctrl-D leaves\.\n>>> $/)
      await type(repl, 'def square(x):\r', /\n\.\.\. $/)
      await type(repl, '    return x * x\r', /\n\.\.\. $/)
      await type(repl, '\r', /\n>>> $/)
      expect(await type(repl, 'square(7)\r', /\n>>> $/)).toBe('square(7)\n49\n>>> ')
      expect(await type(repl, 'print("\\x1b[2J", end="")\r', /\n>>> $/)).toContain('␛[2J\n>>> ')
      expect(await type(repl, '1 / 0\r', /\n>>> $/)).toContain('ZeroDivisionError: division by zero\n')
      await type(repl, 'import time; print("on"); time.sleep(60)\r', /\non\n/)
      expect(await type(repl, '\u0003', /\n>>> $/)).toContain('KeyboardInterrupt')
      expect(await type(repl, 'squ\t', /square\($/)).toContain('square(')
      expect(await type(repl, '3)\r', /\n>>> $/)).toBe('3)\n9\n>>> ')
      expect(await type(repl, '!echo $((6*7)) >&2\r', /\n>>> $/)).toBe('!echo $((6*7)) >&2\n42\n>>> ')
      expect(await type(repl, 'input()\r', /\n>>> $/)).toContain('airlock: code at the prompt has no input to read.')
      await type(repl, '!echo on; sleep 600\r', /\non\n/)
      await type(repl, '\u0003', />>> $/)
      expect(await type(repl, 'square(3)\r', /\n>>> $/)).toBe('square(3)\n9\n>>> ')
      await leave(repl)
      const again = open('python --template base')
      await type(again, '', />>> $/)
      expect(await type(again, '\u001B[A', /square\(3\)$/)).toContain('square(3)')
      await type(again, '\u0003', /\n>>> $/)
      await leave(again)
    })

    it('waits for the end of what is typed in Node and Bash', async () => {
      const node = open('node')
      await type(node, '', /\n> $/)
      await type(node, 'const twice = async (n: number): Promise<number> => {\r', /\n\.\.\. $/)
      await type(node, 'return n * 2\r', /\n\.\.\. $/)
      await type(node, '}\r', /\n> $/)
      expect(await type(node, 'await twice(21)\r', /\n> $/)).toBe('await twice(21)\n42\n> ')
      await type(node, 'Math.ab\t', /Math\.abs$/)
      await type(node, '(-3)\r', /\n3\n> $/)
      await leave(node, '.exit\r')
      const bash = open('bash')
      await type(bash, '', /\n\$ $/)
      await type(bash, 'cd /tmp; cat <<EOF\r', /\n> $/)
      expect(await type(bash, 'a $((6*7))\rEOF\r', /\n\$ $/)).toMatch(/\na 42\n\$ $/)
      expect(await type(bash, 'pwd\r', /\n\$ $/)).toBe('pwd\n/tmp\n$ ')
      await type(bash, 'cd /works\t', /cd \/workspace$/)
      await type(bash, '\r', /\n\$ $/)
      await leave(bash, 'exit 3\r', 3)
      expect(readdirSync(join(home, '.airlock')).toSorted()).toEqual(['history-bash', 'history-node', 'history-python'])
    })
  })
})

/** Without the packages that have to be installed first. */
async function python(airlock: Airlock): Promise<Session> {
  return airlock.sessions.create({ runtime: 'python', create: { template: 'base' } })
}
