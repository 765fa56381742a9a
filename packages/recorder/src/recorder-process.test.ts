import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { type RecorderClient, verifyExport } from '@airlock/audit'
import { type AuditRecord, auditQuery, type NewRecord } from '@airlock/contract'
import { newId, sleep, waitFor } from '@airlock/std'
import { describe, expect, it } from 'vitest'
import { aRecord, exportOf, RecorderProcess } from './testing/recorder-process.ts'

const isRoot = process.getuid?.() === 0

/** Connections of one process to the recorder. */
const MOST_CLIENTS = 512

describe('the recorder process', () => {
  it('acknowledges what it has, and its export verifies with the public key alone', async () => {
    await using recorder = await RecorderProcess.start()
    const client = recorder.client()
    await client.require(aRecord(1))
    await client.require({ ...aRecord(2), durationMs: 3, error: { code: 'internal', message: 'x' } })
    client.note({ ...aRecord(3), point: 'sandbox.terminate', status: 'done' })
    await client.flush(5000)
    const { head, publicKey } = await client.head('default')
    expect(publicKey).toBe(recorder.publicKey)
    const lines = await exportOf(client)
    expect(lines.join('\n')).not.toContain('"mac"')
    expect(await verifyExport(lines, { publicKey, head })).toMatchObject({ ok: true, records: 3, tenant: 'default' })
    expect((await allRecords(client)).map(({ seq, process, late }) => ({ seq, process, late }))).toEqual([
      { seq: 1, process: 'control-plane', late: false },
      { seq: 2, process: 'control-plane', late: false },
      { seq: 3, process: 'control-plane', late: false },
    ])
    expect((await allRecords(client, 'system')).map(({ point, process }) => [point, process])).toEqual([
      ['recorder.start', 'recorder'],
    ])
  })

  it.skipIf(!isRoot)('gives up root, and keeps its keys to itself', async () => {
    await using recorder = await RecorderProcess.start()
    const status = readFileSync(`/proc/${recorder.pid}/status`, 'utf8')
    expect(/^Uid:\t(.*)$/m.exec(status)?.[1]).toBe('1879048194\t1879048194\t1879048194\t1879048194')
    expect(/^Groups:(.*)$/m.exec(status)?.[1]?.trim()).toBe('')
    const modes = ['state/keys', 'state/keys/head.pem', 'state/keys/mac.key', 'public/audit.pub', 'run/data-plane.sock']
    expect(modes.map((path) => (statSync(join(recorder.home, path)).mode & 0o777).toString(8))).toEqual([
      '700',
      '600',
      '600',
      '644',
      '600',
    ])
  })

  it('answers for a tenant without a chain: nothing, under a head at 0', async () => {
    await using recorder = await RecorderProcess.start()
    const client = recorder.client()
    expect(await client.query('nobody', auditQuery.parse({}))).toEqual({ records: [], nextCursor: null })
    expect((await client.head('nobody')).head).toMatchObject({ seq: 0, hash: '0'.repeat(64) })
    const lines = await exportOf(client, 'nobody')
    expect(await verifyExport(lines, recorder)).toMatchObject({ ok: true, records: 0, tenant: 'nobody' })
    expect(readdirSync(join(recorder.stateDir, 'chains'))).not.toContain('nobody')
    await expect(client.head('../system')).rejects.toMatchObject({ code: 'invalid_request' })
  })

  it('knows by the socket who is calling, and lets only the control plane read', async () => {
    await using recorder = await RecorderProcess.start()
    const clients = { 'control-plane': recorder.client(), 'data-plane': recorder.client('data-plane') }
    await Promise.all(
      Object.values(clients).flatMap((client) =>
        Array.from({ length: 200 }, async (_, n) => client.require(aRecord(n, n % 2 === 0 ? 'default' : 'other'))),
      ),
    )
    for (const tenant of ['default', 'other']) {
      const lines = await exportOf(clients['control-plane'], tenant)
      expect(await verifyExport(lines, recorder)).toMatchObject({ ok: true, records: 200, tenant })
      const records = await allRecords(clients['control-plane'], tenant)
      expect(records.filter(({ process }) => process === 'data-plane')).toHaveLength(100)
    }
    const forbidden = { code: 'forbidden' }
    await expect(clients['data-plane'].query('default', auditQuery.parse({}))).rejects.toMatchObject(forbidden)
    await expect(clients['data-plane'].head('default')).rejects.toMatchObject(forbidden)
    await expect(exportOf(clients['data-plane'])).rejects.toMatchObject(forbidden)
  })

  it('redacts before it writes, whatever a process sent', async () => {
    await using recorder = await RecorderProcess.start()
    const record = { ...aRecord(1), payload: { env: { MY_TOKEN: 'CANARY' }, url: 'https://u:CANARY@h/' } }
    await rawAppend(recorder, newId('rec'), record)
    const files = readdirSync(recorder.chainDir('default')).map((name) => join(recorder.chainDir('default'), name))
    expect(files.map((file) => readFileSync(file, 'utf8')).join('')).not.toContain('CANARY')
  })

  it('writes a record once when the connection dies before the answer and it is sent again', async () => {
    await using recorder = await RecorderProcess.start()
    const rid = newId('rec')
    const socket = connect(recorder.socket('control-plane'))
    socket.write(appendLine(rid, aRecord(1)))
    await once(socket, 'connect')
    await sleep(5)
    socket.destroy()
    expect(await rawAppend(recorder, rid, aRecord(1))).toEqual({ id: 1, type: 'ok', result: null })
    expect(await rawAppend(recorder, rid, aRecord(1))).toEqual({ id: 1, type: 'ok', result: null })
    expect(await allRecords(recorder.client())).toHaveLength(1)
  })

  it('answers a request that is not valid, and ends a connection that makes no sense', async () => {
    await using recorder = await RecorderProcess.start()
    const refused = await rawAppend(recorder, 'rec_short', aRecord(1))
    expect(refused).toMatchObject({ id: 1, type: 'error', code: 'invalid_request' })
    const unknown = { ...aRecord(1), point: 'no.such.point' }
    expect(await rawAppend(recorder, newId('rec'), unknown)).toMatchObject({ code: 'invalid_request' })
    for (const nonsense of ['not json\n', '{"op":"append"}\n', 'x'.repeat(2 * 1024 * 1024)]) {
      const socket = connect(recorder.socket('control-plane')).on('error', () => {})
      socket.write(nonsense)
      await new Promise((resolve) => socket.on('close', resolve))
    }
    await recorder.client().require(aRecord(1))
  })

  it('signs a last head when it is asked to stop', async () => {
    await using recorder = await RecorderProcess.start()
    const client = recorder.client()
    await client.require(aRecord(1))
    await recorder.stop()
    const lines = readFileSync(join(recorder.chainDir('default'), '000000000001.ndjson'), 'utf8')
      .trim()
      .split('\n')
    expect(JSON.parse(lines.at(-1) ?? '')).toMatchObject({ seq: 1, tenant: 'default', signature: expect.any(String) })
    expect(JSON.parse(readFileSync(join(recorder.chainDir('default'), 'head.json'), 'utf8'))).toMatchObject({ seq: 1 })
  })

  it('signs a head by itself within a while after a record', async () => {
    await using recorder = await RecorderProcess.start()
    await recorder.client().require(aRecord(1))
    const head = join(recorder.chainDir('default'), 'head.json')
    const text = await waitFor(() => readIfThere(head), { signal: AbortSignal.timeout(100_000), everyMs: 50 })
    expect(JSON.parse(text)).toMatchObject({ seq: 1 })
  })

  it('stops exporting when the reader goes away, and goes on recording', async () => {
    await using recorder = await RecorderProcess.start()
    const client = recorder.client()
    await Promise.all(Array.from({ length: 500 }, async (_, n) => client.require(bigRecord(n))))
    const abort = new AbortController()
    const read = async () => {
      for await (const line of client.export('default', abort.signal)) if (line.includes('"seq":3,')) abort.abort()
    }
    await expect(read()).rejects.toThrow('abort')
    for await (const line of client.export('default', AbortSignal.timeout(5000))) if (line !== '') break
    await client.require(aRecord(501))
    expect(await verifyExport(await exportOf(client), recorder)).toMatchObject({ ok: true, records: 501 })
  })
})

