import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest'
import { requires } from '../../../test/support/requires.ts'
import { listenForConnections, listenForHttp, type PrivateListener } from './private-listener.ts'

const FRIEND = 65_533
const STRANGER = 65_534

let dir: string
let path: string
let listeners: PrivateListener[]

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'airlock-wire-'))
  chmodSync(dir, 0o711)
  path = join(dir, 'a.sock')
  listeners = []
})

afterEach(() => {
  for (const listener of listeners) listener.close()
  rmSync(dir, { recursive: true })
})

async function open(unix = path, uid: number | null = null): Promise<PrivateListener> {
  const onConnection = (socket: Socket) => socket.end('in')
  const listener = await listenForConnections({ unix, uid }, { maxConnections: 8, onConnection })
  listeners.push(listener)
  return listener
}

describe('who may come', requires('root'), () => {
  const knock = async (uid: number): Promise<string> => {
    const code = `require('node:net').connect('${path}').on('error', (error) => console.log(error.code)).on('data', (said) => console.log(String(said)))`
    return (await promisify(execFile)(inject('nodeForAll'), ['-e', code], { uid, gid: uid, cwd: '/' })).stdout.trim()
  }

  it('is the one that the socket is for, and no other', async () => {
    await open(path, FRIEND)
    expect([await knock(FRIEND), await knock(STRANGER)]).toEqual(['in', 'EACCES'])
    const { uid, gid, mode } = statSync(path)
    expect([uid, gid, mode & 0o777]).toEqual([FRIEND, FRIEND, 0o600])
    // The same program gets in when its mode lets it: nothing else keeps it out.
    chmodSync(path, 0o666)
    expect(await knock(STRANGER)).toBe('in')
  })
})

describe('the socket', () => {
  it('is born closed, whatever the umask of the process, which stays as it was', async () => {
    const before = process.umask(0)
    try {
      const two = [open(), open(join(dir, 'b.sock'))]
      expect([statSync(path).mode & 0o777, process.umask()]).toEqual([0o600, 0])
      await Promise.all(two)
      expect([statSync(path).mode & 0o777, process.umask()]).toEqual([0o600, 0])
    } finally {
      process.umask(before)
    }
  })

  it('takes the place of one that an earlier process left', async () => {
    writeFileSync(path, '')
    await open()
    const [said] = (await once(connect(path), 'data')) as [Buffer]
    expect(said.toString()).toBe('in')
  })

  it('is not there when it could not be given to its owner', async () => {
    await expect(open(path, -2)).rejects.toMatchObject({ code: 'ERR_OUT_OF_RANGE' })
    expect(existsSync(path)).toBe(false)
  })

  it('fails where there is no place for it', async () => {
    await expect(open(join(dir, 'absent', 'a.sock'))).rejects.toMatchObject({ syscall: 'listen' })
  })
})

describe('a listener that closes', () => {
  it('cuts whoever is connected, also by a protocol of their own', async () => {
    const onUpgrade = (_: unknown, socket: { write(text: string): unknown }) =>
      socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n')
    const onRequest = () => expect.unreachable()
    const options = { maxConnections: 8, requestMs: 0, onRequest, onUpgrade }
    const listener = await listenForHttp({ unix: path, uid: null }, options)
    const headers = { connection: 'upgrade', upgrade: 'x' }
    const asked = request({ socketPath: path, headers, agent: false }).end()
    const [, socket] = (await once(asked, 'upgrade')) as [unknown, Socket]
    const closed = once(socket.resume(), 'close')
    listener.close()
    await closed
    expect(existsSync(path)).toBe(false)
  })

  it('may first take no new ones, and leave those that it has', async () => {
    const sockets: Socket[] = []
    const onConnection = (socket: Socket) => void sockets.push(socket)
    const listener = await listenForConnections({ unix: path, uid: null }, { maxConnections: 8, onConnection })
    const socket = connect(path)
    await once(socket, 'connect')
    await expect.poll(() => sockets.length).toBe(1)
    listener.stopListening()
    const late = connect(path)
    await expect(once(late, 'connect')).rejects.toMatchObject({ code: 'ENOENT' })
    sockets[0]?.write('still here')
    expect(String((await once(socket, 'data'))[0])).toBe('still here')
    listener.close()
    await once(socket, 'close')
  })
})
