import { Airlock, type RunningCommand, type Sandbox } from '@airlock/sdk'
import { deadline, waitFor } from '@airlock/std'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { answerOf, ModelUpstream, STREAM_HEAD } from '../support/model-upstream.ts'
import { requires } from '../support/requires.ts'
import { startModelServer } from './support.ts'

/** Asks for streams, and throws away what comes; or for the same again and again with a body that is hard to read. */
const GREEDY = `
import http.client, json, sys, threading
body = {'model': 'small', 'max_tokens': 10, 'stream': True, 'messages': [{'role': 'user', 'content': 'hi'}]}
hard = b'{' + b','.join(b'"k%d":1' % at for at in range(1_500_000)) + b'}'
def post(text):
    away = http.client.HTTPConnection('127.0.0.1', 47080)
    away.request('POST', '/v1/chat/completions', text, {'content-type': 'application/json'})
    return away.getresponse()
def send():
    while True:
        try: post(hard).read()
        except OSError: pass
def read():
    answer = post(json.dumps(body).encode())
    print('begun', flush=True)
    while answer.read(65536): pass
for work in [read, read, send, send]: threading.Thread(target=work).start()
`
/** Asks one after the other, and says how often it was answered. */
const MODEST = `
import http.client, json
body = json.dumps({'model': 'small', 'max_tokens': 10, 'messages': [{'role': 'user', 'content': 'hi'}]})
statuses = []
for _ in range(20):
    away = http.client.HTTPConnection('127.0.0.1', 47080)
    away.request('POST', '/v1/chat/completions', body, {'content-type': 'application/json'})
    statuses.append(away.getresponse().status)
print(json.dumps(statuses))
`
const CALLS = 20
const LONGEST = 8_000_000

let upstream: ModelUpstream
let server: Awaited<ReturnType<typeof startModelServer>>
let user: Airlock
beforeAll(async () => {
  upstream = await ModelUpstream.start()
  server = await startModelServer(upstream.port)
  user = new Airlock({ url: server.url, apiKey: server.developerKey })
}, 240_000)
afterAll(async () => {
  await server?.stop()
  server?.clean()
  await upstream?.stop()
})

/** Half as long as an event may be. A thread takes most of a second to read it, and is given five. */
function hardEvent(): string {
  const members: string[] = []
  for (let at = 0, length = 0; length < LONGEST; at++) {
    const member = `"k${at}":1`
    members.push(member)
    length += member.length + 1
  }
  return `data: {${members.join(',')}}\n\n`
}

describe('a sandbox with the largest streams and bodies at full rate', requires('root'), () => {
  let greedy: Sandbox
  let modest: Sandbox
  let command: RunningCommand
  const taken = async () => (await upstream.seen()).connections.reduce((sum, one) => sum + one.taken, 0)

  it('does not hold up the calls of another', async () => {
    ;[greedy, modest] = await Promise.all([
      user.sandboxes.create({ models: ['small'], limits: { memoryBytes: 512 * 1024 * 1024 } }),
      user.sandboxes.create({ models: ['small'] }),
    ])
    const of = hardEvent()
    for (let streams = 0; streams < 2; streams++) await upstream.next(STREAM_HEAD, { flood: 1e12, of })
    command = await greedy.start(['python3', '-c', GREEDY])
    const first = await waitFor(async () => ((await taken()) >= 2 * of.length ? taken() : undefined), {
      signal: deadline(60_000),
      everyMs: 20,
    })
    const answer = answerOf('200 OK', '{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1}}', [
      'content-type: application/json',
    ])
    for (let calls = 0; calls < CALLS; calls++) await upstream.next(answer)
    const { stdout } = await modest.run(['python3', '-c', MODEST])
    expect(JSON.parse(stdout)).toEqual(Array.from({ length: CALLS }, () => 200))
    // A call that waited for events would wait for one at least.
    const events = ((await taken()) - first) / of.length
    expect(events).toBeLessThan(CALLS)
    // The positive control: it still sends, and is read.
    expect((await upstream.seen()).connections.filter(({ isOpen, taken: bytes }) => isOpen && bytes > 0)).toHaveLength(
      2,
    )
  }, 120_000)

  it('is killed while it sends, and its streams are cut upstream', async () => {
    await greedy.terminate({ force: true })
    await waitFor(
      async () => {
        const { connections } = await upstream.seen()
        return connections.every(({ isOpen, taken: bytes }) => !isOpen || bytes === 0) ? true : undefined
      },
      { signal: deadline(30_000), everyMs: 20 },
    )
    await command.wait().catch(() => undefined)
  }, 60_000)
})
