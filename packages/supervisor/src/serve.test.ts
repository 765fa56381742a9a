import { expect, it } from 'vitest'
import { serve, type ServeIo } from './serve.ts'

function io(overrides: Partial<ServeIo>): ServeIo & { readonly printed: string[] } {
  const printed: string[] = []
  const print = (line: string) => void printed.push(line)
  const quiet = { isTerminal: false, out: print, err: print, printed }
  return { env: {}, cwd: '/', platform: 'linux', uid: 0, ...quiet, ...overrides }
}

it.each([
  ['another system than Linux', { platform: 'darwin' }, 'start it on a Linux machine or VM'],
  ['a user without root', { uid: 1000 }, 'sudo npm start'],
  [
    'a setting it does not know',
    { env: { AIRLOCK_PORRT: '1' } },
    'AIRLOCK_PORRT is no setting. Did you mean AIRLOCK_PORT?',
  ],
] as const)('refuses %s in one sentence', async (_case, overrides, sentence) => {
  const terminal = io(overrides)
  expect(await serve([], terminal)).toBe(1)
  expect(terminal.printed).toEqual([expect.stringContaining(sentence)])
})

it.each([
  [['--jsno'], 'airlock serve [--json] [--parent <pid>] does not know --jsno.'],
  [['--json', '--parent'], 'airlock serve --parent needs a process id, not "".'],
  [['--parent', '-1'], 'airlock serve --parent needs a process id, not "-1".'],
])('refuses arguments it does not know: %j', async (argv, sentence) => {
  const terminal = io({})
  expect(await serve(argv, terminal)).toBe(1)
  expect(terminal.printed).toEqual([sentence])
})