describe('a recorder that dies', () => {
  it('does not start again with a damaged key, and says which and what to do', async () => {
    await using recorder = await RecorderProcess.start()
    await recorder.client().require(aRecord(1))
    await recorder.kill()
    const key = join(recorder.stateDir, 'keys/mac.key')
    const bytes = readFileSync(key)
    writeFileSync(key, Buffer.alloc(32))
    await expect(recorder.start()).rejects.toThrow(`${key} is damaged: it is not 32 random bytes. Put it back`)
    writeFileSync(key, bytes)
    await recorder.start()
    expect((await allRecords(recorder.client())).map(({ payload }) => payload)).toEqual([{ n: 1 }])
  })

  it('loses nothing it acknowledged when it is killed under load, and doubles nothing', async () => {
    await using recorder = await RecorderProcess.start()
    const client = recorder.client()
    const acknowledged = new Set<number>()
    const over = new AbortController()
    let n = 0
    const work = async () => {
      while (!over.signal.aborted) {
        const mine = n++
        // Not acknowledged: it may be in the chain or not.
        await client.require(aRecord(mine)).then(
          () => acknowledged.add(mine),
          () => undefined,
        )
      }
    }
    const workers = Array.from({ length: 32 }, work)
    for (let life = 1; life <= 3; life++) {
      const before = acknowledged.size
      await waitFor(() => acknowledged.size > before + 500 || undefined, forAWhile())
      await recorder.kill()
      await recorder.start()
    }
    over.abort()
    await Promise.all(workers)
    const lines = await exportOf(client)
    expect(await verifyExport(lines, recorder)).toMatchObject({ ok: true })
    const written = lines
      .map((line): Partial<AuditRecord> => JSON.parse(line))
      .filter(({ point }) => point === 'command.run')
      .map(({ payload }) => payload?.['n'])
    expect(new Set(written).size).toBe(written.length)
    expect([...acknowledged].filter((mine) => !written.includes(mine))).toEqual([])
  })

  it('cuts off a torn tail at the next start, and says so in the chain', async () => {
    await using recorder = await RecorderProcess.start()
    const client = recorder.client()
    await client.require(aRecord(1))
    await recorder.kill()
    const file = join(recorder.chainDir('default'), '000000000001.ndjson')
    writeFileSync(file, '{"actor":"key:abc', { flag: 'a' })
    await recorder.start()
    await client.require(aRecord(2))
    const records = await allRecords(client)
    expect(records.map(({ point, payload }) => [point, payload])).toEqual([
      ['command.run', { n: 1 }],
      ['recorder.recover', { tornBytes: 17, saved: true }],
      ['command.run', { n: 2 }],
    ])
    expect(await verifyExport(await exportOf(client), recorder)).toMatchObject({ ok: true, records: 3 })
  })

  it.each(['record.received', 'record.written'])('has the record exactly once when killed at %s', async (name) => {
    await using recorder = new RecorderProcess()
    await recorder.start(`${name}:recorder`)
    const client = recorder.client()
    const required = client.require(aRecord(1))
    await recorder.exited
    await recorder.start()
    await required
    await client.require(aRecord(2))
    expect((await allRecords(client)).map(({ payload }) => payload)).toEqual([{ n: 1 }, { n: 2 }])
  })

  it('refuses to append to a tenant whose tail was edited, and to nobody else', async () => {
    await using recorder = await RecorderProcess.start()
    const client = recorder.client()
    await client.require(aRecord(1))
    await client.require(aRecord(1, 'other'))
    await recorder.kill()
    const file = join(recorder.chainDir('default'), '000000000001.ndjson')
    writeFileSync(file, readFileSync(file, 'utf8').replace('"n":1', '"n":2'))
    await recorder.start()
    await expect(client.require(aRecord(2))).rejects.toMatchObject({
      code: 'evidence_broken',
      hint: expect.stringContaining('airlock audit quarantine'),
    })
    await client.require(aRecord(2, 'other'))
    // What reduces waits in the spill, and nobody waits for it.
    client.note(aRecord(3))
    await client.flush(10_000)
    expect(await allRecords(client)).toHaveLength(0)
    await expect(client.head('default')).rejects.toMatchObject({ code: 'evidence_broken' })
    expect(await verifyExport(await exportOf(client), recorder)).toMatchObject({ ok: false, brokenAt: 1 })
    expect(recorder.stderr).toContain('a chain does not verify')
    expect((await allRecords(client, 'system')).at(-1)?.payload).toEqual({ chains: 3, broken: ['default'] })
  })
})

