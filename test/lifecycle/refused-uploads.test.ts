import { Airlock, type Sandbox } from '@airlock/sdk'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { borrowServer, type BorrowedServer } from '../support/borrow-server.ts'
import { requires } from '../support/requires.ts'
import { sendThenRead } from '../support/send-then-read.ts'

const MIB = 1024 * 1024
/** More than sockets on the way hold, and than fits the disk. */
const MUCH = 60 * MIB

let server: BorrowedServer
let sandbox: Sandbox

beforeAll(async () => {
  server = await borrowServer()
  const airlock = new Airlock({ url: server.url, apiKey: server.developerKey })
  sandbox = await airlock.sandboxes.create({ limits: { diskBytes: 32 * MIB } })
})
afterAll(async () => {
  await sandbox?.terminate()
  await server?.giveBack()
})

it.each([
  ['(control) that fits', 'files?path=/workspace/little', 8 * MIB, 200, '"bytes":8388608'],
  ['to a path that is not writable', 'files?path=/etc/passwd', MUCH, 403, 'permission_denied'],
  ['that does not fit the disk', 'files?path=/workspace/much', MUCH, 507, 'disk_full'],
])('an upload %s is answered to a client that sends all of it first', requires('root', 'crun'), async (...row) => {
  const [, route, bytes, status, said] = row
  const path = `/v1/sandboxes/${sandbox.id}/${route}`
  const answer = await sendThenRead({ url: server.url, key: server.developerKey, path, bytes })
  expect([answer.split(' ')[1], answer]).toEqual([String(status), expect.stringContaining(said)])
})
