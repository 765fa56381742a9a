import { Airlock, type Sandbox } from '@airlock/sdk'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { requires } from '../support/requires.ts'
import { askInside, bundleClients, startModelServer } from './support.ts'

const DEMO = 'airlock/demo'
const SAID = /^You said: "Say hello\." This is airlock\/demo/

let server: Awaited<ReturnType<typeof startModelServer>>
let box: Sandbox

beforeAll(async () => {
  server = await startModelServer(null)
  box = await new Airlock({ url: server.url, apiKey: server.developerKey }).sandboxes.create({
    models: ['airlock/demo'],
  })
  await box.files.write('clients.mjs', await bundleClients())
}, 240_000)
afterAll(async () => {
  await server?.stop()
  server?.clean()
})

describe('without an upstream', requires('root'), () => {
  it('unmodified clients inside have the answers of the demo', async () => {
    const asks = ['chat', 'chatStream', 'responses', 'embeddings', 'messages', 'messagesStream', 'countTokens']
    const [chat, chunks, responses, embeddings, messages, streamed, counted] = await askInside(box, asks, DEMO)
    expect(chat).toMatchObject({ content: expect.stringMatching(SAID) })
    expect((chunks as string[]).join('')).toMatch(SAID)
    expect(responses).toMatch(SAID)
    expect(embeddings).toBe(64)
    expect(messages).toMatchObject([{ text: expect.stringMatching(SAID) }])
    expect(streamed).toEqual(messages)
    expect(counted).toBeGreaterThan(0)
  })

  it('the demo is the only model', async () => {
    expect(await askInside(box, ['models', 'anthropicModels'], DEMO)).toEqual([[DEMO], [DEMO]])
    const [refused] = await askInside(box, ['chat'], 'gpt-5')
    expect(refused).toMatchObject({ error: 'NotFoundError', status: 404, code: 'model_not_found' })
  })

  it('Python without any package is answered', async () => {
    const program = `import json, os, urllib.request
body = json.dumps({'model': '${DEMO}', 'messages': [{'role': 'user', 'content': 'Say hello.'}]}).encode()
request = urllib.request.Request(os.environ['OPENAI_BASE_URL'] + '/chat/completions', body, {'content-type': 'application/json'})
print(json.load(urllib.request.urlopen(request))['choices'][0]['message']['content'])`
    expect((await box.run(['python3', '-c', program])).stdout).toMatch(SAID)
  })

  it('the door says who it is for, and nothing is behind any other path', async () => {
    const shell = `for p in health v1/keys v1/models/../keys metrics v1//models; do
      curl -s --path-as-is -o /tmp/a -w '%{http_code} ' "http://127.0.0.1:47080/$p"; done; curl -s http://127.0.0.1:47080/health`
    expect((await box.run({ shell })).stdout).toBe(`200 404 404 404 404 {"status":"ok","sandbox":"${box.id}"}`)
  })

  it('the port is taken before user code could take it', async () => {
    const program = `import socket
for host in ['127.0.0.1', '0.0.0.0']:
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    try:
        s.bind((host, 47080))
        s.listen()
        print('taken')
    except OSError as error:
        print(error.strerror)
free = socket.socket()
free.bind(('127.0.0.1', 47081))
print('free')`
    const { stdout } = await box.run(['python3', '-c', program])
    expect(stdout.trim().split('\n')).toEqual(['Address already in use', 'Address already in use', 'free'])
  })
})