describe.concurrent('a recorder whose host lost its power', () => {
  const broken = async (recorder: RecorderProcess, client: RecorderClient) => {
    await client.require(aRecord(1))
    await client.require(aRecord(2))
    await recorder.kill()
    const file = join(recorder.chainDir('default'), '000000000001.ndjson')
    const lines = readFileSync(file, 'utf8').split('\n')
    const at = lines.findIndex((line) => line.includes('"n":2'))
    writeFileSync(file, `${lines.slice(0, at).join('\n')}\n${'\0'.repeat(4096)}\n`)
    rmSync(join(recorder.chainDir('default'), 'head.json'), { force: true })
    await recorder.start()
  }

  it('cuts off what was never acknowledged, and says so in the chain', async () => {
    await using recorder = await RecorderProcess.start()
    const before = recorder.client()
    await before.require(aRecord(0))
    const { head } = await before.head('default')
    await broken(recorder, before)
    // What it had acknowledged to whom died with the host.
    before.close()
    const client = recorder.client()
    await expect(client.require(aRecord(3))).rejects.toMatchObject({ code: 'evidence_unavailable' })
    expect(await client.settle('default', head)).toMatchObject({ state: 'good', reason: null })
    await client.require(aRecord(3))
    expect((await allRecords(client)).map(({ point, payload }) => [point, payload])).toEqual([
      ['command.run', { n: 0 }],
      ['command.run', { n: 1 }],
      ['recorder.recover', { tornBytes: 4097, saved: true, after: 2 }],
      ['command.run', { n: 3 }],
    ])
    expect(await verifyExport(await exportOf(client), { publicKey: recorder.publicKey, head })).toMatchObject({
      ok: true,
    })
  })

  it('cuts off nothing when the store has a head of what is missing', async () => {
    await using recorder = await RecorderProcess.start()
    const client = recorder.client()
    await client.require(aRecord(0))
    const { head } = await client.head('default')
    await broken(recorder, client)
    const missing = { ...head, seq: 3 }
    expect(await client.settle('default', missing)).toMatchObject({ state: 'broken' })
    expect(await client.settle('default', head)).toMatchObject({ state: 'broken' })
    await expect(client.require(aRecord(3))).rejects.toMatchObject({ code: 'evidence_broken' })
  })

  it('cuts off nothing when the client knows that a missing record was acknowledged', async () => {
    await using recorder = await RecorderProcess.start()
    const client = recorder.client()
    await client.require(aRecord(0))
    const { head } = await client.head('default')
    await broken(recorder, client)
    expect(await client.settle('default', head)).toMatchObject({
      state: 'broken',
      reason: expect.stringContaining('which was acknowledged'),
    })
    await client.quarantine('default', { by: 'key:me', head })
    await client.require(aRecord(3))
    // What was set aside is not missed any more.
    await recorder.kill()
    writeFileSync(join(recorder.chainDir('default'), '000000000001.ndjson'), '\0\0\0\n', { flag: 'a' })
    await recorder.start()
    expect(await client.settle('default', head)).toMatchObject({ state: 'good' })
  })

  it('cuts off nothing when a spill knows that something of it was acknowledged', async () => {
    await using recorder = await RecorderProcess.start()
    const client = recorder.client()
    client.note(aRecord(0))
    await client.flush(10_000)
    await broken(recorder, client)
    client.close()
    const spill = join(recorder.home, 'spill/control-plane/notes.ndjson')
    const [note = ''] = readFileSync(spill, 'utf8').split('\n')
    const rid = `rec_${'0'.repeat(26)}`
    writeFileSync(spill, `${JSON.stringify({ ...JSON.parse(note), rid })}\n${JSON.stringify({ done: rid })}\n`)
    expect(await recorder.client().settle('default', null)).toMatchObject({
      state: 'broken',
      reason: `it lacks ${rid}, which was acknowledged`,
    })
  })
})

