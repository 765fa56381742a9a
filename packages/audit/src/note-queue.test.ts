import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { createServer, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { NewRecord } from '@airlock/contract'
import { createLog, deadline, systemClock, waitFor } from '@airlock/std'
import { LineSocket } from '@airlock/wire'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { Acknowledged } from './acknowledged.ts'
import { NoteQueue } from './note-queue.ts'
import { recorderRequest } from './protocol.ts'
import { RecorderLink } from './recorder-link.ts'

const log = createLog({ process: 'test', level: 'silent', write: () => {} })

let dir: string
let server: Server | undefined
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'airlock-notes-'))
  mkdirSync(join(dir, 'spill'))
})
afterEach(() => {
  server?.close()
  rmSync(dir, { recursive: true })
})

/** A recorder that dies when the first record comes, and takes what comes to its next lives. */
async function startMortal(): Promise<{ readonly taken: string[] }> {
  const taken: string[] = []
  let lives = 0
  const serve = (socket: Socket) => {
    const isFirst = ++lives === 1
    const lines = new LineSocket(socket, {
      onClose: () => {},
      onLine: (line) => {
        if (isFirst) return void socket.destroy()
        const request = recorderRequest.parse(JSON.parse(line))
        if (request.op === 'append') taken.push(`${request.record.tenant} ${request.record.status}`)
        lines.send(JSON.stringify({ id: request.id, type: 'ok', result: null }))
      },
    })
    lines.resume()
  }
  server = createServer({ pauseOnConnect: true }, serve)
  await new Promise<void>((resolve) => server?.listen(join(dir, 'recorder.sock'), resolve))
  return { taken }
}

/** A recorder to which one tenant's chain is broken, until it is told otherwise. */
async function startWithBroken(tenant: string) {
  const state = { isBroken: true, refused: 0, taken: [] as unknown[] }
  const serve = (socket: Socket) => {
    const lines = new LineSocket(socket, {
      onClose: () => {},
      onLine: (line) => {
        const request = recorderRequest.parse(JSON.parse(line))
        if (request.op !== 'append') return
        const isRefused = state.isBroken && request.record.tenant === tenant
        if (isRefused) state.refused += 1
        else state.taken.push(request.record.payload?.['at'])
        const refusal = { type: 'error', code: 'evidence_broken', message: 'broken' }
        lines.send(JSON.stringify({ id: request.id, ...(isRefused ? refusal : { type: 'ok', result: null }) }))
      },
    })
    lines.resume()
  }
  server = createServer({ pauseOnConnect: true }, serve)
  await new Promise<void>((resolve) => server?.listen(join(dir, 'recorder.sock'), resolve))
  return state
}

const record = (tenant: string, status: NewRecord['status']): NewRecord => ({
  tenant,
  actor: 'system',
  point: 'sandbox.terminate',
  status,
})

it('sends what came later after what must be sent again, and holds up no other tenant', async () => {
  const { taken } = await startMortal()
  const link = new RecorderLink({ unix: join(dir, 'recorder.sock') })
  // Long enough that both later notes are there before the first is sent again.
  const of = { link, spillDir: join(dir, 'spill'), acknowledged: new Acknowledged(), clock: systemClock, log }
  const notes = new NoteQueue({ ...of, firstRetryMs: 2_000 })
  try {
    notes.add(record('one', 'requested'))
    await waitFor(async () => ((await link.request(() => head, 50)).type === 'ok' ? true : undefined), {
      signal: deadline(100_000),
      everyMs: 5,
    })
    notes.add(record('one', 'done'))
    notes.add(record('two', 'done'))
    await notes.flush(20_000)
    expect(taken).toEqual(['two done', 'one requested', 'one done'])
  } finally {
    notes.close()
    link.close()
  }
})

it('tries one note of a tenant whose chain is broken, and sends all in order once it is whole', async () => {
  const count = 1_000
  const state = await startWithBroken('one')
  const link = new RecorderLink({ unix: join(dir, 'recorder.sock') })
  const of = { link, spillDir: join(dir, 'spill'), acknowledged: new Acknowledged(), clock: systemClock, log }
  const notes = new NoteQueue({ ...of, parkedMs: 20 })
  const patient = { signal: deadline(100_000), everyMs: 5 }
  try {
    for (let at = 0; at < count; at++) notes.add({ ...record('one', 'done'), payload: { at } })
    await waitFor(() => (state.refused >= count + 3 ? true : undefined), patient)
    // All were sent once, and then one at a time.
    expect(state.refused).toBeLessThan(count + 100)
    state.isBroken = false
    await waitFor(() => (state.taken.length === count ? true : undefined), patient)
    expect(state.taken).toEqual(Array.from({ length: count }, (_, at) => at))
  } finally {
    notes.close()
    link.close()
  }
})

const head = { op: 'head', tenant: 'one' }
