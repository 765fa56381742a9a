import { Airlock } from '@airlock/sdk'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { KEYS, startTestApi, type TestApi } from '../../control-plane/src/api/testing/test-api.ts'
import { CLI, CliProcess, type Ended } from './testing/cli-process.ts'

const PATIENT = { timeout: 100_000 }

let api: TestApi
let home: string
let env: NodeJS.ProcessEnv
beforeAll(async () => {
  api = await startTestApi()
  home = await mkdtemp(join(tmpdir(), 'airlock-cli-code-'))
  env = { PATH: process.env['PATH'] ?? '', HOME: home, AIRLOCK_URL: api.url, AIRLOCK_API_KEY: KEYS.developer }
})
afterAll(async () => {
  await api.close()
  await rm(home, { recursive: true })
})

/** The code of a step is for bash here, whatever its runtime, and remembers nothing. */
async function airlock(...argv: string[]): Promise<Ended> {
  return airlockIn(home, { argv })
}

async function airlockIn(
  cwd: string,
  run: { readonly argv: readonly string[]; readonly input?: string },
): Promise<Ended> {
  const process_ = new CliProcess(run.argv, { env, cwd })
  process_.child.stdin.end(run.input ?? '')
  return process_.ended
}

const ok = (stdout: string): Ended => ({ code: 0, stdout, stderr: '' })
const rich = (data: object): string => `echo '${JSON.stringify({ kind: 'result', data })}' >&3`

function living(): readonly string[] {
  return [...api.core.sandboxes.values()].filter((one) => one.state === 'active').map((one) => one.id)
}

