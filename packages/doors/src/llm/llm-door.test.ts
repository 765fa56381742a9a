import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ServedModel } from '@airlock/contract'
import { createLog } from '@airlock/std'
import { afterEach, beforeEach, expect, it } from 'vitest'
import type { Door } from '../doors.ts'
import type { KeysAnswer } from '../keys/keys-client.ts'
import { Preparation } from './calls/preparation.ts'
import { llmDoor } from './llm-door.ts'

const PROGRAM = readFileSync(new URL('../../../../dist/doors/prepare.js', import.meta.url), 'utf8')
const MODEL: ServedModel = {
  name: 'small',
  aliases: [],
  upstream: { name: 'main', kind: 'compatible', model: 'small' },
  contextWindow: 1000,
  maxOutput: 10,
  price: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
}
const LAST = 'data: [DONE]\n\n'

let dir: string
let preparation: Preparation
let doors: Door[]
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'al-llm-door-'))
  preparation = new Preparation(PROGRAM)
  doors = []
})
afterEach(async () => {
  for (const door of doors) await door.close()
  await preparation.close()
  rmSync(dir, { recursive: true, force: true })
})

/** Doors of two sandboxes, and when the first has taken all of its stream. The provider answers the first with `hard`, all at once, and the second with a short stream. */
async function openDoors(hard: Buffer): Promise<{ readonly taken: Promise<void> }> {
  const { promise: taken, resolve } = Promise.withResolvers<void>()
  const reservations: string[] = []
  const answers: Readonly<Record<string, Buffer>> = { sbx_greedy: hard, sbx_modest: Buffer.from(LAST) }
  const open = llmDoor({
    controlPlane: {
      openModelCall: async ({ sandbox }) => {
        reservations.push(sandbox)
        return { callId: `cal_${reservations.length}`, reservation: sandbox }
      },
    },
    keys: {
      send: async ({ reservation }): Promise<KeysAnswer> => {
        const bytes = answers[reservation] ?? Buffer.alloc(0)
        return {
          status: 200,
          contentType: 'text/event-stream',
          retryAfter: undefined,
          body: piecesOf(bytes, reservation === 'sbx_greedy' ? resolve : () => {}),
        }
      },
    },
    closer: { opened: () => {}, close: () => {} },
    failpoint: async () => {},
    preparation,
    log: createLog({ process: 'doors', level: 'silent', write: () => {} }),
  })
  for (const sandbox of Object.keys(answers)) {
    const at = join(dir, sandbox)
    mkdirSync(at)
    doors.push(
      await open({ sandbox, dir: at, config: { door: 'llm', version: '1', tenant: sandbox, models: [MODEL] } }),
    )
  }
  return { taken }
}

/** As the kernel gives them. */
async function* piecesOf(bytes: Buffer, onLast: () => void): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += 65_536) {
    if (at + 65_536 >= bytes.length) onLast()
    yield bytes.subarray(at, at + 65_536)
  }
}

/** Resolves with the first bytes of the stream. */
async function ask(sandbox: string): Promise<string> {
  const messages = [{ role: 'user', content: 'hi' }]
  const body = JSON.stringify({ model: 'small', max_tokens: 5, stream: true, messages })
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  const headers = { host: '127.0.0.1', 'content-type': 'application/json', 'content-length': body.length }
  const socketPath = join(dir, sandbox, 'llm.sock')
  const call = request({ socketPath, method: 'POST', path: '/v1/chat/completions', headers }, (response) => {
    response.once('data', (chunk: Buffer) => {
      resolve(chunk.subarray(0, 20).toString())
      call.destroy()
    })
  })
  call.on('error', reject).end(body)
  return promise
}

function hardEvent(): Buffer {
  const members = Array.from({ length: 900_000 }, (_, at) => `"k${at}":1`).join(',')
  return Buffer.from(`data: {${members}}\n\n${LAST}`)
}

it('an event that is hard to read does not hold up the stream of another sandbox', async () => {
  const { taken } = await openDoors(hardEvent())
  const order: string[] = []
  const askFor = async (sandbox: string) => {
    const first = await ask(sandbox)
    order.push(sandbox)
    return first
  }
  const greedy = askFor('sbx_greedy')
  await taken
  expect(await askFor('sbx_modest')).toBe(LAST)
  expect(await greedy).toMatch(/^data: {"k0"/)
  expect(order).toEqual(['sbx_modest', 'sbx_greedy'])
})
