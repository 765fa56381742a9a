import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { AuditRecord, FailpointName, ProcessName } from '@airlock/contract'
import { Airlock, type Sandbox } from '@airlock/sdk'
import { deadline, waitFor } from '@airlock/std'
import { expect, inject } from 'vitest'
import { exported } from '../support/exported.ts'
import { chunkOf, ModelUpstream, STREAM_END, STREAM_HEAD } from '../support/model-upstream.ts'
import { startModelServer } from './support.ts'

/** Asks for a stream `count` times at once, and says how many ended well, and how many with any error. */
const ASK = `
import http.client, json, sys, threading
body = json.dumps({'model': 'small', 'max_tokens': 100, 'stream': True, 'messages': [{'role': 'user', 'content': 'hi'}]})
seen = []
def ask():
    try:
        away = http.client.HTTPConnection('127.0.0.1', 47080)
        away.request('POST', '/v1/chat/completions', body, {'content-type': 'application/json'})
        answer = away.getresponse()
        text = answer.read().decode()
        seen.append('well' if answer.status == 200 and text.endswith('data: [DONE]\\n\\n') else 'failed')
    except (OSError, http.client.HTTPException):
        seen.append('failed')
threads = [threading.Thread(target=ask) for _ in range(int(sys.argv[1]))]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(json.dumps({'well': seen.count('well'), 'failed': seen.count('failed')}))
`
const event = (data: object) => chunkOf(`data: ${JSON.stringify(data)}\n\n`)
const STREAM = [
  STREAM_HEAD,
  event({ choices: [{ index: 0, delta: { content: 'Hello.' }, finish_reason: 'stop' }] }),
  event({ choices: [], usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 } }),
  chunkOf('data: [DONE]\n\n'),
  STREAM_END,
]

export interface CallCrash {
  readonly failpoint: FailpointName
  readonly victim: ProcessName
}

/** Each step of a call, from before its record is durable to the moment after it is a fact, and who may die there. */
export const CALL_CRASHES: readonly CallCrash[] = (
  ['model.row-written', 'model.recorded', 'model.sent', 'model.begun', 'model.ended', 'model.closed'] as const
).flatMap((failpoint) =>
  (['doors', 'keys', 'control-plane', 'recorder'] as const).map((victim) => ({ failpoint, victim })),
)

export const callCrashName = ({ failpoint, victim }: CallCrash): string => `${failpoint} of the ${victim}`

/** A server with a provider whose processes are killed one after the other while a sandbox makes calls. */
export class CallCrashes {
  readonly #upstream: ModelUpstream
  readonly #home: string
  readonly #server: Awaited<ReturnType<typeof startModelServer>>
  readonly #box: Sandbox

  static async start(env: Readonly<Record<string, string>> = {}): Promise<CallCrashes> {
    const upstream = await ModelUpstream.start()
    const home = mkdtempSync(join(tmpdir(), `al-${inject('testRun') ?? ''}`))
    chmodSync(home, 0o711)
    mkdirSync(join(home, 'armed'))
    // Whoever reaches the failpoint takes the file away, and has given up root.
    chmodSync(join(home, 'armed'), 0o777)
    const server = await startModelServer(upstream.port, { home, env, failpoint: `@${join(home, 'armed/failpoint')}` })
    const user = new Airlock({ url: server.url, apiKey: server.developerKey })
    // A call that still holds its place would keep the next one out.
    const box = await user.sandboxes.create({ models: ['small'], modelLimits: { concurrentCalls: 4 } })
    await box.files.write('ask.py', ASK)
    return new CallCrashes({ upstream, home, server, box })
  }

  private constructor(of: {
    readonly upstream: ModelUpstream
    readonly home: string
    readonly server: Awaited<ReturnType<typeof startModelServer>>
    readonly box: Sandbox
  }) {
    this.#upstream = of.upstream
    this.#home = of.home
    this.#server = of.server
    this.#box = of.box
  }

  async stop(): Promise<void> {
    await this.#server.stop('SIGINT')
    this.#server.clean()
    await this.#upstream.stop()
    rmSync(this.#home, { recursive: true, force: true })
  }

  /** Four calls at once, one of which meets the failpoint; then the books are right, and four calls pass. */
  async run({ failpoint, victim }: CallCrash): Promise<void> {
    const armed = join(this.#home, 'armed/failpoint')
    await this.#script(4)
    writeFileSync(armed, `${failpoint}:${victim}`)
    await this.#ask(4)
    expect(existsSync(armed), `${failpoint} was never reached`).toBe(false)
    await this.expectSound()
    await waitFor(
      async () => {
        await this.#script(4)
        return (await this.#ask(4)).well === 4 ? true : undefined
      },
      { signal: deadline(60_000), everyMs: 100 },
    )
    await this.expectSound()
  }

  /** Each record of a call that was asked for has one end, and the ends add up to the ledger. */
  async expectSound(): Promise<void> {
    const admin = new Airlock({ url: this.#server.url, apiKey: this.#server.adminKey })
    const books = async () => {
      const { records } = await exported(admin)
      const calls = records.filter(({ point }) => point === 'model.call')
      const { items } = await admin.usage.report({ by: 'sandbox' })
      const row = items.find(({ sandbox }) => sandbox === this.#box.id)
      const status = await admin.models.status()
      return { ...tally(calls), ledger: { calls: row?.calls ?? 0, dollars: row?.dollars ?? 0 }, held: status.underWay }
    }
    const isSettled = async () => {
      const found = await books().catch(() => undefined)
      return found && found.open.length === 0 && found.held.calls === 0 ? found : undefined
    }
    const found = await waitFor(isSettled, { signal: deadline(60_000), everyMs: 100 }).catch(() => books())
    expect(found.open, 'calls without an end in the evidence').toEqual([])
    expect(found.twice, 'calls with two ends in the evidence').toEqual([])
    expect(found.held).toEqual({ calls: 0, microDollars: 0 })
    expect({ calls: found.calls, microDollars: found.microDollars }).toEqual({
      calls: found.ledger.calls,
      microDollars: Math.round(found.ledger.dollars * 1e6),
    })
    const { requests } = await this.#upstream.seen()
    expect(found.calls, 'facts for requests that the provider saw').toBeGreaterThanOrEqual(requests.length)
  }

  async #script(count: number): Promise<void> {
    for (let at = 0; at < count; at++) await this.#upstream.next(...STREAM)
  }

  /** The caller may lose its own connection to the server. */
  async #ask(count: number): Promise<{ readonly well: number }> {
    const command = await waitFor(
      async () => this.#box.start(['python3', 'ask.py', String(count)]).catch(() => undefined),
      { signal: deadline(60_000), everyMs: 100 },
    )
    const { stdout } = await command.wait()
    return JSON.parse(stdout) as { well: number }
  }
}

function tally(records: readonly AuditRecord[]) {
  const open = new Set<unknown>()
  const ended = new Set<unknown>()
  const twice: unknown[] = []
  let [calls, microDollars] = [0, 0]
  for (const { status, payload } of records) {
    const { call, usage } = payload
    if (status === 'denied') continue
    if (status === 'requested') {
      if (!ended.has(call)) open.add(call)
      continue
    }
    if (ended.has(call)) twice.push(call)
    ended.add(call)
    open.delete(call)
    if (usage !== 'unsent') calls += 1
    microDollars += Number(payload['microDollars'])
  }
  return { open: [...open], twice, calls, microDollars }
}
