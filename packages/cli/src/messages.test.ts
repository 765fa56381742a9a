import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Airlock, AirlockError } from '@airlock/sdk'
import { KEYS, startTestApi, type TestApi } from '../../control-plane/src/api/testing/test-api.ts'
import { CLI, CliProcess, type Ended } from './testing/cli-process.ts'

let api: TestApi
let home: string
let env: NodeJS.ProcessEnv
beforeAll(async () => {
  api = await startTestApi()
  home = await mkdtemp(join(tmpdir(), 'airlock-cli-messages-'))
  env = { PATH: process.env['PATH'] ?? '', AIRLOCK_HOME: home, AIRLOCK_URL: api.url, HOME: home }
  await writeFile(join(home, 'developer.key'), `${KEYS.developer}\n`)
  await writeFile(join(home, 'admin.key'), `${KEYS.admin}\n`)
  await writeFile(join(home, 'sales.csv'), 'a,b\n')
  await mkdir(join(home, 'examples'))
})
afterAll(async () => {
  await api.close()
  await rm(home, { recursive: true })
})

async function airlock(argv: readonly string[], more: NodeJS.ProcessEnv = {}): Promise<Ended> {
  const process_ = new CliProcess(argv, { env: { ...env, ...more }, cwd: home })
  process_.child.stdin.end()
  return process_.ended
}

/** What a newcomer types: the words, the exit code, the sentence, and what to type instead. */
const TYPED: readonly (readonly [string[], number, string, string])[] = [
  [['run'], 2, 'There is nothing to run.', 'For example: airlock run script.py, or: airlock run -- ls -l'],
  [['exec', 'box'], 2, 'There is nothing to run.', 'For example: airlock exec box -- ls -l'],
  [
    ['run', 'nothere.py'],
    2,
    'There is no file nothere.py here.',
    'For a program of the sandbox: airlock run -- nothere.py',
  ],
  [
    ['run', 'sales.csv'],
    2,
    'sales.csv is no program that airlock runs (.py, .js, .ts, .sh).',
    'To copy it in: airlock run --with sales.csv -- PROGRAM',
  ],
  [['run', './examples'], 2, './examples is a directory.', 'To copy it in: airlock run --with ./examples -- PROGRAM'],
  [['run', 'ls -la'], 2, "'ls -la' is one word, and no program.", "For a line of shell: airlock run --shell 'ls -la'"],
  [
    ['run', '--', 'python3 x.py'],
    2,
    "'python3 x.py' is one word, and no program.",
    "For a line of shell: airlock run --shell 'python3 x.py'",
  ],
  [
    ['exec', 'box', '--shell', 'ls'],
    2,
    '--shell comes after the name of the sandbox, where the program is.',
    'Options come first: airlock exec --shell box ls',
  ],
  [
    ['exec', 'ls', '-la'],
    2,
    '-la is no program: is ls the name of a sandbox?',
    'A sandbox comes first: airlock exec SANDBOX ls -la. To see them: airlock ls',
  ],
  [
    ['exec', 'box', 'cd', 'src'],
    2,
    'cd is a word of a shell, and no program.',
    "For a line of shell: airlock exec --shell box 'cd …'",
  ],
  [['create', 'box'], 2, 'The name is an option.', 'Use: airlock create --name box'],
  [
    ['python', '-m', 'pytest', '-q'],
    2,
    '-m is an option of python3, and no option of ours.',
    'Use: airlock run --with . -- python3 -m pytest -q',
  ],
  [
    ['node', '-e', 'console.log(1)'],
    2,
    '-e is an option of node, and no option of ours.',
    "Use: airlock run -- node -e 'console.log(1)'",
  ],
  [['pull', 'python'], 2, 'There is no command pull.', 'Use: airlock template import NAME ROOTFS.tar, or: '],
  [
    ['kill', '--sandbox', 'nobody', '--yes'],
    5,
    'There is no living sandbox with the name nobody. (sandbox_not_found)',
    'See those that live: airlock ls',
  ],
]

it.concurrent.each(TYPED)('airlock %j', async (argv, code, sentence, hint) => {
  const said = await airlock(argv)
  expect(said).toEqual({ code, stdout: '', stderr: expect.stringContaining(`error: ${sentence}\n${hint}`) as unknown })
})

it.concurrent.each([
  [
    ['create', '--memory', '2000'],
    "'--memory <size>' argument '2000' is invalid. It is 2000 bytes, and 64 MiB to 256 GiB are possible.",
  ],
  [['run', '--timeout', '48h', 'true'], "argument '48h' is invalid. From 1ms to 24h is possible."],
])('airlock %j names the option and its bounds', async (argv, words) => {
  const said = await airlock(argv)
  expect(said).toEqual({ code: 2, stdout: '', stderr: expect.stringContaining(words) as unknown })
})

it('names in every hint a command that exists', async () => {
  const { stdout } = await airlock(['--help'])
  const verbs = new Set([...stdout.matchAll(/^  ([a-z]+)(?:\|([a-z]+))?/gm)].flatMap(([, ...names]) => names))
  const named = TYPED.flatMap(([, , , hint]) => [...hint.matchAll(/airlock ([a-z]+)/g)].map(([, verb = '']) => verb))
  expect(named.filter((verb) => !verbs.has(verb))).toEqual([])
})

