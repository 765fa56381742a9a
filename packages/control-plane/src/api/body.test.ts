import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import { connect, type AddressInfo } from 'node:net'
import { expect, it } from 'vitest'
import { cutWhenIdle, readBytes } from './body.ts'

it('cuts off an upload that stopped', async () => {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const socket = connect(port, '127.0.0.1').on('error', () => {
    // Being cut off is what is tested.
  })
  socket.write('PUT / HTTP/1.1\r\nhost: x\r\ncontent-length: 10\r\n\r\nabc')
  const [request] = (await once(server, 'request')) as [IncomingMessage]
  cutWhenIdle(request, 50)
  const read = async (): Promise<void> => {
    for await (const chunk of readBytes(request)) expect(chunk.toString()).toBe('abc')
  }
  await expect(read()).rejects.toMatchObject({ code: 'timeout' })
  socket.destroy()
  server.close()
})
