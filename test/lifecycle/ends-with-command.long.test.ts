import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { Airlock } from '@airlock/sdk'
import { deadline, sleep, waitFor } from '@airlock/std'
import { afterAll, beforeAll, expect, inject, it } from 'vitest'
import { hostProcesses, sweep } from '../support/leftovers.ts'
import { startServer } from '../support/server.ts'

const CLI = fileURLToPath(new URL('../../packages/cli/bin/airlock.js', import.meta.url))
const NPM_START = ['npm', 'start', '--silent', '--', '--json'] as const
/** Closing the terminal is ending this program, which holds the other side of it. */
const IN_TERMINAL = ['python3', '-c', 'import pty, sys; pty.spawn(sys.argv[1:])'] as const
/** A Node that is too old for us, which therefore starts the one that `npm ci` installs. */
const OLD_NODE = [
  process.execPath,
  '--import',
  `data:text/javascript,Object.defineProperty(process,'versions',{value:{...process.versions,node:'20.0.0'}})`,
] as const

/** One state directory and one sandbox, through all of these servers. */
let home: string
let sandbox: string | undefined

beforeAll(() => {
  home = mkdtempSync(join(tmpdir(), `al-${inject('testRun')}`))
  chmodSync(home, 0o711)
})

afterAll(async () => {
  await sweep(home)
  rmSync(home, { recursive: true, force: true })
})

it.each([
  { how: 'SIGTERM to npm start', command: NPM_START, end: 'SIGTERM' },
  { how: 'SIGKILL of npm start', command: NPM_START, end: 'SIGKILL' },
  { how: 'closing the terminal of npm start', command: [...IN_TERMINAL, ...NPM_START], end: 'SIGKILL' },
  { how: 'SIGTERM to npx', command: ['npx', 'airlock', 'serve', '--json'], end: 'SIGTERM' },
  { how: 'SIGKILL of the launcher', command: [...OLD_NODE, CLI, 'serve', '--json'], end: 'SIGKILL' },
] as const)('$how ends the server and leaves its sandboxes to the next one', async ({ command, end }) => {
  const server = await startServer({ home, command })
  const { sandboxes } = new Airlock({ url: server.url, apiKey: server.developerKey })
  const mine = await (sandbox === undefined ? sandboxes.create() : sandboxes.get(sandbox))
  sandbox = mine.id
  expect((await mine.run(['echo', 'lives'])).stdout).toBe('lives\n')
  await (end === 'SIGKILL' ? server.kill9() : server.stop(end))
  await allGone()
  expect(server.processesOf(mine.id)).not.toEqual([])
})

it('SIGINT to npm start ends its sandboxes too', async () => {
  const server = await startServer({ home, command: NPM_START })
  expect(server.processesOf(sandbox ?? '')).not.toEqual([])
  await server.stop('SIGINT')
  await allGone()
  expect(server.processesOf(sandbox ?? '')).toEqual([])
})

it('a server that was sent away lives on without its parent and its terminal', async () => {
  const shell = ['bash', '-c', 'nohup setsid "$0" "$@" & wait', process.execPath, CLI, 'serve', '--json'] as const
  const server = await startServer({ home, command: shell, env: { npm_lifecycle_event: 'start' } })
  await server.kill9()
  process.kill(server.pid, 'SIGHUP')
  const { sandboxes } = new Airlock({ url: server.url, apiKey: server.developerKey })
  await sleep(1_000)
  expect(await sandboxes.list()).toMatchObject({ items: [] })
  process.kill(server.pid, 'SIGTERM')
  await allGone()
})

/** Nothing of this home runs on the host but its sandboxes. */
async function allGone(): Promise<void> {
  await waitFor(() => hostProcesses(home).length === 0 || undefined, { signal: deadline(100_000), everyMs: 50 })
}
