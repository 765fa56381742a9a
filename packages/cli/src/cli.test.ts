import { canonical, GENESIS, hashRecord, signHead } from '@airlock/audit'
import type { AuditRecord } from '@airlock/contract'
import { Airlock } from '@airlock/sdk'
import { generateKeyPairSync } from 'node:crypto'
import { existsSync } from 'node:fs'
import { copyFile, mkdir, mkdtemp, readdir, readFile, readlink, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { KEYS, startTestApi, type TestApi } from '../../control-plane/src/api/testing/test-api.ts'
import { CLI, CliProcess, type Ended } from './testing/cli-process.ts'

const { version } = JSON.parse(await readFile(new URL('../package.json', import.meta.url), 'utf8')) as {
  version: string
}

/** A process on a busy machine takes its time to start. */
const PATIENT = { timeout: 100_000 }

let api: TestApi
let home: string
let env: NodeJS.ProcessEnv
beforeAll(async () => {
  api = await startTestApi()
  home = await mkdtemp(join(tmpdir(), 'airlock-cli-'))
  await writeFile(join(home, 'developer.key'), `${KEYS.developer}\n`)
  await writeFile(join(home, 'admin.key'), `${KEYS.admin}\n`)
  env = { PATH: process.env['PATH'] ?? '', AIRLOCK_HOME: home, AIRLOCK_URL: api.url }
})
afterAll(async () => {
  await api.close()
  await rm(home, { recursive: true })
})

function start(...argv: string[]): CliProcess {
  return new CliProcess(argv, { env })
}

async function airlock(...argv: string[]): Promise<Ended> {
  const process_ = start(...argv)
  process_.child.stdin.end()
  return process_.ended
}

/** Without the CLI, for tests that are about something else. */
async function createSandbox(name?: string): Promise<string> {
  const client = new Airlock({ url: api.url, apiKey: KEYS.developer })
  return (await client.sandboxes.create(name === undefined ? {} : { name })).id
}

const ok = (stdout: string): Ended => ({ code: 0, stdout, stderr: '' })

function living(): readonly string[] {
  return [...api.core.sandboxes.values()].filter((one) => one.state === 'active').map((one) => one.id)
}

describe('run', () => {
  it('prints the output, passes the exit code on, and leaves nothing', async () => {
    expect(await airlock('run', '--', 'sh', '-c', 'echo 42; echo oops >&2; exit 7')).toEqual({
      code: 7,
      stdout: '42\n',
      stderr: 'oops\n',
    })
    expect(living()).toEqual([])
  })

  it('takes the options of the command for those of the command', async () => {
    expect(await airlock('run', 'echo', '--json', '-n')).toEqual(ok('--json -n\n'))
  })

  it('gives a shell when one is asked for, with environment and limits', async () => {
    expect(await airlock('run', '--env', 'A=1=2', '--memory', '128m', '--shell', 'echo "$A" |', 'cat')).toEqual(
      ok('1=2\n'),
    )
    const last = [...api.core.sandboxes.values()].at(-1)
    expect(last?.limits.memoryBytes).toBe(128 * 1024 ** 2)
  })

  it('passes what is piped in, byte for byte both ways', async () => {
    const bytes = Buffer.from(Array.from({ length: 70_000 }, (_, i) => i % 256))
    const running = start('run', 'cat')
    running.child.stdin.end(bytes)
    const { code } = await running.ended
    expect([code, running.stdout.equals(bytes)]).toEqual([0, true])
  })

  it('ends with the command even when its own stdin stays open', async () => {
    expect(await start('run', 'echo', 'done').ended).toEqual(ok('done\n'))
  })

  it('says by which signal a command died, as a shell does', async () => {
    expect((await airlock('run', '--shell', 'kill -9 $$')).code).toBe(137)
  })

  it('says that a command took too long', async () => {
    expect(await airlock('run', '--timeout', '100ms', 'sleep', '30')).toEqual({
      code: 137,
      stdout: '',
      stderr: 'airlock: the command took too long. Raise --timeout.\n',
    })
  })

  it('leaves nothing when the program does not exist', async () => {
    expect(await airlock('run', '/no/such/program')).toEqual({
      code: 1,
      stdout: '',
      stderr:
        'error: The program was not found in the sandbox. (executable_not_found)\nCheck its name. More programs: airlock template build NAME --package PACKAGE, then --template NAME\n',
    })
    expect(living()).toEqual([])
  })

  it('prints one JSON object when asked to', async () => {
    const { code, stdout } = await airlock('run', '--json', '--shell', 'echo out; echo err >&2; exit 2')
    expect([code, JSON.parse(stdout)]).toMatchObject([2, { exitCode: 2, stdout: 'out\n', stderr: 'err\n' }])
  })

  it('gives the first Ctrl-C to the command', async () => {
    const running = start('run', '--shell', 'trap "echo caught; exit 5" INT; echo ready; while :; do sleep 0.05; done')
    await expect.poll(() => running.stdout.toString(), PATIENT).toBe('ready\n')
    running.child.kill('SIGINT')
    expect(await running.ended).toEqual({ code: 5, stdout: 'ready\ncaught\n', stderr: '' })
    expect(living()).toEqual([])
  })

  it('ends the sandbox at the second Ctrl-C', async () => {
    const running = start('run', '--shell', 'trap "echo caught" INT; echo ready; while :; do sleep 0.05; done')
    await expect.poll(() => running.stdout.toString(), PATIENT).toBe('ready\n')
    running.child.kill('SIGINT')
    await expect.poll(() => running.stdout.toString(), PATIENT).toBe('ready\ncaught\n')
    running.child.kill('SIGINT')
    expect((await running.ended).code).toBe(130)
    expect(living()).toEqual([])
  })

  it('ends the sandbox when it is terminated itself', async () => {
    const running = start('run', '--shell', 'echo ready; exec sleep 30')
    await expect.poll(() => running.stdout.toString(), PATIENT).toBe('ready\n')
    running.child.kill('SIGTERM')
    expect((await running.ended).code).toBe(143)
    expect(living()).toEqual([])
  })

  it('waits for a slow reader, to the last byte', async () => {
    const go = join(home, 'go')
    const program = 'head -c 60000 /dev/zero; sleep 0.2; head -c 60000 /dev/zero'
    const line = `"${process.execPath}" "${CLI}" run --shell '${program}' | (until [ -e "${go}" ]; do sleep 0.05; done; wc -c)`
    const slow = new CliProcess([], { env, command: ['sh', '-c', line] })
    // All is written, and more of it than a pipe holds.
    await expect.poll(() => [...api.core.sandboxes.values()].at(-1)?.state, PATIENT).toBe('active')
    await expect.poll(living, PATIENT).toEqual([])
    await writeFile(go, '')
    expect(await slow.ended).toEqual(ok('120000\n'))
  })

  it('ends the sandbox when nobody reads any more', async () => {
    const running = start('run', '--shell', 'while :; do echo y; done')
    await expect.poll(() => running.stdout.length, PATIENT).toBeGreaterThan(0)
    running.child.stdout.destroy()
    expect((await running.ended).code).toBe(141)
    expect(living()).toEqual([])
  })
})

describe('sandboxes that stay', () => {
  it('are created, listed, inspected, extended, used by name and ended', async () => {
    const created = await airlock('create', '--name', 'stay', '--label', 'team=red', '--ttl', '5m')
    const id = created.stdout.trim()
    expect(created).toEqual({
      ...ok(`${id}\n`),
      stderr:
        'agent default, generation 1\nreserved 512 MiB memory, 1 GiB disk, 1 cpu; its agent now holds 1 of 5 sandboxes, 512 MiB of 2 GiB memory, 1 GiB of 8 GiB disk, 1 of 2 cpu\n',
    })
    expect(JSON.parse((await airlock('create', '--json', '--name', 'stay', '--reuse')).stdout)).toMatchObject({
      id,
      agentSnapshot: { state: 'connected', generation: 1, approved: true },
      reserved: { limits: { cpus: 1 }, budget: { reserved: { sandboxes: 1 } } },
    })
    expect((await airlock('connect', 'stay')).stdout).toMatch(/^socket +\/run\/airlock\/airlock\.sock\ntoken file +/)
    expect((await airlock('create', '--name', 'stay', '--reuse')).stdout.trim()).toBe(id)
    expect((await airlock('ls')).stdout).toMatch(new RegExp(`^ID .*\\n${id}  stay  active  `))
    expect((await airlock('ls', '--detailed', '--label', 'team=red')).stdout).toContain('512 MiB')
    expect(JSON.parse((await airlock('ls', '--json', '--label', 'team=blue')).stdout)).toEqual([])
    expect(await airlock('exec', 'stay', '--', 'echo', 'hello')).toEqual(ok('hello\n'))
    expect((await airlock('exec', '--shell', id, 'exit 9')).code).toBe(9)
    expect((await airlock('extend', 'stay', '1h')).stdout).toContain(`${id} expires at `)
    expect((await airlock('inspect', 'stay')).stdout).toMatch(/^id +sbx_.*\nname +stay\nstate +active\n[^]*echo hello/)
    expect(await airlock('terminate', '--force', 'stay')).toEqual(ok(`${id}\n`))
    expect((await airlock('ls', '--all')).stdout).toContain('stopped (terminated)')
  })

  it('are held to limits, which are shown and changed', async () => {
    const id = (await airlock('create', '--inodes', '5000', '--open-files', '99', '--cpu-seconds', '60')).stdout.trim()
    expect(await airlock('limits', id)).toEqual(
      ok(
        [
          'memory          512 MiB',
          'swap            none',
          'processors      1',
          'processes       256',
          'disk            1 GiB',
          'inodes          5000',
          'open files      99 of each process',
          'processor time  1m',
          '',
        ].join('\n'),
      ),
    )
    const more = ['--memory', '1g', '--cpus', '2', '--pids', '99', '--cpu-seconds', 'none', '--json']
    const changed = await airlock('limits', id, ...more)
    expect(changed.stderr).toBe('')
    expect(JSON.parse(changed.stdout)).toEqual({
      memoryBytes: 1024 ** 3,
      cpus: 2,
      pids: 99,
      diskBytes: 1024 ** 3,
      inodes: 5000,
      openFiles: 99,
      cpuSeconds: null,
    })
    expect((await airlock('limits', 'absent')).code).toBe(5)
    await airlock('terminate', id)
  })

  it('are paused and resumed', async () => {
    const id = await createSandbox()
    expect(await airlock('pause', id)).toEqual(ok(`${id}\n`))
    expect((await airlock('inspect', id)).stdout).toMatch(/^state +paused$/m)
    expect((await airlock('exec', id, '--', 'true')).code).toBe(6)
    expect(JSON.parse((await airlock('resume', '--json', id)).stdout)).toMatchObject([{ id, state: 'active' }])
    expect(await airlock('exec', id, '--', 'echo', 'on')).toEqual(ok('on\n'))
    expect(await airlock('pause', 'absent')).toMatchObject({ code: 5, stdout: '' })
  })

  it('keep the output of a command that was left running', async () => {
    const id = await createSandbox()
    const command = (await airlock('exec', '-d', '--shell', id, 'echo begun; sleep 0.3; echo over')).stdout.trim()
    expect(await airlock('logs', '-f', id, command)).toEqual(ok('begun\nover\n'))
    expect(JSON.parse((await airlock('logs', '--json', id, command)).stdout)).toMatchObject({ stdout: 'begun\nover\n' })
  })

  it('are ended as far as they are there', async () => {
    const id = await createSandbox()
    expect(await airlock('rm', 'nothing', id)).toEqual({
      code: 5,
      stdout: `${id}\n`,
      stderr:
        'error: There is no living sandbox with the name nothing. (sandbox_not_found)\nSee those that live: airlock ls\n',
    })
  })
})

describe('cp', () => {
  it('copies trees both ways, with links that stay inside, and leaves out what is usual', async () => {
    await createSandbox('files')
    const tree = join(home, 'tree')
    await mkdir(join(tree, 'deep'), { recursive: true })
    await mkdir(join(tree, '.git'))
    await mkdir(join(tree, 'deep', 'node_modules'))
    await writeFile(join(tree, '.git', 'config'), 'x')
    await writeFile(join(tree, 'deep', 'node_modules', 'x'), 'x')
    await writeFile(join(tree, 'a.bin'), Buffer.from([0, 255, 10]))
    await writeFile(join(tree, 'deep', 'b.txt'), 'b')
    await writeFile(join(tree, 'deep', 'b.log'), 'left out')
    await writeFile(join(tree, '.airlockignore'), '# logs\n*.log\n')
    await symlink('/etc/passwd', join(tree, 'out'))
    await symlink('deep/b.txt', join(tree, 'in'))
    expect(await airlock('cp', '-r', tree, 'files:')).toEqual({
      code: 0,
      stdout: '',
      stderr: 'left out out: it is a link to an absolute path\n',
    })
    const back = join(home, 'back')
    const { code, stdout } = await airlock('cp', '--json', 'files:tree', back)
    expect([code, JSON.parse(stdout)]).toMatchObject([0, { files: 3, skipped: [] }])
    expect((await readdir(back, { recursive: true })).toSorted()).toEqual(
      ['.airlockignore', 'a.bin', 'deep', 'deep/b.txt', 'in'].toSorted(),
    )
    expect(await readFile(join(back, 'a.bin'))).toEqual(Buffer.from([0, 255, 10]))
    expect(await readlink(join(back, 'in'))).toBe('deep/b.txt')
    expect((await airlock('cp', '--all', tree, 'files:whole')).code).toBe(0)
    expect((await airlock('exec', 'files', '--', 'ls', '-a', 'whole', 'whole/deep')).stdout).toMatch(
      /[.]git[\s\S]*b[.]log\nb[.]txt\nnode_modules/u,
    )
  })

  it('writes nothing outside of the directory when an archive leads there', async () => {
    await createSandbox('hostile')
    await airlock('exec', 'hostile', '--', 'sh', '-c', 'mkdir d; ln -s /etc/passwd d/evil')
    const back = join(home, 'hostile')
    const { code, stderr } = await airlock('cp', 'hostile:d', back)
    expect([code, stderr]).toEqual([
      1,
      expect.stringContaining('The entry "evil" is a link to an absolute path. 0 entries were written to'),
    ])
    expect(await readdir(back)).toEqual([])
  })

  it('copies from stdin and to stdout', async () => {
    const id = await createSandbox()
    const writing = start('cp', '-', `${id}:x`)
    writing.child.stdin.end('piped')
    expect(await writing.ended).toEqual(ok(''))
    expect(await airlock('cp', `${id}:x`, '-')).toEqual(ok('piped'))
  })

  it('refuses to copy from here to here', async () => {
    expect((await airlock('cp', 'a', 'b')).stderr).toContain('One side must be in a sandbox')
  })
})

describe('audit', () => {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519')
  const pem = publicKey.export({ type: 'spki', format: 'pem' }).toString()

  function chain(length: number): readonly AuditRecord[] {
    const records: AuditRecord[] = []
    for (let seq = 1; seq <= length; seq++) {
      const unsealed = {
        tenant: 'default',
        agent: null,
        sandbox: null,
        actor: 'key:x',
        point: 'command.run' as const,
        status: seq === 2 ? ('denied' as const) : ('done' as const),
        payload: {},
        seq,
        ts: '2026-01-01T00:00:00.000Z',
        process: 'control-plane',
        late: false,
        prev: records.at(-1)?.hash ?? GENESIS,
      }
      records.push({ ...unsealed, hash: hashRecord(unsealed) })
    }
    return records
  }

  beforeAll(async () => {
    const records = chain(3)
    const position = { seq: 3, hash: records[2]?.hash ?? '', tenant: 'default', ts: '2026-01-01T00:00:01.000Z' }
    const head = signHead(privateKey, position)
    api.core.evidence.records.push(...records.toReversed())
    api.core.evidence.lines.push(...[...records, head].map((line) => canonical(line)))
    Object.assign(api.core.evidence, { head, publicKey: pem })
  })

  it('lists records with the admin key', async () => {
    const { code, stdout } = await airlock('audit', 'ls', '--since', '1h')
    expect([code, stdout.split('\n').slice(0, 3)]).toEqual([
      0,
      [
        expect.stringMatching(/^SEQ +TIME +POINT +STATUS +ACTOR +AGENT +SANDBOX$/),
        expect.stringMatching(/^3 .* command\.run +done /),
        expect.stringMatching(/^2 .* command\.run +denied /),
      ],
    ])
  })

  it('verifies the chain of the server and says whose key it took', async () => {
    expect(await airlock('audit', 'verify')).toEqual(
      ok(
        `The evidence verifies: 3 records of default, up to 3, 1 signed heads, the last of 2026-01-01T00:00:01.000Z.\nIt was cut off behind the signed head of record 3, or made by an earlier version.\nPublic key: ${api.url}/ (the server itself)\n`,
      ),
    )
  })

  it('names the first broken record of an edited export, without a server', async () => {
    const file = join(home, 'export.ndjson')
    const key = join(home, 'key.pem')
    await writeFile(key, pem)
    await airlock('audit', 'export', file)
    const offline = async (): Promise<Ended> =>
      new CliProcess(['audit', 'verify', file, '--key', key], { env: { PATH: env['PATH'] } }).ended
    expect((await offline()).code).toBe(0)
    await writeFile(file, (await readFile(file, 'utf8')).replace('"denied"', '"done"'))
    const { code, stdout } = await offline()
    expect(code).toBe(1)
    expect(stdout).toContain('The evidence is broken at record 2 (line 2): ')
  })

  it('shows by a kept head that the end was cut off', async () => {
    const file = join(home, 'short.ndjson')
    const key = join(home, 'key.pem')
    const kept = join(home, 'head.json')
    await writeFile(kept, (await airlock('audit', 'head')).stdout)
    const records = chain(2)
    const position = { seq: 2, hash: records[1]?.hash ?? '', tenant: 'default', ts: '2026-01-01T00:00:01.000Z' }
    const lines = [...records, signHead(privateKey, position)].map((line) => canonical(line))
    await writeFile(file, lines.join('\n'))
    expect((await airlock('audit', 'verify', file, '--key', key)).code).toBe(0)
    const { code, stdout } = await airlock('audit', 'verify', '--json', file, '--key', key, '--head', kept)
    expect([code, JSON.parse(stdout)]).toMatchObject([1, { ok: false, brokenAt: 3 }])
    // As the API answers it.
    await writeFile(kept, JSON.stringify({ head: JSON.parse(await readFile(kept, 'utf8')), publicKey: pem }))
    const wrapped = await airlock('audit', 'verify', file, '--key', key, '--head', kept)
    expect([wrapped.code, wrapped.stdout]).toEqual([
      1,
      expect.stringContaining('cut off after record 2: the given head is at 3'),
    ])
    await writeFile(kept, '{}')
    expect((await airlock('audit', 'verify', file, '--key', key, '--head', kept)).stderr).toContain(
      'does not hold a signed head',
    )
  })
})

describe('when something is wrong', () => {
  it('says what, and exits as the kind of fault', async () => {
    expect((await airlock('nothing')).code).toBe(2)
    expect((await airlock('create', '--memory', 'lots')).stderr).toContain('Use a size like 512m or 1g.')
    expect((await airlock('create', '--name', 'No Name')).stderr).toMatch(/name.*\(invalid_request\)/)
    const gone = await startTestApi()
    await gone.close()
    const { code, stderr } = await new CliProcess(['ls'], { env: { ...env, AIRLOCK_URL: gone.url } }).ended
    expect([code, stderr]).toEqual([
      3,
      `error: No Airlock server answers at ${gone.url}. (server_unreachable)\nStart one with "npm start".\n`,
    ])
  })

  it('never prints a control character that a server put into an error', async () => {
    const other = await startTestApi({
      getSandbox: async () =>
        Promise.reject(
          Object.assign(new TypeError('x'), {
            [Symbol.for('airlock.error')]: true,
            code: 'internal',
            message: '\u001B]0;x\u0007',
            hint: '\u009B2J',
            status: 500,
            retryable: false,
          }),
        ),
    })
    const process_ = new CliProcess(['inspect', `sbx_${'0'.repeat(26)}`], { env: { ...env, AIRLOCK_URL: other.url } })
    const { stderr } = await process_.ended
    await other.close()
    expect(stderr).toContain(']0;x')
    expect(stderr.replaceAll('\n', '')).not.toMatch(/\p{Cc}/u)
  })

  it('says what to type where it was not built', async () => {
    const bin = join(home, 'packages/cli/bin')
    await mkdir(bin, { recursive: true })
    await copyFile(CLI, join(bin, 'airlock.js'))
    await writeFile(join(home, 'package.json'), '{"type":"module"}')
    const process_ = new CliProcess(['ls'], { env, command: [process.execPath, join(bin, 'airlock.js')] })
    expect(await process_.ended).toEqual({
      code: 1,
      stdout: '',
      stderr: 'error: Airlock is not built: run "npm run build" where it is.\n',
    })
  })
})

describe('on a terminal', () => {
  const onTerminal = async (line: string, more: NodeJS.ProcessEnv = {}): Promise<string> => {
    const command = ['script', '-qec', `"${process.execPath}" "${CLI}" ${line}`, '/dev/null']
    const process_ = new CliProcess([], { command, env: { ...env, TERM: 'xterm', SHELL: '/bin/sh', ...more } })
    return (await process_.ended).stdout
  }
  const hasScript = existsSync('/usr/bin/script')

  it.skipIf(!hasScript)('shows escape sequences of a sandbox instead of obeying them', async () => {
    const text = await onTerminal(`run --shell 'printf "\\033[2J\\033]52;c;eA==\\007ok\\n"'`)
    expect(text).toBe('␛[2J␛]52;c;eA==␇ok\r\n')
  })

  it.skipIf(!hasScript)('escapes in JSON what would steer it, and the value is the same', async () => {
    const hostile = '\u007F\u009B2J\u061C\u200E\u202E\u2066\u2028\u2029ok'
    const bytes = [...Buffer.from(hostile)].map((byte) => `\\${byte.toString(8)}`).join('')
    const text = await onTerminal(`run --json --shell "printf '${bytes}'"`)
    expect(text.replaceAll('\r\n', '')).not.toMatch(/[\p{Cc}\p{Bidi_Control}\u2028\u2029]/u)
    expect(JSON.parse(text)).toMatchObject({ stdout: hostile })
    expect(JSON.parse((await airlock('run', '--json', '--', 'printf', bytes)).stdout)).toMatchObject({
      stdout: hostile,
    })
  })

  it.skipIf(!hasScript)('shows of evidence what would steer it, and writes it as it is elsewhere', async () => {
    const before = api.core.evidence.lines
    api.core.evidence.lines = ['{"seq":1,"payload":"\u009B2J\u202Eok"}']
    try {
      expect(await onTerminal('audit export')).toBe('{"seq":1,"payload":"\\x9b2J\\u202eok"}\r\n')
      expect((await airlock('audit', 'export')).stdout).toBe('{"seq":1,"payload":"\u009B2J\u202Eok"}\n')
    } finally {
      api.core.evidence.lines = before
    }
  })

  it.skipIf(!hasScript)('has colours, unless they are not wanted', async () => {
    await createSandbox('seen')
    expect(await onTerminal('ls')).toContain('\u001B[32mactive\u001B[39m')
    expect(await onTerminal('ls', { NO_COLOR: '1' })).not.toContain('\u001B')
  })
})

describe('the command of a clone', () => {
  const SHIPPED = CLI.slice(0, -'.js'.length)

  async function typed(name: string, path: string): Promise<Ended> {
    return new CliProcess(['--version'], { env: { PATH: path }, command: [name] }).ended
  }

  it('runs by a link in PATH, with the Node of the clone, where there is no other', async () => {
    const bin = await mkdtemp(join(home, 'bin-'))
    await symlink(SHIPPED, join(bin, 'airlock'))
    for (const name of ['dirname', 'readlink']) await symlink(`/usr/bin/${name}`, join(bin, name))
    expect(await typed(join(bin, 'airlock'), bin)).toEqual(ok(`${version}\n`))
  })

  it('says what to type where the clone has no Node', async () => {
    const clone = await mkdtemp(join(home, 'clone-'))
    const bin = join(clone, 'packages/cli/bin')
    await mkdir(bin, { recursive: true })
    await copyFile(SHIPPED, join(bin, 'airlock'))
    for (const name of ['dirname', 'readlink']) await symlink(`/usr/bin/${name}`, join(clone, name))
    expect(await typed(join(bin, 'airlock'), clone)).toEqual({
      code: 1,
      stdout: '',
      stderr: `error: there is no Node for Airlock: run "npm ci" in ${clone}.\n`,
    })
  })
})

describe('under an older Node', () => {
  const old = ['/usr/bin/node', '/usr/local/bin/node'].find((path) => existsSync(path))

  it.skipIf(old === undefined)('starts itself again with the Node beside it', async () => {
    const process_ = new CliProcess(['run', '--shell', 'exit 4'], { env, command: [old ?? '', CLI] })
    process_.child.stdin.end()
    expect((await process_.ended).code).toBe(4)
  })
})
