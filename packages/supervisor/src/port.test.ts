import { once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'
import { expect, it } from 'vitest'
import { loadSettings } from './config.ts'
import { assertFreePort, pinPort } from './port.ts'

const settings = (port: number) => loadSettings({ AIRLOCK_PORT: String(port) }, '/nowhere')

it('a port that somebody listens on is refused, with the line that takes another', async () => {
  const other = createServer().listen(0, '127.0.0.1')
  await once(other, 'listening')
  const { port } = other.address() as AddressInfo
  await expect(assertFreePort(settings(port))).rejects.toMatchObject({
    message: `Port ${port} is in use.`,
    hint: expect.stringMatching(/^Free it, or take another: AIRLOCK_PORT=\d+ npm start$/) as unknown,
  })
  other.close()
  await once(other, 'close')
  await expect(assertFreePort(settings(port))).resolves.toBeUndefined()
})

it('port 0 becomes a free one, once', async () => {
  const pinned = await pinPort(settings(0))
  expect(pinned.config.port).toBeGreaterThan(0)
  expect(await pinPort(pinned)).toBe(pinned)
})
