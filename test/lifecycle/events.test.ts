import { randomUUID } from 'node:crypto'
import { connect } from 'node:net'
import type { AuditRecord } from '@airlock/contract'
import { Airlock, AirlockError, type AuditEvent, type FollowOptions } from '@airlock/sdk'
import { deadline, sleep, waitFor } from '@airlock/std'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { exported } from '../support/exported.ts'
import { flood } from '../support/flood.ts'
import { pidOf } from '../support/pid-of.ts'
import { startServer, type TestServer } from '../support/server.ts'

let server: TestServer
let admin: Airlock
let developer: Airlock

beforeAll(async () => {
  server = await startServer()
  admin = client(server.adminKey)
  developer = client(server.developerKey)
})

afterAll(async () => {
  await server?.stop('SIGINT')
})

describe('the stream of events', () => {
  it('has every record once and in order, over reconnects and kill -9 of recorder and control plane', async () => {
    await using all = follow(admin, { after: 0 })
    await using again = followInBits(admin, 7)
    for (const victim of ['recorder', 'control-plane', 'recorder'] as const) {
      await work()
      await kill(victim)
    }
    const last = await work()
    const { records } = await exported(admin)
    const until = records.find((record) => record.sandbox === last && record.point === 'sandbox.terminate')?.seq ?? 0
    await all.reached(until)
    await again.reached(until)
    const expected = records.filter(({ seq }) => seq <= until).map(asEvent)
    expect(all.events.filter(({ seq }) => seq <= until)).toEqual(expected)
    expect(again.events.filter(({ seq }) => seq <= until)).toEqual(expected)
  })

  it('tells denials and failures, and only what its filters name', async () => {
    await client('al_wrong')
      .whoami()
      .catch(() => undefined)
    const sandbox = await developer.sandboxes.create()
    await sandbox.run(['false'])
    await sandbox.files.readText('/nothing/there').catch(() => undefined)
    await sandbox.terminate()
    const { records } = await exported(admin)
    const filters: readonly [FollowOptions, (record: AuditRecord) => boolean][] = [
      [{ sandbox: sandbox.id }, (one) => one.sandbox === sandbox.id],
      [{ point: 'file.*' }, (one) => one.point.startsWith('file.')],
      [{ point: ['command.run', 'sandbox.*'] }, (one) => /^(?:command\.run|sandbox\..*)$/.test(one.point)],
      [{ status: ['failed', 'denied'] }, (one) => one.status === 'failed' || one.status === 'denied'],
      [{ agent: 'default', point: 'command.*', status: 'done' }, isDoneCommand],
      [{ agent: 'nobody' }, () => false],
    ]
    const until = records.at(-1)?.seq ?? 0
    for (const [filter, isMeant] of filters) {
      const page = await admin.eventPage({ ...filter, after: 0, limit: 1000 })
      expect(page.items.filter(({ seq }) => seq <= until)).toEqual(records.filter(isMeant).map(asEvent))
    }
    expect(records.filter(({ status }) => status === 'failed').map(({ point }) => point)).toContain('file.read')
  })

  it('says where it begins, so that nothing is missed before the first event', async () => {
    await using quiet = follow(admin, { point: 'sandbox.create' })
    await waitFor(() => quiet.seq, { signal: deadline(100_000), everyMs: 20 })
    const { id } = await developer.sandboxes.create()
    await waitFor(() => quiet.events.find((one) => one.sandbox === id && one.status === 'done'), {
      signal: deadline(100_000),
      everyMs: 20,
    })
    expect(quiet.events.map((one) => [one.sandbox, one.status])).toEqual([
      [id, 'requested'],
      [id, 'done'],
    ])
    await (await developer.sandboxes.get(id)).terminate()
  })

  it('refuses a place beyond the end, a point that is none, and Last-Event-ID that is no number', async () => {
    await expect(admin.eventPage({ after: 10_000_000 })).rejects.toMatchObject({ code: 'invalid_request' })
    await expect(admin.eventPage({ point: 'nothing.*' })).rejects.toMatchObject({ code: 'invalid_request' })
    await expect(admin.eventPage({ point: '*****' })).rejects.toMatchObject({ code: 'invalid_request' })
    const headers = { authorization: `Bearer ${server.adminKey}`, accept: 'text/event-stream', 'last-event-id': 'x' }
    expect((await fetch(`${server.url}/v1/events`, { headers })).status).toBe(400)
  })

  it('cuts a client that does not read, tells it where to go on, and holds up nobody else', async () => {
    const { after } = await admin.eventPage({ limit: 1 })
    await using fast = follow(admin, { after, agent: 'flood' })
    const slow = new SlowClient(after)
    await slow.begun
    await flood(server.home, { count: 12_000, bytes: 1000 })
    await fast.reachedCount(12_000)
    await slow.wasCut
    const first = slow.read()
    const cut = first.at(-1)
    expect(cut).toEqual({ event: 'cut', seq: first.at(-2)?.seq })
    expect(first.length).toBeLessThan(12_000)
    const rest = follow(admin, { after: cut?.seq ?? 0, agent: 'flood' })
    await rest.reachedCount(12_000 - (first.length - 2))
    await rest[Symbol.asyncDispose]()
    const seen = [...first.filter(({ event }) => event === 'record'), ...rest.events].map(({ seq }) => seq)
    expect(seen).toEqual(fast.events.map(({ seq }) => seq))
  })
})