describe('code', () => {
  it('of a file runs in a sandbox of its own, beside the files that it needs', async () => {
    await writeFile(join(home, 'program.sh'), 'echo "in $(cat data.txt)"; echo err >&2')
    await writeFile(join(home, 'data.txt'), 'here')
    expect(await airlock('run', '--with', 'data.txt', 'program.sh')).toEqual({
      code: 0,
      stdout: 'in here\n',
      stderr: 'err\n',
    })
    expect(living()).toEqual([])
  })

  it('that fails says why, and exits with 1', async () => {
    const error = { name: 'ValueError', message: 'no', traceback: 'Traceback:\n  line 1\nValueError: no' }
    await writeFile(join(home, 'fails.sh'), `echo '${JSON.stringify({ kind: 'error', error })}' >&3`)
    expect(await airlock('run', 'fails.sh')).toEqual({ code: 1, stdout: '', stderr: `${error.traceback}\n` })
    expect(living()).toEqual([])
  })

  it('of a directory is copied as it stands in it, and what is not there is named', async () => {
    const project = join(home, 'project')
    await mkdir(join(project, 'lib'), { recursive: true })
    await writeFile(join(project, 'lib', 'name.txt'), 'here')
    const run = async (...argv: string[]): Promise<Ended> => airlockIn(project, { argv: ['run', ...argv] })
    expect(await run('--with', '.', '--', 'cat', 'lib/name.txt')).toEqual(ok('here'))
    expect(await run('--with', '../project', '--', 'cat', 'project/lib/name.txt')).toEqual(ok('here'))
    expect((await run('--with', 'nothere', '--', 'true')).stderr).toBe(
      'error: There is no file or directory nothere. (ENOENT)\n',
    )
  })

  it('that takes too long says so, after where it was', async () => {
    const error = { name: 'KeyboardInterrupt', message: '', traceback: 'Traceback:\nKeyboardInterrupt' }
    const code = `echo '${JSON.stringify({ kind: 'error', error })}' >&3; exec 3>&-; sleep 60`
    const { stderr, code: exitCode } = await airlock('bash', '--timeout', '3s', '-c', code)
    expect(stderr).toMatch(/^Traceback:\nKeyboardInterrupt\nTimeout: /)
    expect(exitCode).toBe(1)
  })

  it('after -- is a program of the sandbox', async () => {
    await writeFile(join(home, 'exits.sh'), 'exit 7')
    expect((await airlock('run', 'exits.sh')).code).toBe(1)
    expect((await airlock('run', '--with', 'exits.sh', '--', 'sh', 'exits.sh')).code).toBe(7)
    expect((await airlock('run', '--', 'exits.sh')).stderr).toContain('executable_not_found')
  })

  it('comes from an option, from a pipe or from a file', async () => {
    expect(await airlock('bash', '-c', 'echo given')).toEqual(ok('given\n'))
    expect(await airlockIn(home, { argv: ['bash'], input: 'echo piped' })).toEqual(ok('piped\n'))
    expect(await airlock('bash', 'program.sh', '--with', 'not an option')).toMatchObject({
      stderr: expect.stringContaining('data.txt') as unknown,
    })
  })

  it('reads stdin where that is asked for', async () => {
    expect(await airlockIn(home, { argv: ['bash', '--stdin', '-c', 'cat; echo end'], input: 'fed ' })).toEqual(
      ok('fed end\n'),
    )
    expect(await airlockIn(home, { argv: ['bash', '-c', 'cat; echo end'], input: 'not fed ' })).toEqual(ok('end\n'))
  })

  it('runs in a sandbox that is there, which stays', async () => {
    const { id } = await new Airlock({ url: api.url, apiKey: KEYS.developer }).sandboxes.create({ name: 'stays' })
    await airlock('bash', '--sandbox', 'stays', '-c', 'echo kept > file')
    expect(await airlock('bash', '--sandbox', id, '-c', 'cat file')).toEqual(ok('kept\n'))
    expect(living()).toEqual([id])
    await airlock('rm', id)
  })

  it('shows values and tables as text, and saves pictures under names that are free', async () => {
    const cwd = await mkdtemp(join(home, 'pictures-'))
    await symlink('/nowhere/at/all', join(cwd, 'plot-1.png'))
    const code = [
      rich({ 'text/plain': '   a\n0  1', 'text/html': '<table></table>' }),
      rich({ 'text/html': '<table><tr><th></th><th>a</th></tr><tr><th>0</th><td>&lt;1&gt;</td></tr></table>' }),
      rich({ 'application/json': { a: [1] } }),
      rich({ 'image/png': Buffer.from('picture').toString('base64'), 'text/plain': '<Figure>' }),
      rich({ 'image/svg+xml': '<svg/>' }),
    ].join(';')
    expect(await airlockIn(cwd, { argv: ['bash', '-c', code] })).toEqual({
      code: 0,
      stdout: '   a\n0  1\n     a\n0  <1>\n{\n  "a": [\n    1\n  ]\n}\n',
      stderr: 'Saved plot-2.png\nSaved plot-3.svg\n',
    })
    expect(await readFile(join(cwd, 'plot-2.png'), 'utf8')).toBe('picture')
    expect((await readdir(cwd)).toSorted()).toEqual(['plot-1.png', 'plot-2.png', 'plot-3.svg'])
  })

  it('answers one JSON object when asked to, with its pictures inside', async () => {
    const cwd = await mkdtemp(join(home, 'json-'))
    const code = `echo out; ${rich({ 'image/png': 'cGlj' })}`
    const { code: exitCode, stdout } = await airlockIn(cwd, { argv: ['bash', '--json', '-c', code] })
    expect([exitCode, JSON.parse(stdout)]).toMatchObject([
      0,
      { status: 'completed', stdout: 'out\n', outputs: [{ kind: 'result', data: { 'image/png': 'cGlj' } }] },
    ])
    expect(await readdir(cwd)).toEqual([])
  })

  it('is interrupted by the first Ctrl-C, and given up at the second', async () => {
    const code = 'trap "echo caught; trap - INT" INT; echo ready; while :; do sleep 0.05; done'
    const running = new CliProcess(['bash', '-c', code], { env, cwd: home })
    await expect.poll(() => running.stdout.toString(), PATIENT).toBe('ready\n')
    running.child.kill('SIGINT')
    await expect.poll(() => running.stdout.toString(), PATIENT).toBe('ready\ncaught\n')
    running.child.kill('SIGINT')
    expect((await running.ended).code).toBe(130)
    expect(living()).toEqual([])
  })

  it('has its template installed first', async () => {
    expect(await airlock('bash', '--template', 'data', '-c', 'echo there')).toEqual({
      code: 0,
      stdout: 'there\n',
      stderr: 'Installing the template data; this is done once.\n',
    })
    expect(await airlock('bash', '--template', 'data', '-c', 'echo there')).toEqual(ok('there\n'))
    expect((await airlock('bash', '--template', 'none', '-c', ':')).stderr).toContain('template_not_found')
  })
})

