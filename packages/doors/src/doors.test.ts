import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { AirlockError, type DoorConfig, type Self } from '@airlock/contract'
import { createLog } from '@airlock/std'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { controlDoor } from './control/control-door.ts'
import { Doors } from './doors.ts'

const SANDBOX = 'sbx_0000000000aaaaaaaaaaaaaaaa'

let dir: string
let doors: Doors
/** Configurations that the open door was given after it was opened. */
let configured: DoorConfig[]

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'airlock-doors-'))
  mkdirSync(join(dir, SANDBOX, 'control'), { recursive: true })
  configured = []
  const log = createLog({ process: 'doors', level: 'silent', write: () => {} })
  const open = controlDoor({ controlPlane: { call: async () => SELF }, log })
  doors = new Doors(dir, {
    control: async (at) => {
      const door = await open(at)
      return { ...door, configure: (config) => void configured.push(config) }
    },
    broker: async () => Promise.reject(new Error('not opened here')),
    egress: async () => Promise.reject(new Error('not opened here')),
    llm: async () => Promise.reject(new AirlockError('sandbox_not_found')),
  })
})
afterEach(async () => {
  await doors.closeAll()
  rmSync(dir, { recursive: true })
})

it('an open door is given another configuration, and its connections stay', async () => {
  await doors.open(SANDBOX, [at('1')])
  const socket = await dial()
  await doors.open(SANDBOX, [at('1')])
  expect(configured).toEqual([])
  await doors.open(SANDBOX, [at('2')])
  expect(configured).toEqual([at('2')])
  expect(doors.list()).toEqual([{ sandbox: SANDBOX, doors: [at('2')] }])
  expect(await ask(socket)).toContain(`"sandbox":"${SANDBOX}"`)
  socket.destroy()
})

it.each(['revoked', 'shut'] as const)(
  'connections are cut when a change says %s, and newcomers are let in',
  async (what) => {
    await doors.open(SANDBOX, [at('1')])
    const socket = await dial()
    doors.changed({ what: 'policy', sandboxes: null })
    doors.changed({ what, sandboxes: ['sbx_0000000000bbbbbbbbbbbbbbbb'] })
    expect(await ask(socket)).toContain(`"sandbox":"${SANDBOX}"`)
    const closed = once(socket, 'close')
    doors.changed({ what, sandboxes: [SANDBOX] })
    await closed
    expect(await ask(await dial())).toContain(`"sandbox":"${SANDBOX}"`)
  },
)

it('a door that is not listed any more is closed, and its connections are cut', async () => {
  await doors.open(SANDBOX, [at('1')])
  const socket = await dial()
  const closed = once(socket, 'close')
  await doors.open(SANDBOX, [])
  await closed
  expect(existsSync(path())).toBe(false)
  expect(doors.list()).toEqual([{ sandbox: SANDBOX, doors: [] }])
})

const SELF: Self = {
  sandbox: SANDBOX,
  tenant: 'default',
  agent: 'alice',
  generation: 1,
  scopes: ['self'],
  expiresAt: '2026-01-01T00:00:00.000Z',
  sandboxExpiresAt: '2026-01-01T00:00:00.000Z',
}
const at = (version: string): DoorConfig => ({ door: 'control', version })
const path = () => join(dir, SANDBOX, 'control', 'airlock.sock')

async function dial(): Promise<Socket> {
  const socket = connect(path())
  await once(socket, 'connect')
  return socket
}

async function ask(socket: Socket): Promise<string> {
  socket.write('GET /v1/self HTTP/1.1\r\nHost: airlock\r\nAuthorization: Bearer alt_x\r\n\r\n')
  const [answer] = (await once(socket, 'data')) as [Buffer]
  return answer.toString()
}
