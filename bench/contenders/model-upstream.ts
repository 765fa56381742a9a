import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A provider that answers every call at once with the same words. It runs in a process of its own and tells its port. */
const ANSWER = JSON.stringify({
  id: 'bench',
  object: 'chat.completion',
  created: 1,
  model: 'bench',
  choices: [{ index: 0, message: { role: 'assistant', content: 'ok' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 5, completion_tokens: 1, total_tokens: 6 },
})
const CHUNK = { id: 'bench', object: 'chat.completion.chunk', created: 1, model: 'bench' }
const STREAM = [
  { ...CHUNK, choices: [{ index: 0, delta: { role: 'assistant', content: 'ok' }, finish_reason: 'stop' }] },
  { ...CHUNK, choices: [], usage: { prompt_tokens: 5, completion_tokens: 1, total_tokens: 6 } },
].map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`)

const server = createServer((request, response) => void answer(request, response))
server.keepAliveTimeout = 60_000
server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port))
process.once('disconnect', () => process.exit())

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const body = (await request.setEncoding('utf8').toArray()).join('')
  if (!body.includes('"stream":true')) {
    response.writeHead(200, { 'content-type': 'application/json' }).end(ANSWER)
    return
  }
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  for (const event of STREAM) response.write(event)
  response.end('data: [DONE]\n\n')
}