describe('a template that takes long', () => {
  it('is left alone at the first Ctrl-C', async () => {
    const slow = await startTestApi({
      buildTemplate: async function* () {
        yield { event: 'progress', step: 'download', done: 1, total: 2, detail: '' }
        await new Promise(() => undefined)
      },
    })
    const run = new CliProcess(['bash', '--template', 'data', '-c', ':'], { env: { ...env, AIRLOCK_URL: slow.url } })
    await expect.poll(() => run.stderr.toString(), PATIENT).toContain('Installing the template data')
    run.child.kill('SIGINT')
    expect(await run.ended).toMatchObject({ code: 130, stdout: '' })
    expect(slow.core.sandboxes.size).toBe(0)
    await slow.close()
  })
})

describe('session', () => {
  it('lists, inspects, interrupts, restarts and ends', async () => {
    const session = await new Airlock({ url: api.url, apiKey: KEYS.developer }).sessions.create({ runtime: 'bash' })
    const { id } = session
    expect((await airlock('session', 'ls')).stdout).toMatch(new RegExp(`^ID .*\\n${id}  bash     active  sbx_`))
    const running = session.run('echo ready; exec sleep 30', {
      onStdout: async () => expect(await airlock('session', 'interrupt', id)).toEqual(ok(`${id}\n`)),
    })
    expect(await running).toMatchObject({ status: 'failed' })
    expect(await airlock('session', 'restart', id)).toEqual(ok(`${id}\n`))
    const { stdout } = await airlock('session', 'inspect', id)
    expect(stdout).toMatch(/^id +ses_.*\nstate +active\nruntime +bash, bash of a test\n/)
    expect(stdout).toMatch(/restarts +1\n[^]*stp_\w+ +failed .*Interrupted/)
    expect(JSON.parse((await airlock('session', 'inspect', '--json', id)).stdout)).toMatchObject({ id, steps: [{}] })
    expect(await airlock('session', 'rm', id, 'ses_none')).toMatchObject({ code: 1, stdout: `${id}\n` })
    expect(JSON.parse((await airlock('session', 'ls', '--json')).stdout)).toEqual([])
    expect((await airlock('session', 'ls', '--all')).stdout).toContain('terminated (terminated)')
  })
})

describe('template', () => {
  it('lists, builds, imports and removes', async () => {
    expect((await airlock('template', 'ls')).stdout).toMatch(/^NAME .*\nbase +ready +host, shipped/)
    expect(await airlock('template', 'build', 'web', '--package', 'jq')).toEqual(ok('web is ready (2 KiB)\n'))
    expect(await airlock('template', 'build', 'bad', '--package', 'no-such-package')).toEqual({
      code: 1,
      stdout: '',
      stderr: 'error: There is no package no-such-package. (template_failed)\nRead the message; build it again.\n',
    })
    const tree = await mkdtemp(join(home, 'tree-'))
    await writeFile(join(tree, 'file'), 'content')
    expect(await airlock('template', 'import', 'tree', tree)).toEqual(ok('tree is ready (2 KiB)\n'))
    const imported = await airlockIn(home, { argv: ['template', 'import', '--json', 'piped', '-'], input: 'tar' })
    expect(JSON.parse(imported.stdout)).toMatchObject({ name: 'piped', source: 'imported', bytes: 3 })
    expect(await airlock('template', 'rm', 'web', 'tree')).toEqual(ok('web\ntree\n'))
    expect((await airlock('template', 'rm', 'web')).stderr).toContain('template_not_found')
  })
})