describe.concurrent('connections that say nothing whole', () => {
  it('keep no newcomer out, however many they are, and end by themselves', async () => {
    await using recorder = await RecorderProcess.start()
    const client = recorder.client()
    await client.require(aRecord(1))
    const silent = Array.from({ length: MOST_CLIENTS + 100 }, () =>
      connect(recorder.socket('control-plane')).on('error', () => {}),
    )
    for (const socket of silent) socket.resume().write('{"id":')
    const closed = Promise.all(silent.map(async (socket) => once(socket, 'close')))
    // The export has a connection of its own.
    await client.require(aRecord(2))
    expect(await allRecords(client)).toHaveLength(2)
    await closed
  })
})

describe.concurrent('a client', () => {
  it('grants nothing when there is no recorder', async () => {
    await using recorder = new RecorderProcess()
    await expect(recorder.client('control-plane', 500).require(aRecord(1))).rejects.toMatchObject({
      code: 'evidence_unavailable',
    })
  })

  it('keeps notes for a recorder that comes later, over its own death, and marks them late', async () => {
    await using recorder = new RecorderProcess()
    const before = Date.now()
    const first = recorder.client()
    first.note(aRecord(1))
    first.note(aRecord(2))
    first.close()
    const second = recorder.client()
    second.note(aRecord(3))
    await recorder.start()
    await second.flush(10_000)
    const records = await allRecords(second)
    expect(records.map(({ payload, late }) => [payload['n'], late]).slice(0, 2)).toEqual([
      [1, true],
      [2, true],
    ])
    expect(Date.parse(records[0]?.happenedAt ?? '')).toBeGreaterThanOrEqual(before)
    expect(records).toHaveLength(3)
    second.close()
    const third = recorder.client()
    third.note(aRecord(4))
    await third.flush(10_000)
    expect((await allRecords(third)).map(({ payload }) => payload['n'])).toEqual([1, 2, 3, 4])
  })

  it('reads a spill that was torn in the middle of a line', async () => {
    await using recorder = new RecorderProcess()
    const first = recorder.client()
    first.note(aRecord(1))
    first.close()
    writeFileSync(join(recorder.home, 'spill/control-plane/notes.ndjson'), '{"rid":"rec_', { flag: 'a' })
    const second = recorder.client()
    second.note(aRecord(2))
    await recorder.start()
    await second.flush(10_000)
    expect((await allRecords(second)).map(({ payload }) => payload['n'])).toEqual([1, 2])
  })

  it('counts in the chain what it had to give up', async () => {
    await using recorder = new RecorderProcess()
    const client = recorder.client()
    for (let n = 1; n <= 10_300; n++) client.note(aRecord(n))
    await recorder.start()
    await client.flush(30_000)
    const lines = await exportOf(client)
    expect(await verifyExport(lines, recorder)).toMatchObject({ ok: true })
    const records = lines.map((line): Partial<AuditRecord> => JSON.parse(line))
    const lost = records
      .filter(({ point }) => point === 'audit.lost')
      .reduce((sum, { payload }) => sum + Number(payload?.['lost']), 0)
    expect(lost).toBeGreaterThanOrEqual(300)
    expect(records.filter(({ point }) => point === 'command.run').length + lost).toBe(10_300)
  })

  it('counts as lost a note that no recorder would take', async () => {
    await using recorder = await RecorderProcess.start()
    const client = recorder.client()
    const { point: _point, ...pointless } = aRecord(1)
    client.note({ ...pointless, point: JSON.parse('"no.such.point"') })
    client.note(aRecord(2, 'Not/A/Tenant'))
    await client.flush(5000)
    const found = [...(await allRecords(client)), ...(await allRecords(client, 'system'))]
    expect(found.filter(({ point }) => point === 'audit.lost').map(({ tenant, payload }) => [tenant, payload])).toEqual(
      [
        ['default', { lost: 1 }],
        ['system', { lost: 1 }],
      ],
    )
  })
})

