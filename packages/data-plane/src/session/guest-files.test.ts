import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdir, readFile, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { FileOperation } from '@airlock/contract'
import { waitFor } from '@airlock/std'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { RealGuest } from './testing/real-guest.ts'

const MIB = 1024 * 1024
const run = promisify(execFile)
const isRoot = process.getuid?.() === 0

describe.skipIf(!isRoot)('files of a real guest', () => {
  let guest: RealGuest
  const at = (name: string) => join(guest.work, name)
  const file = async (operation: FileOperation) => await guest.link.files.operate(operation)
  const write = async (name: string, text: string, mode: 'truncate' | 'append' = 'truncate') =>
    await guest.link.files.write(at(name), mode, once(Buffer.from(text)))
  const read = async (path: string) => {
    const { size, bytes } = await guest.link.files.read(path)
    const chunks = await Array.fromAsync(bytes)
    return { size, text: String(Buffer.concat(chunks)) }
  }

  const entriesOf = async (path: string) => {
    const listed = await file({ op: 'file.list', path, limit: 100 })
    return 'entries' in listed ? listed.entries : []
  }

  beforeAll(async () => {
    guest = await RealGuest.start()
  })
  afterAll(async () => {
    await guest.stop()
  })

  it('writes, appends, truncates and reads as uid 1000', async () => {
    expect(await write('note', 'one')).toBe(3)
    expect(await write('note', ' two', 'append')).toBe(4)
    expect(await read(at('note'))).toEqual({ size: 7, text: 'one two' })
    const { uid, mode } = await stat(at('note'))
    expect([uid, mode & 0o777]).toEqual([1000, 0o644])
    expect(await write('note', '')).toBe(0)
    expect(await read(at('note'))).toEqual({ size: 0, text: '' })
  })

  it('describes files, directories, links and others without following', async () => {
    await write('described', 'abc')
    await symlink('described', at('link'))
    await run('mkfifo', [at('pipe')])
    expect(await file({ op: 'file.stat', path: at('described') })).toEqual({
      name: 'described',
      path: at('described'),
      kind: 'file',
      size: 3,
      mode: 0o644,
      modifiedMs: expect.any(Number),
    })
    expect(await file({ op: 'file.stat', path: at('link') })).toMatchObject({ kind: 'symlink', target: 'described' })
    expect(await file({ op: 'file.stat', path: at('pipe') })).toMatchObject({ kind: 'other' })
    expect(await file({ op: 'file.stat', path: guest.work })).toMatchObject({ kind: 'directory', name: 'work' })
  })

  it('reads files that the kernel makes up, which say that they are empty', async () => {
    const { size, text } = await read('/proc/version')
    expect({ size, text }).toEqual({ size: Buffer.byteLength(text), text: await readFile('/proc/version', 'utf8') })
    expect(size).toBeGreaterThan(0)
    const { stdout } = await guest.sh('sleep 60 >/dev/null 2>&1 & echo $!')
    const endless = read(`/proc/${String(stdout).trim()}/pagemap`)
    await expect(endless).rejects.toMatchObject({ code: 'invalid_request' })
  })

  it('lists by name, at most as many as asked for, whatever bytes the names are', async () => {
    await file({ op: 'file.mkdir', path: at('listed/deep/er'), parents: true })
    for (const name of ['b', 'a', 'ü']) await write(`listed/${name}`, name)
    await guest.sh(String.raw`touch "$(printf 'listed/\377')"`)
    const all = await file({ op: 'file.list', path: at('listed'), limit: 100 })
    expect(all).toMatchObject({
      truncated: false,
      entries: ['a', 'b', 'deep', 'ü', '\ufffd'].map((name) => ({ name })),
    })
    const some = await file({ op: 'file.list', path: at('listed'), limit: 2 })
    expect(some).toMatchObject({ truncated: true, entries: [{}, {}] })
  })

  it('names what is not UTF-8 so that every operation finds it', async () => {
    await guest.sh(String.raw`mkdir -p odd "$(printf 'odd/\376')"; echo hi > "$(printf 'odd/\376/\377 x')"`)
    const [directory] = (await entriesOf(at('odd'))).map(({ path }) => path)
    expect(directory).toBe(`file://${at('odd')}/%FE`)
    const [inner] = await entriesOf(directory ?? '')
    expect(inner).toMatchObject({ name: '\ufffd x', path: `file://${at('odd')}/%FE/%FF%20x`, size: 3 })
    expect(await read(inner?.path ?? '')).toEqual({ size: 3, text: 'hi\n' })
    expect(await file({ op: 'file.stat', path: inner?.path ?? '' })).toEqual(inner)
    await file({ op: 'file.move', from: inner?.path ?? '', to: `file://${at('odd')}/%FE/%FD` })
    await guest.link.files.write(`file://${at('odd')}/%FE/%FC`, 'truncate', once(Buffer.from('new')))
    expect((await entriesOf(directory ?? '')).map(({ path }) => path.slice(-3))).toEqual(['%FC', '%FD'])
    await file({ op: 'file.remove', path: directory ?? '', recursive: true })
    expect(await entriesOf(at('odd'))).toEqual([])
  })

  it('lists a directory that is larger than a frame can carry', async () => {
    await guest.sh(`mkdir many; cd many; seq -f '${'n'.repeat(200)}%g' 9000 | xargs touch`)
    const many = await file({ op: 'file.list', path: at('many'), limit: 10_000 })
    expect(many).toMatchObject({ truncated: true })
    await file({ op: 'file.remove', path: at('many'), recursive: true })
    await expect(stat(at('many'))).rejects.toMatchObject({ code: 'ENOENT' })
  })

  it('moves files and trees, also to another file system', async () => {
    await file({ op: 'file.mkdir', path: at('tree/in/side'), parents: true })
    await write('tree/in/leaf', 'green')
    await file({ op: 'file.move', from: at('tree'), to: at('moved') })
    expect((await read(at('moved/in/leaf'))).text).toBe('green')
    const elsewhere = `/dev/shm/airlock-moved-${process.pid}`
    await file({ op: 'file.move', from: at('moved'), to: elsewhere })
    expect((await read(`${elsewhere}/in/leaf`)).text).toBe('green')
    await expect(stat(at('moved'))).rejects.toMatchObject({ code: 'ENOENT' })
    await write('full', 'x')
    await expect(file({ op: 'file.move', from: at('full'), to: elsewhere })).rejects.toMatchObject({
      code: 'is_a_directory',
    })
    await file({ op: 'file.remove', path: elsewhere, recursive: true })
    await expect(stat(elsewhere)).rejects.toMatchObject({ code: 'ENOENT' })
  })

  it('answers each mistake with its own code and changes nothing', async () => {
    await file({ op: 'file.mkdir', path: at('dir/sub'), parents: true })
    await file({ op: 'file.mkdir', path: at('empty'), parents: false })
    await write('plain', 'x')
    await writeFile(at('secret'), 'root only', { mode: 0o600 })
    await mkdir(at('locked'), { mode: 0o755 })
    const mistakes: readonly (readonly [FileOperation, string])[] = [
      [{ op: 'file.stat', path: at('absent') }, 'file_not_found'],
      [{ op: 'file.stat', path: at('plain/x') }, 'not_a_directory'],
      [{ op: 'file.stat', path: `${guest.work}/../x` }, 'invalid_path'],
      [{ op: 'file.stat', path: 'a\0b' }, 'invalid_path'],
      [{ op: 'file.stat', path: at('n'.repeat(300)) }, 'invalid_path'],
      [{ op: 'file.list', path: at('plain'), limit: 9 }, 'not_a_directory'],
      [{ op: 'file.list', path: '/root', limit: 9 }, 'permission_denied'],
      [{ op: 'file.mkdir', path: at('dir'), parents: false }, 'file_exists'],
      [{ op: 'file.mkdir', path: at('plain'), parents: true }, 'file_exists'],
      [{ op: 'file.mkdir', path: at('no/parent'), parents: false }, 'file_not_found'],
      [{ op: 'file.mkdir', path: at('locked/new'), parents: false }, 'permission_denied'],
      [{ op: 'file.move', from: at('absent'), to: at('new') }, 'file_not_found'],
      [{ op: 'file.move', from: at('empty'), to: at('dir') }, 'directory_not_empty'],
      [{ op: 'file.move', from: at('dir'), to: at('dir/sub/x') }, 'invalid_path'],
      [{ op: 'file.remove', path: at('absent'), recursive: true }, 'file_not_found'],
      [{ op: 'file.remove', path: at('dir'), recursive: false }, 'directory_not_empty'],
      [{ op: 'file.remove', path: '/etc/passwd', recursive: true }, 'permission_denied'],
      [{ op: 'file.remove', path: '/etc/ssl', recursive: true }, 'permission_denied'],
    ]
    for (const [operation, code] of mistakes)
      await expect(file(operation), JSON.stringify(operation)).rejects.toMatchObject({ code })
    for (const [path, code] of [
      [at('dir'), 'is_a_directory'],
      [at('secret'), 'permission_denied'],
      [at('absent'), 'file_not_found'],
    ] as const)
      await expect(read(path), path).rejects.toMatchObject({ code })
    await expect(write('dir', 'x')).rejects.toMatchObject({ code: 'is_a_directory' })
    await expect(write('secret', 'x')).rejects.toMatchObject({ code: 'permission_denied' })
    expect(await readFile(at('secret'), 'utf8')).toBe('root only')
    await file({ op: 'file.remove', path: at('empty'), recursive: false })
    await file({ op: 'file.remove', path: at('plain'), recursive: true })
  })

  it('does not hang on a FIFO or a device', async () => {
    await run('mkfifo', ['-m', '666', at('fifo')])
    for (const path of [at('fifo'), '/dev/zero'])
      await expect(read(path), path).rejects.toMatchObject({ code: 'permission_denied' })
    await expect(write('fifo', 'x')).rejects.toMatchObject({ code: 'permission_denied' })
  })

  it('says disk_full when the disk is full', async () => {
    const disk = at('disk')
    await mkdir(disk)
    await run('mount', ['-t', 'tmpfs', '-o', 'size=256k,mode=0777', 'airlock-test', disk])
    try {
      await expect(guest.link.files.write(join(disk, 'big'), 'truncate', zeros(4 * MIB))).rejects.toMatchObject({
        code: 'disk_full',
      })
    } finally {
      await run('umount', ['-l', disk])
    }
  })

  it('carries 200 MB both ways with bounded memory on both sides', async () => {
    const before = { us: buffered(), guest: await rss(guest.pid) }
    expect(await guest.link.files.write(at('large'), 'truncate', zeros(200 * MIB))).toBe(200 * MIB)
    const { size, bytes } = await guest.link.files.read(at('large'))
    const hash = createHash('sha256')
    let peak = 0
    for await (const chunk of bytes) {
      hash.update(chunk)
      peak = Math.max(peak, buffered())
    }
    expect(size).toBe(200 * MIB)
    expect(hash.digest('hex')).toBe(
      createHash('sha256')
        .update(Buffer.alloc(200 * MIB))
        .digest('hex'),
    )
    expect(peak - before.us).toBeLessThan(100 * MIB)
    expect((await rss(guest.pid)) - before.guest).toBeLessThan(100 * MIB)
    await file({ op: 'file.remove', path: at('large'), recursive: false })
  })

  it('gives a transfer up when its caller does, and goes on', async () => {
    await guest.link.files.write(at('abandoned'), 'truncate', zeros(8 * MIB))
    const { bytes } = await guest.link.files.read(at('abandoned'))
    for await (const chunk of bytes) if (chunk.length > 0) break
    const abort = new AbortController()
    const { bytes: aborted } = await guest.link.files.read(at('abandoned'), abort.signal)
    abort.abort()
    await expect(Array.fromAsync(aborted)).rejects.toMatchObject({ name: 'AbortError' })
    const broken = guest.link.files.write(at('half'), 'truncate', failing())
    await expect(broken).rejects.toThrow('the source broke')
    const half = async () => ((await read(at('half'))).text === 'half' ? true : undefined)
    expect(await waitFor(half, { signal: AbortSignal.timeout(5000), everyMs: 10 })).toBe(true)
  })

  it('fails transfers when the connection is lost, and serves new ones after it', async () => {
    await guest.link.files.write(at('cut'), 'truncate', zeros(8 * MIB))
    const { bytes } = await guest.link.files.read(at('cut'))
    const reading = Array.fromAsync(slowed(bytes))
    const failed = expect(reading).rejects.toMatchObject({ code: 'guest_lost' })
    await guest.restartLink()
    await failed
    expect((await read(at('half'))).text).toBe('half')
  })
})

async function* once(bytes: Buffer): AsyncGenerator<Buffer> {
  yield bytes
}

async function* zeros(length: number): AsyncGenerator<Buffer> {
  const chunk = Buffer.alloc(MIB)
  for (let sent = 0; sent < length; sent += MIB) yield chunk
}

async function* failing(): AsyncGenerator<Buffer> {
  yield Buffer.from('half')
  throw new TypeError('the source broke')
}

async function* slowed(bytes: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  for await (const chunk of bytes) {
    await new Promise((resolve) => setTimeout(resolve, 20))
    yield chunk
  }
}

/** Bytes of this process outside of the heap: its resident size depends on what other tests of the worker left. */
function buffered(): number {
  return process.memoryUsage().external
}

async function rss(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8')
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) * 1024
}