describe('the prompt', () => {
  const hasScript = existsSync('/usr/bin/script')

  /** On a terminal of its own; what is written to stdin is typed there. */
  function open(argv: string): CliProcess {
    const command = ['script', '-qec', `"${process.execPath}" "${CLI}" ${argv}`, '/dev/null']
    return new CliProcess([], { command, env: { ...env, TERM: 'xterm', NO_COLOR: '1', SHELL: '/bin/sh' }, cwd: home })
  }

  async function type(repl: CliProcess, keys: string, until: RegExp): Promise<string> {
    const before = repl.stdout.length
    repl.child.stdin.write(keys)
    const said = (): string => visible(repl.stdout.subarray(before).toString())
    await expect.poll(said, PATIENT).toMatch(until)
    return said()
  }

  it.skipIf(!hasScript)('takes lines, blocks and pastes, and prints what comes', async () => {
    const repl = open('bash')
    await type(repl, '', /Ctrl-D leaves\.\n\$ $/)
    expect(await type(repl, 'echo one\r', /\n\$ $/)).toBe('echo one\none\n$ ')
    expect(await type(repl, 'for i in 1 2; do\r', /\n> $/)).toBe('for i in 1 2; do\n> ')
    expect(await type(repl, 'echo $i; done\r', /\n\$ $/)).toBe('echo $i; done\n1\n2\n$ ')
    expect(await type(repl, 'echo a\rprintf b\r', /\n\$ $/)).toMatch(/\na\nb\n\$ $/)
    expect(await type(repl, `printf '\\033[2J'\r`, /\n\$ $/)).toContain('␛[2J')
    expect(await type(repl, '(exit 3)\r', /\n\$ $/)).toContain('Failed: ended with 3\n')
    repl.child.stdin.write('\u0004')
    expect((await repl.ended).code).toBe(0)
    expect(living()).toEqual([])
  })

  it.skipIf(!hasScript)('interrupts what runs, forgets what was typed, and leaves at the second Ctrl-C', async () => {
    const repl = open('bash')
    await type(repl, '', /\$ $/)
    await type(repl, 'trap "exit 4" INT; echo ready; while :; do sleep 0.05; done\r', /\nready\n/)
    expect(await type(repl, 'ahead\u0003', /\n\$ $/)).toBe('Interrupted: ended with 4\n$ ')
    await type(repl, 'if true; then\r', /\n> $/)
    expect(await type(repl, 'never\u0003', /\n\$ $/)).toBe('never\n$ ')
    expect(await type(repl, '\u0003', /\n\$ $/)).toBe('\n(Ctrl-C again or Ctrl-D leaves)\n$ ')
    repl.child.stdin.write('\u0003')
    expect((await repl.ended).code).toBe(0)
    expect(living()).toEqual([])
  })

  it.skipIf(!hasScript)('starts an interpreter anew that does not listen', async () => {
    const repl = open('bash')
    await type(repl, '', /\$ $/)
    await type(repl, 'trap "" INT; echo ready; while :; do sleep 0.05; done\r', /\nready\n/)
    await type(repl, '\u0003\u0003', /Ctrl-C once more/)
    expect(await type(repl, '\u0003', /\n\$ $/)).toContain('the interpreter was started anew')
    repl.child.stdin.write('\u0004')
    expect((await repl.ended).code).toBe(0)
  })

  it.skipIf(!hasScript)('remembers what was typed the last time, for its own user alone', async () => {
    const first = open('bash')
    await type(first, '', /\$ $/)
    await type(first, 'echo remembered\r', /\nremembered\n\$ $/)
    first.child.stdin.write('\u0004')
    await first.ended
    const file = join(home, '.airlock', 'history-bash')
    expect((await stat(file)).mode & 0o777).toBe(0o600)
    const second = open('bash')
    await type(second, '', /\$ $/)
    expect(await type(second, '\u001B[A\r', /\nremembered\n\$ $/)).toContain('echo remembered')
    second.child.stdin.write('\u0004')
    await second.ended
  })
})

/** What a person would see, without the movements of the cursor. */
function visible(text: string): string {
  return stripVTControlCharacters(text).replaceAll('\r', '')
}
