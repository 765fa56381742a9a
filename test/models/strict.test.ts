import { Airlock } from '@airlock/sdk'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { borrowServer, type BorrowedServer } from '../support/borrow-server.ts'
import { requires } from '../support/requires.ts'
import { askInside, bundleClients } from './support.ts'

let server: BorrowedServer
beforeAll(async () => {
  server = await borrowServer()
}, 240_000)
afterAll(async () => server?.giveBack())

describe('in the strict tier', requires('root', 'runsc'), () => {
  it('unmodified clients inside have the answers of the demo, whole and as a stream', async () => {
    const client = new Airlock({ url: server.url, apiKey: server.developerKey })
    const box = await client.sandboxes.create({ models: ['airlock/demo'], tier: 'strict' })
    await box.files.write('clients.mjs', await bundleClients())
    const [chat, chunks, streamed] = await askInside(box, ['chat', 'chatStream', 'messagesStream'], 'airlock/demo')
    const said = expect.stringContaining('You said: "Say hello."')
    expect(chat).toMatchObject({ content: said })
    expect((chunks as string[]).join('')).toEqual(said)
    expect(streamed).toMatchObject([{ text: said }])
  })
})