describe.skipIf(!isRoot)('on a full disk', () => {
  it('grants nothing, keeps what reduces, and goes on when there is room', async () => {
    await using recorder = new RecorderProcess()
    const chains = join(recorder.stateDir, 'chains')
    mkdirSync(chains)
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=512k,mode=0777', 'tmpfs', chains])
    try {
      await recorder.start()
      const client = recorder.client()
      await client.require(aRecord(1))
      fill(join(chains, 'ballast'))
      await waitFor(
        () =>
          client.require(bigRecord(2)).then(
            () => undefined,
            () => true,
          ),
        forAWhile(),
      )
      await expect(client.require(bigRecord(3))).rejects.toMatchObject({ code: 'evidence_unavailable' })
      client.note({ ...bigRecord(4), point: 'sandbox.terminate', status: 'done' })
      await client.flush(300)
      // Started on the full disk it serves all the same.
      await recorder.kill()
      await recorder.start()
      expect((await allRecords(client))[0]?.payload).toEqual({ n: 1 })
      rmSync(join(chains, 'ballast'))
      await client.flush(20_000)
      await client.require(aRecord(5))
      const records = await allRecords(client)
      expect(records.at(-1)).toMatchObject({ payload: { n: 5 }, late: false })
      expect(records.at(-2)).toMatchObject({ point: 'sandbox.terminate', late: true })
      expect(await verifyExport(await exportOf(client), recorder)).toMatchObject({ ok: true })
      client.close()
      await recorder.stop()
    } finally {
      await recorder.kill()
      execFileSync('umount', ['-l', chains])
    }
  })
})