describe('a server that does not answer as it should', () => {
  it('does not know the key: says where it is from', async () => {
    const wrong = await airlock(['ls'], { AIRLOCK_API_KEY: 'al_wrong' })
    expect(wrong).toEqual({
      code: 4,
      stdout: '',
      stderr: `error: AIRLOCK_API_KEY is no key of ${api.url}. (unauthenticated)\nOn the machine of the server, unset it; elsewhere, ask an admin for one: airlock keys create NAME --role developer\n`,
    })
    const other = await mkdtemp(join(home, 'other-'))
    await writeFile(join(other, 'developer.key'), 'al_other\n')
    expect((await airlock(['ls'], { AIRLOCK_HOME: other })).stderr).toBe(
      `error: The key in ${other}/developer.key is no key of ${api.url}. (unauthenticated)\nAnother server listens there: set AIRLOCK_URL, or AIRLOCK_HOME to the directory of its state.\n`,
    )
  })

  it('speaks http where https was asked for', async () => {
    const { host } = new URL(api.url)
    expect(await airlock(['ls'], { AIRLOCK_URL: `https://${host}` })).toEqual({
      code: 3,
      stdout: '',
      stderr: `error: The server at ${host} does not speak https. (server_unreachable)\nSet AIRLOCK_URL=http://${host}\n`,
    })
  })

  it('is no Airlock at all', async () => {
    const page = createServer((_request, response) => response.writeHead(404).end('<html>')).listen(0, '127.0.0.1')
    await new Promise((resolve) => page.once('listening', resolve))
    const address = page.address()
    const port = typeof address === 'object' && address !== null ? address.port : 0
    const { stderr } = await airlock(['ls'], { AIRLOCK_URL: `http://127.0.0.1:${port}` })
    page.close()
    expect(stderr).toContain('Check that AIRLOCK_URL is an Airlock server.')
  })
})

it('a run that a person must approve says how the next one waits', async () => {
  const asking = await startTestApi({
    runCommand: async () =>
      Promise.reject(new AirlockError('approval_required', 'A person must approve it: no.', { approval: 'apr_1' })),
  })
  const { stderr, code } = await airlock(['run', '--', 'true'], { AIRLOCK_URL: asking.url })
  await asking.close()
  expect([code, stderr]).toEqual([
    4,
    'error: A person must approve it: no. (approval_required)\nAnother person types: airlock approvals approve apr_1. Then run exactly the same again; or let it wait: --wait-approval 4m\n',
  ])
})

describe('on a terminal', () => {
  const hasScript = existsSync('/usr/bin/script')

  /** On a terminal of its own; what is written to stdin is typed there. */
  function open(argv: string): CliProcess {
    const command = ['script', '-qec', `"${process.execPath}" "${CLI}" ${argv}`, '/dev/null']
    return new CliProcess([], { command, env: { ...env, TERM: 'xterm', NO_COLOR: '1', SHELL: '/bin/sh' }, cwd: home })
  }

  async function said(argv: string): Promise<string> {
    return (await open(argv).ended).stdout.replaceAll('\r', '')
  }

  it.skipIf(!hasScript).each([
    ['run -- bash', '"airlock bash"'],
    ['run -it -- sh', '"airlock bash"'],
    ['run -- /usr/bin/python3', '"airlock python"'],
    ['exec box bash', '"airlock bash"'],
  ])('%s is a prompt, and no word of it reaches the shell of the host', async (argv, named) => {
    const { sandboxes } = new Airlock({ url: api.url, apiKey: KEYS.developer })
    if (argv.startsWith('exec')) await sandboxes.create({ name: 'box' })
    const prompt = open(argv)
    await expect.poll(() => prompt.stdout.toString(), { timeout: 100_000 }).toMatch(/Ctrl-D leaves\.\r\n(?:\S+ )?/)
    expect(prompt.stdout.toString()).toContain(` has no terminal in a sandbox: this is the prompt of ${named}.`)
    prompt.child.stdin.write('echo inside\r')
    await expect.poll(() => prompt.stdout.toString(), { timeout: 100_000 }).toContain('\ninside\r\n')
    prompt.child.stdin.write('\u0004')
    expect((await prompt.ended).code).toBe(0)
  })

  it.skipIf(!hasScript)('a prompt that is left while a step runs ends well when the step has ended', async () => {
    const prompt = open('bash')
    await expect.poll(() => prompt.stdout.toString(), { timeout: 100_000 }).toMatch(/Ctrl-D leaves\.\r\n(?:\S+ )?/)
    prompt.child.stdin.write('echo begun; sleep 0.5; echo over\r')
    await expect.poll(() => prompt.stdout.toString(), { timeout: 100_000 }).toContain('\nbegun\r\n')
    prompt.child.stdin.write('\u0004')
    const { code, stdout } = await prompt.ended
    expect({ code, isOver: stdout.includes('\nover\r\n') }).toEqual({ code: 0, isOver: true })
  })

  it.skipIf(!hasScript)('a program that is given one by -it goes on without, and says so', async () => {
    expect(await said("run -it -- sh -c 'tty; echo on'")).toBe(
      'airlock: a program has no terminal in a sandbox, and goes on without. For a prompt: airlock bash, airlock python, or airlock node\nnot a tty\non\n',
    )
    expect(await said('run --workdir /tmp -- bash')).toContain('A prompt takes neither --workdir nor --cpu-time.')
  })

  it.skipIf(!hasScript)('a program that ends for want of input says so', async () => {
    expect(await said('run cat')).toBe(
      'airlock: cat got no input and ended: a terminal is not passed on. Pipe into it: echo text | airlock run -- cat\n',
    )
    expect(await said('run -- bash | cat')).toBe('airlock: bash got no input and ended. For a prompt: airlock bash\n')
  })
})
