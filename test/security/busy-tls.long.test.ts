import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest'
import { pidOf } from '../support/pid-of.ts'
import { requires } from '../support/requires.ts'
import { startServer, type TestServer } from '../support/server.ts'

/** More strangers than one address may have. */
const STRANGERS = 600

let dir: string
let server: TestServer

beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), 'al-tls-'))
  const [cert, key] = [join(dir, 'cert.pem'), join(dir, 'key.pem')]
  const made = '-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -x509 -days 1 -subj /CN=localhost'
  const names = ['-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1']
  execFileSync('openssl', ['req', ...made.split(' '), ...names, '-out', cert, '-keyout', key], { stdio: 'ignore' })
  server = await startServer({ env: { AIRLOCK_TLS_CERT: cert, AIRLOCK_TLS_KEY: key } })
}, 240_000)
afterAll(async () => {
  await server?.stop()
  rmSync(dir, { recursive: true })
})

it(
  'a port that is used again while the server is busy keeps its connection, however many strangers come',
  requires('root', 'openssl'),
  async () => {
    const [first, stranger] = [await dial(), await dial()]
    expect(await whoami(first.tls)).toContain('200 OK')
    const { localPort } = first.raw
    const controlPlane = pidOf(server.home, 'control-plane') ?? 0
    process.kill(controlPlane, 'SIGSTOP')
    // The server hears the end of the first connection and the second one in the same turn of its event loop.
    first.raw.resetAndDestroy()
    const again = dialRaw(localPort)
    await once(again, 'connect')
    process.kill(controlPlane, 'SIGCONT')
    const second = await secure(again)
    expect(await whoami(second)).toContain('200 OK')
    const closed = once(stranger.raw, 'close')
    const strangers = Array.from({ length: STRANGERS }, () => dialRaw())
    await Promise.all(strangers.map(async (one) => once(one, 'connect')))
    // The control: a connection that showed no key makes room.
    await closed
    expect(await whoami(second)).toContain('200 OK')
  },
)

function dialRaw(localPort?: number): Socket {
  const { port } = new URL(server.url)
  const socket = connect({ host: '127.0.0.1', port: Number(port), ...(localPort === undefined ? {} : { localPort }) })
  // Being closed is what strangers are for.
  socket.on('error', () => {})
  onTestFinished(() => void socket.destroy())
  return socket
}

async function dial(): Promise<{ readonly raw: Socket; readonly tls: TLSSocket }> {
  const raw = dialRaw()
  return { raw, tls: await secure(raw) }
}

async function secure(socket: Socket): Promise<TLSSocket> {
  const tls = connectTls({ socket, servername: 'localhost', ca: readFileSync(join(dir, 'cert.pem')) })
  tls.on('error', () => {})
  await once(tls, 'secureConnect')
  return tls
}

async function whoami(socket: TLSSocket): Promise<string> {
  socket.write(`GET /v1/whoami HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${server.developerKey}\r\n\r\n`)
  const closed = once(socket, 'close').then(() => ['closed by the server'])
  const [answer] = await Promise.race([once(socket, 'data'), closed])
  return Buffer.isBuffer(answer) ? answer.toString('latin1') : String(answer)
}