describe.skipIf(!isRoot)('a client on a full disk', () => {
  it('keeps notes in memory, and has none twice when it could spill only some', async () => {
    await using recorder = new RecorderProcess()
    const spill = join(recorder.home, 'spill')
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=256k', 'tmpfs', spill])
    try {
      const client = recorder.client()
      for (let n = 1; n <= 20; n++) client.note(bigRecord(n))
      await recorder.start()
      await client.flush(10_000)
      const again = recorder.client()
      await again.flush(10_000)
      expect((await allRecords(again)).map(({ payload }) => payload['n'])).toEqual(
        Array.from({ length: 20 }, (_, n) => n + 1),
      )
      client.close()
      again.close()
    } finally {
      await recorder.kill()
      execFileSync('umount', ['-l', spill])
    }
  })
})

/** Oldest first. */
async function allRecords(client: RecorderClient, tenant = 'default'): Promise<AuditRecord[]> {
  const records: AuditRecord[] = []
  let cursor: string | null | undefined
  do {
    const page = await client.query(tenant, auditQuery.parse({ limit: 1000, ...(cursor ? { cursor } : {}) }))
    records.push(...page.records)
    cursor = page.nextCursor
  } while (cursor !== null)
  return records.toReversed()
}

function bigRecord(n: number): NewRecord {
  return { ...aRecord(n), payload: { n, text: Array.from({ length: 10 }, () => 'x'.repeat(4000)) } }
}

/** Sends it by hand; answers the first reply. */
async function rawAppend(recorder: RecorderProcess, rid: string, record: object): Promise<unknown> {
  const socket = connect(recorder.socket('control-plane'))
  socket.write(appendLine(rid, record))
  const [line] = await once(createInterface(socket), 'line')
  socket.destroy()
  return JSON.parse(line)
}

function appendLine(rid: string, record: object): string {
  return `${JSON.stringify({ id: 1, op: 'append', rid, record })}\n`
}

function forAWhile() {
  return { signal: AbortSignal.timeout(20_000), everyMs: 10 }
}

function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    // Not there yet.
    return undefined
  }
}

function fill(path: string): void {
  try {
    for (;;) writeFileSync(path, Buffer.alloc(4096), { flag: 'a' })
  } catch {
    // Full, as it should be.
  }
}