describe('who sees what', () => {
  it('nobody another tenant, a developer agents alone and nothing said by others, who is bound its agents', async () => {
    const [ours, theirs] = ['acme', 'globex'].map((name) => `${name}-${randomUUID().slice(0, 8)}`) as [string, string]
    for (const id of [ours, theirs]) await admin.tenants.create(id)
    const keyOf = async (tenant: string, role: 'admin' | 'developer', agents?: string[]) => {
      const { secret } = await admin.keys.create({ name: 'events', tenant, role, ...(agents ? { agents } : {}) })
      return client(secret)
    }
    const acme = await keyOf(ours, 'admin')
    for (const id of ['one', 'two']) await acme.agents.register(id, { approve: true })
    const someone = await keyOf(ours, 'developer')
    const bound = await keyOf(ours, 'developer', ['two'])
    const foreign = await keyOf(theirs, 'admin')
    for (const agent of ['one', 'two']) {
      const sandbox = await someone.sandboxes.create({ agent })
      await sandbox.run(['echo', 'private'])
      await sandbox.terminate()
    }
    const seenBy = async (who: Airlock) => (await who.eventPage({ after: 0, limit: 1000 })).items

    const tenantsOf = (events: readonly AuditEvent[]) => new Set(events.map(({ agent }) => agent))
    expect(tenantsOf(await seenBy(acme))).toEqual(new Set(['one', 'two', null]))
    expect(tenantsOf(await seenBy(someone))).toEqual(new Set(['one', 'two']))
    expect(tenantsOf(await seenBy(bound))).toEqual(new Set(['two']))
    expect(tenantsOf(await seenBy(foreign))).toEqual(new Set([null]))
    expect(await bound.eventPage({ after: 0, agent: 'one' })).toMatchObject({ items: [] })

    const commandOf = async (who: Airlock) =>
      (await who.eventPage({ after: 0, agent: 'two', point: 'command.run', status: 'requested' })).items
    expect(await commandOf(someone)).toMatchObject([{ payload: { argv: ['echo', 'private'] } }])
    expect(await commandOf(bound)).toMatchObject([{ payload: null }])
    const whole = JSON.stringify(await seenBy(bound))
    expect(whole).not.toContain('private')
    expect(whole).not.toContain('"hash"')
    await expect(bound.audit.stats()).rejects.toMatchObject({ code: 'forbidden' })
  })
})

function client(apiKey: string): Airlock {
  return new Airlock({ url: server.url, apiKey })
}

/** A sandbox with a command in it, from its begin to its end. Patient, for processes are killed meanwhile. */
async function work(): Promise<string> {
  const sandbox = await waitFor(async () => developer.sandboxes.create().catch(() => undefined), {
    signal: deadline(60_000),
    everyMs: 200,
  })
  await sandbox.run(['true']).catch(() => undefined)
  const end = async () =>
    sandbox.terminate().then(
      () => true,
      () => undefined,
    )
  await waitFor(end, { signal: deadline(60_000), everyMs: 200 })
  const isTold = async () => {
    const { items } = await admin.audit.events({ sandbox: sandbox.id, point: 'sandbox.terminate', status: 'done' })
    return items.length > 0 ? true : undefined
  }
  await waitFor(async () => isTold().catch(() => undefined), { signal: deadline(60_000), everyMs: 100 })
  return sandbox.id
}

async function kill(victim: 'recorder' | 'control-plane'): Promise<void> {
  const killed = pidOf(server.home, victim)
  if (killed === undefined) throw new TypeError(`there is no ${victim}`)
  process.kill(killed, 'SIGKILL')
  const other = (): number | undefined =>
    pidOf(server.home, victim) === killed ? undefined : pidOf(server.home, victim)
  await waitFor(other, { signal: deadline(60_000), everyMs: 50 })
}

