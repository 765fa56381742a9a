import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { DoorsClient } from './doors-client.ts'

let dir: string
let client: DoorsClient

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'airlock-doors-client-'))
  client = new DoorsClient({ unix: join(dir, 'doors.sock') })
})

afterEach(() => {
  client.close()
  rmSync(dir, { recursive: true })
})

it('says of doors that do not answer that it is the doors', async () => {
  const message = 'The doors do not answer.'
  await expect(client.list()).rejects.toMatchObject({ code: 'door_unavailable', message })
})

it('says of an answer that was not agreed that it is of the doors', async () => {
  const server = createServer((_, response) => response.end('{"sandboxes":1}'))
  await new Promise<void>((resolve) => server.listen(join(dir, 'doors.sock'), resolve))
  const message = 'The doors answered something that was not agreed.'
  await expect(client.list()).rejects.toMatchObject({ code: 'internal', message })
  server.close()
  server.closeAllConnections()
})
