import { TOOLS } from '@airlock/mcp'
import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { requires } from '../support/requires.ts'
import { linkCommand } from '../../packages/supervisor/src/command/link.ts'
import { borrowServer, type BorrowedServer } from '../support/borrow-server.ts'
import { AIRLOCK, stdioEnvironment } from './client.ts'

const require = createRequire(import.meta.url)
const PACKAGE = require.resolve('@modelcontextprotocol/inspector/package.json')
const INSPECTOR = join(PACKAGE, '../clients/launcher/build/index.js')
const run = promisify(execFile)

let server: BorrowedServer
/** The inspector keeps what it knows in the home of its user. */
let home: string
beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), 'airlock-inspector-'))
  mkdirSync(join(home, 'bin'))
  linkCommand(AIRLOCK.slice(0, -'.js'.length), join(home, 'bin'))
  server = await borrowServer()
})
afterAll(async () => {
  rmSync(home, { recursive: true, force: true })
  await server?.giveBack()
})

const path = (): string => `${join(home, 'bin')}:${process.env['PATH']}`

const TARGETS = [
  {
    way: 'HTTP',
    target: () => [
      `${server.url}/mcp`,
      '--transport',
      'http',
      '--header',
      `Authorization: Bearer ${server.developerKey}`,
    ],
  },
  {
    // The words of `claude mcp add airlock -- airlock mcp`, by the link that `npm start` makes.
    way: 'stdio, in a directory outside of the clone',
    target: () => [
      'airlock',
      'mcp',
      ...Object.entries({ ...stdioEnvironment(server), PATH: path() }).flatMap(([name, value]) => [
        '-e',
        `${name}=${value}`,
      ]),
    ],
  },
] as const

describe.each(TARGETS)('the official inspector over $way', requires('root'), ({ target }) => {
  const inspect = async (...args: readonly string[]): Promise<unknown> => {
    const env = { PATH: path(), HOME: home }
    const { stdout } = await run(process.execPath, [INSPECTOR, '--cli', ...target(), ...args], { env, cwd: home })
    return JSON.parse(stdout)
  }

  it('lists the tools', async () => {
    const { tools } = (await inspect('--method', 'tools/list')) as { tools: { name: string }[] }
    expect(tools.map((tool) => tool.name)).toEqual(TOOLS.map((tool) => tool.name))
  })

  it('calls one', async () => {
    const call = ['--method', 'tools/call', '--tool-name', 'run_code', '--tool-arg']
    const answer = await inspect(...call, 'language=bash', 'template=base', 'code=echo "from $((6 * 7))"')
    expect(answer).toMatchObject({
      content: [{ type: 'text', text: 'from 42\n' }],
      structuredContent: { status: 'completed', stdout: 'from 42\n' },
    })
  })
})