class Following implements AsyncDisposable {
  readonly events: AuditEvent[] = []
  readonly #stop = new AbortController()
  readonly #over: Promise<unknown>
  seq: number | undefined

  constructor(read: (signal: AbortSignal, onProgress: (seq: number) => void) => AsyncIterable<AuditEvent>) {
    const collect = async (): Promise<void> => {
      for await (const event of read(this.#stop.signal, (seq) => (this.seq = seq))) this.events.push(event)
    }
    this.#over = collect().catch((error: unknown) => error)
  }

  async reached(seq: number): Promise<void> {
    await this.#until(() => (this.seq ?? 0) >= seq)
  }

  async reachedCount(count: number): Promise<void> {
    await this.#until(() => this.events.length >= count)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort()
    await this.#over
  }

  async #until(isThere: () => boolean): Promise<void> {
    const failed = this.#over.then((error) => Promise.reject(error))
    const there = waitFor(() => (isThere() ? true : undefined), { signal: deadline(60_000), everyMs: 50 })
    await Promise.race([there, failed])
  }
}

function follow(who: Airlock, options: FollowOptions): Following {
  return new Following((signal, onProgress) => who.events({ ...options, signal, onProgress }))
}

/** Hangs up after every so many, and comes back with the number of the last one, as soon as somebody answers. */
function followInBits(who: Airlock, size: number): Following {
  return new Following(async function* bits(signal, onProgress) {
    let after = 0
    while (!signal.aborted) {
      const bit = await readBit(who, { after, size, signal })
      yield* bit
      after = bit.at(-1)?.seq ?? after
      onProgress(after)
    }
  })
}

async function readBit(
  who: Airlock,
  of: { readonly after: number; readonly size: number; readonly signal: AbortSignal },
): Promise<AuditEvent[]> {
  const bit: AuditEvent[] = []
  try {
    for await (const event of who.events({ after: of.after, signal: of.signal })) if (bit.push(event) === of.size) break
  } catch (error) {
    if (!(error instanceof AirlockError) || !error.retryable) throw error
    await sleep(100, of.signal)
  }
  return bit
}

/** Asks for events and then takes nothing from the connection until it is told to. */
class SlowClient {
  readonly begun: Promise<void>
  readonly wasCut: Promise<void>
  #text = ''

  constructor(after: number) {
    const path = `/v1/events?after=${after}&agent=flood`
    const { hostname, port } = new URL(server.url)
    const socket = connect(Number(port), hostname)
    socket.write(
      `GET ${path} HTTP/1.1\r\nHost: ${hostname}:${port}\r\nAuthorization: Bearer ${server.adminKey}\r\n` +
        'Accept: text/event-stream\r\nConnection: close\r\n\r\n',
    )
    this.begun = new Promise((resolve) => {
      socket.once('data', (bytes: Buffer) => {
        this.#text += bytes.toString()
        socket.pause()
        resolve()
      })
    })
    this.wasCut = this.begun.then(async () => {
      await waitFor(async () => isCut(after), { signal: deadline(100_000), everyMs: 500 })
      socket.on('data', (bytes: Buffer) => (this.#text += bytes.toString()))
      socket.resume()
      await new Promise<void>((resolve) => socket.once('close', () => resolve()))
    })
  }

  /** What it got, once it was over. */
  read(): readonly { readonly event: string; readonly seq: number }[] {
    const body = this.#text.replaceAll(/\r\n[0-9a-f]+\r\n/g, '')
    return [...body.matchAll(/^event: (\w+)\ndata: (\{.*\})$/gm)].map(([, event = '', data = '']) => ({
      event,
      seq: (JSON.parse(data) as { seq: number }).seq,
    }))
  }
}

/** That the stream is over is evidence, and is there as soon as the client is cut. */
async function isCut(after: number): Promise<true | undefined> {
  const { items } = await admin.audit.events({ point: 'audit.read', status: 'done', limit: 50 })
  return items.some(({ payload }) => payload['what'] === 'stream' && payload['after'] === after) ? true : undefined
}

function asEvent(record: AuditRecord): AuditEvent {
  const { hash: _hash, prev: _prev, process: _process, tenant: _tenant, ...event } = record
  return event
}

function isDoneCommand({ agent, point, status }: AuditRecord): boolean {
  return agent === 'default' && point.startsWith('command.') && status === 'done'
}
