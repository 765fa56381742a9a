import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, chownSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, truncateSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { COMPILED } from '../../../test/support/compiled.ts'
import { ScriptedDataPlane } from './testing/scripted-data-plane.ts'
import { ScriptedDoors } from './testing/scripted-doors.ts'
import { TestRecorder } from './testing/recorder.ts'

const RATE = { burst: 10_000, perSecond: 10_000 }

const MAIN = new URL('../../../dist/control-plane/main.js', import.meta.url).pathname
const UID = 1_879_048_193
const isRoot = process.getuid?.() === 0

let home: string
let recorder: TestRecorder
let plane: ScriptedDataPlane
let doors: ScriptedDoors
let child: ChildProcess
let stderr: string

beforeEach(async () => {
  home = mkdtempSync(join(tmpdir(), 'airlock-main-'))
  chmodSync(home, 0o711)
  for (const dir of ['state', 'public', 'spill']) mkdirSync(join(home, dir), { mode: 0o755 })
  for (const dir of ['state', 'spill']) if (isRoot) chownSync(join(home, dir), UID, UID)
  recorder = await TestRecorder.start(isRoot ? UID : null)
  plane = new ScriptedDataPlane({
    socket: join(home, 'data-plane.sock'),
    permitKey: join(home, 'public', 'permit.pub'),
  })
  await plane.listen()
  doors = new ScriptedDoors()
  await doors.listen(join(home, 'doors.sock'))
  chmodSync(join(home, 'doors.sock'), 0o666)
  chmodSync(join(home, 'data-plane.sock'), 0o666)
})

afterEach(async () => {
  child.kill('SIGKILL')
  await exited()
  await plane.die()
  doors.stop()
  await recorder.stop()
  rmSync(home, { recursive: true, force: true })
})

async function start(): Promise<{ url: string; developerKey: string; adminKey: string }> {
  const config = {
    stateDir: join(home, 'state'),
    publicDir: join(home, 'public'),
    keysDir: home,
    dataPlaneSocket: join(home, 'data-plane.sock'),
    doorsSocket: join(home, 'doors.sock'),
    fromDoors: { path: join(home, 'from-doors.sock'), uid: isRoot ? UID : (process.getuid?.() ?? 0) },
    recorderSocket: recorder.socket,
    spillDir: join(home, 'spill'),
    databaseUrl: null,
    host: '127.0.0.1',
    port: 0,
    advertiseUrl: null,
    tlsCert: null,
    tlsKey: null,
    trustedProxy: false,
    pageDir: fileURLToPath(new URL('../../../dist/dashboard', import.meta.url)),
    makesSignInLink: false,
    requestRates: { perKey: RATE, perTenant: RATE },
    policyDefault: 'allow',
    opa: null,
    webhookPrivate: false,
    monitorEveryMs: 5000,
    alerts: {
      thresholds: { cpu: { warning: 70, critical: 90 }, memory: null, disk: null, pids: null },
      sustained: 3,
      endedFor: ['pids'],
    },
    capacity: 50,
    oversubscription: { memory: 2, disk: 1, cpus: 25 },
    models: [],
    artifacts: { maxBytes: 1_048_576, quotaBytes: 1_048_576, quotaCount: 10 },
    graphs: {},
    budgetDefaults: {
      sandboxes: 5,
      memoryBytes: 2_147_483_648,
      diskBytes: 10_737_418_240,
      cpus: 2,
      computeSecondsPerDay: 172_800,
      dollarsPerDay: 10,
      modelCallsPerDay: 1000,
      modelTokensPerDay: 1_000_000,
    },
    agentStaleMs: 3_600_000,
    approvesVersions: false,
    jwt: null,
    drop: isRoot ? { uid: UID, gid: UID } : null,
    logLevel: 'info',
    failpoint: null,
  }
  stderr = ''
  child = fork(MAIN, { silent: true, execArgv: [], env: { ...COMPILED, AIRLOCK_PROCESS: JSON.stringify(config) } })
  child.stderr?.on('data', (chunk: Buffer) => (stderr += chunk.toString()))
  const [message] = await Promise.race([
    once(child, 'message'),
    once(child, 'exit').then(() => Promise.reject(new TypeError(stderr))),
  ])
  return (message as { facts: { url: string; developerKey: string; adminKey: string } }).facts
}

async function exited(): Promise<number | null> {
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  return child.exitCode
}

async function call(
  url: string,
  key: string,
  body?: object,
): Promise<{ status: number; json: Record<string, unknown> }> {
  const response = await fetch(url, {
    headers: { authorization: `Bearer ${readFileSync(key, 'utf8').trim()}`, 'content-type': 'application/json' },
    ...(body ? { method: 'POST', body: JSON.stringify(body) } : {}),
  })
  return { status: response.status, json: (await response.json()) as Record<string, unknown> }
}

describe('the process', () => {
  it('serves with the keys that it made, as a user of its own', async () => {
    const { url, developerKey, adminKey } = await start()
    expect((await fetch(`${url}/readyz`)).status).toBe(200)
    expect((await fetch(`${url}/v1/sandboxes`)).status).toBe(401)
    expect((await call(`${url}/v1/whoami`, adminKey)).json).toMatchObject({ tenant: 'default', role: 'admin' })
    const created = await call(`${url}/v1/sandboxes`, developerKey, { name: 'box' })
    expect(created).toMatchObject({ status: 200, json: { state: 'active', name: 'box' } })
    expect(uidOf(child.pid)).toBe(isRoot ? UID : process.getuid?.())
    expect(statSync(join(home, 'state', 'airlock.db')).mode & 0o077).toBe(0)
  })

  it('ends its sandboxes when it is ended, and its evidence says so', async () => {
    const { url, developerKey } = await start()
    await call(`${url}/v1/sandboxes`, developerKey, {})
    child.send({ type: 'stop', mode: 'end' })
    expect([await exited(), plane.sandboxes.size]).toEqual([0, 0])
    const reader = recorder.client('reader')
    const last = async (tenant: string) => (await reader.query(tenant, { limit: 1 })).records[0]
    expect(await last('default')).toMatchObject({
      point: 'sandbox.terminate',
      status: 'done',
      payload: { reason: 'shutdown' },
    })
    expect(await last('system')).toMatchObject({ point: 'server.stop', payload: { mode: 'end' } })
  })

  it('leaves its sandboxes when it is to leave them or is killed, and finds them again', async () => {
    const first = await start()
    const { json } = await call(`${first.url}/v1/sandboxes`, first.developerKey, {})
    child.send({ type: 'stop', mode: 'leave' })
    expect([await exited(), plane.sandboxes.size]).toEqual([0, 1])
    await start()
    child.kill('SIGKILL')
    await exited()
    const second = await start()
    const found = await call(`${second.url}/v1/sandboxes/${String(json['id'])}`, first.developerKey)
    expect(found.json).toMatchObject({ state: 'active' })
  })

  it('says which file is damaged, and what to do', async () => {
    await start()
    child.send({ type: 'stop', mode: 'leave' })
    await exited()
    const file = join(home, 'state/node-id')
    truncateSync(file, 3)
    const said = `${file} is damaged: it does not name this node. Put it back from a backup, or if ${home}/public/node`
    await expect(start()).rejects.toThrow(said)
    expect(await exited()).toBe(1)
  })

  it('says in one line why it cannot start', async () => {
    rmSync(join(home, 'public'), { recursive: true })
    await expect(start()).rejects.toThrow('the control plane could not start')
    expect(await exited()).toBe(1)
  })
})

function uidOf(pid: number | undefined): number {
  return Number(/^Uid:\t(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1])
}
