import { execFile, execFileSync } from 'node:child_process'
import { chmod, mkdir, mkdtemp, readdir, readFile, readlink, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { waitFor } from '@airlock/std'
import { TarReader } from '@airlock/std/tar'
import { gnuLong, type Member, tarOf } from '@airlock/std/tar/testing'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { RealGuest } from './testing/real-guest.ts'

const run = promisify(execFile)
const isRoot = process.getuid?.() === 0

describe.skipIf(!isRoot)('archives of a real guest', () => {
  let guest: RealGuest
  let local: string
  const at = (name: string) => join(guest.work, name)
  const unpack = async (name: string, archive: Buffer, piece = 10_000) =>
    guest.link.files.unpack(at(name), pieces(archive, piece))
  const pack = async (name: string) => {
    const { bytes } = await guest.link.files.pack(at(name))
    return Buffer.concat(await Array.fromAsync(bytes))
  }
  const paths = async (name: string) => pathsIn(await pack(name))
  const failure = async (work: Promise<unknown>) =>
    work.then(
      () => undefined,
      (error: unknown) => error,
    )
  const openFiles = async () => (await readdir(`/proc/${guest.pid}/fd`)).length

  beforeAll(async () => {
    guest = await RealGuest.start()
    local = await mkdtemp(join(tmpdir(), 'airlock-local-'))
  })
  afterAll(async () => {
    await guest.stop()
    await rm(local, { recursive: true })
  })

  it('are written as they are, with modes and times, as uid 1000', async () => {
    await mkdir(join(local, 'tree', 'empty'), { recursive: true })
    await writeFile(join(local, 'tree', 'tool'), 'run me', { mode: 0o755 })
    await writeFile(join(local, 'tree', 'large'), Buffer.alloc(3_000_000, 7))
    await symlink('tool', join(local, 'tree', 'link'))
    const archive = execFileSync('tar', ['-cf', '-', '-C', join(local, 'tree'), '.'], { maxBuffer: 64 * 1024 * 1024 })
    expect(await unpack('new/tree', archive)).toBe(archive.length)
    await run('diff', ['-r', '--no-dereference', join(local, 'tree'), at('new/tree')])
    const [here, there] = await Promise.all(
      [join(local, 'tree', 'tool'), at('new/tree/tool')].map(async (p) => stat(p)),
    )
    expect([there?.uid, there?.mode, Math.floor((there?.mtimeMs ?? 0) / 1000)]).toEqual([
      1000,
      here?.mode,
      Math.floor((here?.mtimeMs ?? 0) / 1000),
    ])
    expect(await readlink(at('new/tree/link'))).toBe('tool')
  })

  it('come back as they were, and tar reads them', async () => {
    const archive = await pack('new/tree')
    const back = join(local, 'back')
    await mkdir(back)
    execFileSync('tar', ['-xf', '-', '-C', back], { input: archive })
    await run('diff', ['-r', '--no-dereference', at('new/tree'), back])
  })

  it('replace files and links, and write through none', async () => {
    await mkdir(at('outside'))
    await writeFile(at('outside/kept'), 'kept')
    await guest.sh(
      'mkdir over; ln -s ../outside/kept over/file; ln -s ../outside over/dir; ln ./outside/kept over/hard',
    )
    expect(await unpack('over', tarOf([file('file', 'new'), file('hard', 'new')]))).toBeGreaterThan(0)
    expect(await readFile(at('over/file'), 'utf8')).toBe('new')
    expect(await failure(unpack('over', tarOf([file('dir/kept', 'bad')])))).toMatchObject({
      code: 'not_a_directory',
      message: expect.stringContaining('Nothing was written.'),
    })
    expect(await failure(unpack('over', tarOf([{ name: 'dir', type: '5' }])))).toMatchObject({
      code: 'not_a_directory',
    })
    expect(await readFile(at('outside/kept'), 'utf8')).toBe('kept')
    await guest.sh('mkdir over/there')
    expect(await failure(unpack('over', tarOf([file('there')])))).toMatchObject({ code: 'is_a_directory' })
  })

  it('that are hostile end with what was written, and leave nothing outside', async () => {
    const hostile: readonly Member[] = [
      { name: '../escaped' },
      gnuLong('L', '/tmp/escaped'),
      { name: 'l', type: '2', link: '../..' },
      { name: 'h', type: '1', link: 'good' },
      { name: 'p', type: '6' },
      { name: 's', mode: 0o4755 },
    ]
    for (const bad of hostile) {
      const archive = tarOf([file('good', 'fine'), bad, file('after')])
      expect(await failure(unpack('hostile', archive)), String(bad.name)).toMatchObject({
        code: 'archive_invalid',
        message: expect.stringMatching(/1 entries were written, the last is good\.$/u),
      })
    }
    expect(await readdir(at('hostile'))).toEqual(['good'])
    expect((await readdir(guest.work)).includes('escaped')).toBe(false)
  })

  it('that break off at any block are an error, and no file stays open', async () => {
    const archive = tarOf([file('a', 'x'.repeat(600)), file('b/c', 'y')])
    const before = await openFiles()
    for (let length = 0; length < archive.length; length += 300)
      expect(await failure(unpack('cut', archive.subarray(0, length))), `${length}`).toMatchObject({
        code: 'archive_invalid',
      })
    expect(await openFiles()).toBe(before)
  })

  it('answer what the user may not do', async () => {
    await mkdir(at('locked'), { mode: 0o700 })
    expect(await failure(unpack('locked', tarOf([file('x')])))).toMatchObject({ code: 'permission_denied' })
    expect(await failure(pack('locked-not'))).toMatchObject({ code: 'file_not_found' })
    await writeFile(at('plain'), 'x')
    expect(await failure(pack('plain'))).toMatchObject({ code: 'not_a_directory' })
  })

  it('leave out what no archive may hold, and say so', async () => {
    await guest.sh(String.raw`mkdir odd; cd odd; mkfifo pipe; ln -s /etc/passwd out; ln -s ../.. up; echo a > plain; ln plain hard
      touch "$(printf '\377')" "$(printf 'a\nb')"; ln -s plain in; mkdir none; chmod 0 none; chmod 4755 plain`)
    await writeFile(at('odd/secret'), 'root only', { mode: 0o600 })
    await chmod(at('odd/none'), 0)
    await run('mknod', [at('odd/device'), 'c', '1', '5'])
    const archive = await pack('odd')
    expect(pathsIn(archive)).toEqual(['hard', 'in', 'none', 'plain'])
    const [comment] = commentsIn(archive)
    expect(JSON.parse(comment ?? '')).toMatchObject({
      count: 8,
      skipped: expect.arrayContaining([
        { path: 'out', why: 'is a link to an absolute path' },
        { path: 'pipe', why: 'is no file, directory or link' },
        { path: 'secret', why: 'may not be read by the user of the sandbox' },
      ]),
    })
  })

  it('of a tree that changes all the time arrive, or end with a reason', async () => {
    const churn = await guest.start([
      '/bin/sh',
      '-c',
      `mkdir live; cd live; head -c 2000000 /dev/zero > big
       while :; do mkdir -p a/b; echo x > a/b/f; mkfifo p; ln -s .. l; : > big; head -c 2000000 /dev/zero > big
       rm -rf a p l; ln -s /etc a; rm a; done`,
    ])
    await waitFor(async () => ((await readdir(guest.work)).includes('live') ? true : undefined), {
      signal: AbortSignal.timeout(60_000),
      everyMs: 20,
    })
    const before = await openFiles()
    for (let round = 0; round < 40; round++) {
      const error = await failure(paths('live'))
      if (error !== undefined) expect(error).toMatchObject({ code: 'file_changed' })
    }
    await guest.link.commands.signal(churn, 'SIGKILL')
    await guest.finish(churn)
    expect(await openFiles()).toBeLessThanOrEqual(before + 1)
  })

  it('that are cut with the connection leave no file open', async () => {
    await guest.sh(
      'mkdir heavy; for i in 1 2 3 4 5 6 7 8; do head -c 200000 /dev/zero > heavy/$i; done; head -c 30000000 /dev/zero > heavy/zeros',
    )
    const before = await openFiles()
    const { bytes } = await guest.link.files.pack(at('heavy'))
    const first = await bytes[Symbol.asyncIterator]().next()
    expect(first.done).toBe(false)
    const half = Buffer.from(tarOf([file('f', 'z'.repeat(400_000))]).subarray(0, 200_000))
    const writing = failure(guest.link.files.unpack(at('halves'), stalling(half)))
    await waitFor(async () => (await stat(at('halves/f')).catch(() => undefined))?.size, {
      signal: AbortSignal.timeout(60_000),
      everyMs: 10,
    })
    await guest.restartLink()
    expect(await writing).toMatchObject({ code: 'guest_lost' })
    const isBack = async () => ((await openFiles()) <= before ? true : undefined)
    expect(await waitFor(isBack, { signal: AbortSignal.timeout(60_000), everyMs: 20 })).toBe(true)
    expect((await paths('heavy')).length).toBe(9)
  })
})

function file(name: string, content = 'x'): Member {
  return { name, content }
}

async function* pieces(bytes: Buffer, size: number): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}

/** As a caller who sends no more, and does not leave either. */
async function* stalling(bytes: Buffer): AsyncGenerator<Buffer> {
  yield bytes
  await new Promise((resolve) => setTimeout(resolve, 1000))
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, 50))
    yield Buffer.alloc(1)
  }
}

function eventsOf(archive: Buffer) {
  const reader = new TarReader()
  const events = [...reader.push(archive)]
  reader.finish()
  return events
}

function pathsIn(archive: Buffer): readonly string[] {
  return eventsOf(archive).flatMap((event) => (event.kind === 'entry' ? [event.entry.path] : []))
}

function commentsIn(archive: Buffer): readonly string[] {
  return eventsOf(archive).flatMap((event) => (event.kind === 'comment' ? [event.text] : []))
}
