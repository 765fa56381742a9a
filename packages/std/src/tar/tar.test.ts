import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  archiveComment,
  archiveEnd,
  entryHeader,
  entryPadding,
  TarError,
  type TarEntry,
  TarManifest,
  TarReader,
} from './index.ts'
import { gnuLong, type Member, pax, tarOf } from './testing/tar-writer.ts'

const BOUNDS = { entries: 1000, nameBytes: 1024 * 1024 }

function read(chunks: Iterable<Buffer>, bounds = BOUNDS) {
  const reader = new TarReader(bounds)
  const manifest = new TarManifest()
  const seen: { path: string; kind: string; content: string; target: string }[] = []
  const comments: string[] = []
  for (const chunk of chunks)
    for (const event of reader.push(chunk)) {
      manifest.take(event)
      if (event.kind === 'entry') seen.push({ ...pick(event.entry), content: '' })
      const last = seen.at(-1)
      if (event.kind === 'bytes' && last) last.content += event.bytes.toString('latin1')
      if (event.kind === 'comment') comments.push(event.text)
    }
  reader.finish()
  return { seen, comments, summary: manifest.summary }
}

function pick({ path, kind, target }: TarEntry) {
  return { path, kind, target }
}

function write(entries: readonly { readonly entry: TarEntry; readonly content: Buffer }[]): Buffer {
  const blocks = entries.flatMap(({ entry, content }) => [entryHeader(entry), content, entryPadding(entry.size)])
  return Buffer.concat([...blocks, archiveEnd()])
}

function fileOf(path: string, text: string): { readonly entry: TarEntry; readonly content: Buffer } {
  const content = Buffer.from(text)
  return {
    entry: { path, kind: 'file', mode: 0o640, size: content.length, modifiedMs: 1_700_000_000_000, target: '' },
    content,
  }
}

const LONG = `${'d/'.repeat(100)}${'ü'.repeat(100)}`

const SMALL = write([
  { entry: { ...fileOf('a', '').entry, path: 'a', kind: 'directory' }, content: Buffer.alloc(0) },
  fileOf('a/one', 'x'.repeat(700)),
  fileOf('a/empty', ''),
  fileOf(LONG, 'long'),
  { entry: { ...fileOf('a/l', '').entry, kind: 'symlink', target: 'one' }, content: Buffer.alloc(0) },
])

describe('an archive', () => {
  it('comes back as it was written, wherever the stream is cut', () => {
    const whole = read([SMALL])
    expect(whole.seen.map(({ path }) => path)).toEqual(['a', 'a/one', 'a/empty', LONG, 'a/l'])
    expect(whole.summary).toMatchObject({ files: 3, directories: 1, links: 1, bytes: 704 })
    const text = JSON.stringify(whole)
    for (let at = 0; at <= SMALL.length; at++)
      if (JSON.stringify(read([SMALL.subarray(0, at), SMALL.subarray(at)])) !== text) expect.fail(`cut at ${at}`)
    expect(read(bytewise(SMALL))).toEqual(whole)
  })

  it('that breaks off at any byte is an error', () => {
    for (let length = 0; length < SMALL.length - 512; length++) {
      if (isRead(SMALL.subarray(0, length))) expect.fail(`cut at ${length}`)
    }
    expect(() => read([SMALL.subarray(0, -1)])).toThrow(TarError)
  })

  it('answers any bytes with entries or a TarError, nothing else', () => {
    fc.assert(
      fc.property(fc.nat(SMALL.length - 1), fc.nat(255), (at, value) => {
        const bytes = Buffer.from(SMALL)
        bytes[at] = value
        try {
          read([bytes])
        } catch (error) {
          expect(error).toBeInstanceOf(TarError)
        }
      }),
      { numRuns: 500 },
    )
  })

  it('carries comments', () => {
    expect(read([Buffer.concat([archiveComment('ä {}'), SMALL])]).comments).toEqual(['ä {}'])
  })

  it('has the manifest that sha256sum makes of its files, in whatever order they come', () => {
    const two = [fileOf('b', 'two'), fileOf('a', 'one')]
    const line = (text: string, path: string) => `${createHash('sha256').update(text).digest('hex')}  ${path}\n`
    const expected = createHash('sha256')
      .update(line('one', 'a') + line('two', 'b'))
      .digest('hex')
    expect(read([write(two)]).summary.manifest).toBe(expected)
    expect(read([write(two.toReversed())]).summary.manifest).toBe(expected)
  })
})

it.each([['--format=ustar'], ['--format=posix'], ['--format=gnu']])('an archive of tar %s is understood', (format) => {
  const root = mkdtempSync(join(tmpdir(), 'airlock-tar-'))
  try {
    mkdirSync(join(root, 'd'))
    writeFileSync(join(root, 'd', 'f'), 'x'.repeat(5000))
    if (format !== '--format=ustar') writeFileSync(join(root, 'd', 'n'.repeat(120)), 'long')
    symlinkSync('f', join(root, 'd', 'l'))
    chmodSync(join(root, 'd'), 0o2775)
    const { seen } = read([execFileSync('tar', [format, '--sort=name', '-cf', '-', '-C', root, '.'])])
    const long = format === '--format=ustar' ? [] : [`d/${'n'.repeat(120)}`]
    expect(seen.map(({ path }) => path)).toEqual(['d', 'd/f', 'd/l', ...long])
  } finally {
    rmSync(root, { recursive: true })
  }
})

it('an archive of ours is understood by tar', () => {
  const listed = execFileSync('tar', ['-tf', '-'], { input: SMALL, env: { ...process.env, LC_ALL: 'C.UTF-8' } })
  expect(listed.toString().trimEnd().split('\n')).toHaveLength(5)
})

/** Fails on every error but a TarError. */
function isRead(bytes: Buffer): boolean {
  try {
    read([bytes])
    return true
  } catch (error) {
    expect(error).toBeInstanceOf(TarError)
    return false
  }
}

const file = (name: string | Buffer, more: Partial<Member> = {}): Member => ({ name, content: 'x', ...more })
const link = (name: string, target: string): Member => ({ name, type: '2', link: target })
const deep = `${'d/'.repeat(50)}f`

/** Each with a twin that differs in what is wrong alone, and is read. */
const HOSTILE: readonly (readonly [string, readonly Member[], readonly Member[]])[] = [
  ['an absolute name', [file('/etc/x')], [file('etc/x')]],
  ['an absolute name of POSIX', [pax({ path: '/etc/x' }), file('x')], [pax({ path: 'etc/x' }), file('x')]],
  ['an absolute name of GNU', [gnuLong('L', '/etc/x'), file('x')], [gnuLong('L', 'etc/x'), file('x')]],
  ['a name that begins with ..', [file('../x')], [file('..x')]],
  ['a name with .. inside', [file('a/../../x')], [file('a/..b/x')]],
  ['a name that ends with ..', [{ name: 'a/..', type: '5' }], [{ name: 'a/b', type: '5' }]],
  ['a name of .. in an extended header', [pax({ path: 'a/../../x' }), file('x')], [pax({ path: 'a/x' }), file('x')]],
  ['no name', [pax({ path: '' }), file('x')], [pax({ path: 'y' }), file('x')]],
  ['NUL in a name', [pax({ path: 'a\0b' }), file('x')], [pax({ path: 'ab' }), file('x')]],
  ['a newline in a name', [file('a\nb')], [file('a b')]],
  ['an escape in a name', [file('a\u001B[2Jb')], [file('a[2Jb')]],
  ['a name that is not UTF-8', [file(Buffer.from([0x61, 0xff]))], [file('aü')]],
  ['a part of 256 bytes', [pax({ path: 'n'.repeat(256) }), file('x')], [pax({ path: 'n'.repeat(255) }), file('x')]],
  ['a path that is too deep', [pax({ path: `${'d/'.repeat(129)}f` }), file('x')], [pax({ path: deep }), file('x')]],
  [
    'a path of 4,096 bytes',
    [pax({ path: `${'n'.repeat(127)}/`.repeat(32) }), { name: 'x', type: '5' }],
    [pax({ path: `${'n'.repeat(127)}/`.repeat(31) }), { name: 'x', type: '5' }],
  ],
  ['an absolute link', [link('l', '/etc/passwd')], [link('l', 'etc/passwd')]],
  ['a link out', [link('l', '../x')], [link('d/l', '../x')]],
  ['a link out of two levels', [link('a/b', '../../x')], [link('a/b', '../x')]],
  ['a link with .. behind a name', [link('a/b/l', 'c/../../../../x')], [link('a/b/l', '../../c/x')]],
  ['a link through a link', [link('a/l', '..'), link('m', 'a/l/../x')], [link('a/l', '..'), link('m', 'a/l/x')]],
  ['a link to nothing', [link('l', '')], [link('l', '.')]],
  ['a file below a link', [link('l', 'd'), file('l/x')], [link('l', 'd'), file('d/x')]],
  ['a directory below a link', [link('l', 'd'), { name: 'l/x', type: '5' }], [{ name: 'd/x', type: '5' }]],
  ['a file below a file', [file('a'), file('a/b')], [file('a'), file('b/b')]],
  ['a file over a directory', [file('a/b'), file('a')], [file('a/b'), file('c')]],
  ['a hard link', [file('a'), { name: 'b', type: '1', link: 'a' }], [file('a'), link('b', 'a')]],
  ['a hard link out', [{ name: 'b', type: '1', link: '/etc/shadow' }], [file('b')]],
  ['a character device', [{ name: 'b', type: '3' }], [file('b')]],
  ['a block device', [{ name: 'b', type: '4' }], [file('b')]],
  ['a FIFO', [{ name: 'b', type: '6' }], [file('b')]],
  ['a contiguous file', [file('b', { type: '7' })], [file('b')]],
  ['a sparse file of GNU', [file('b', { type: 'S' })], [file('b')]],
  ['a sparse file of POSIX', [pax({ 'GNU.sparse.major': '1' }), file('b')], [pax({ comment: '1' }), file('b')]],
  ['a real size of SCHILY', [pax({ 'SCHILY.realsize': '9' }), file('b')], [pax({ 'SCHILY.dev': '9' }), file('b')]],
  ['a charset', [pax({ hdrcharset: 'BINARY' }), file('b')], [pax({ uname: 'x' }), file('b')]],
  ['an unknown kind', [file('b', { type: 'Z' })], [file('b')]],
  ['a volume header', [file('b', { type: 'V' })], [file('b')]],
  ['the same name twice', [file('a'), file('a')], [file('a'), file('b')]],
  ['the same name, written differently', [file('a/b'), file('./a//b')], [file('a/b'), file('./a//c')]],
  ['a set-uid bit', [file('a', { mode: 0o4755 })], [file('a', { mode: 0o755 })]],
  ['a set-gid bit', [file('a', { mode: 0o2755 })], [{ name: 'a/', type: '5', mode: 0o2755 }]],
  ['a size that is too long', [file('a', { size: 5000 })], [file('a', { content: 'y'.repeat(5000) })]],
  ['a size that is too short', [file('a', { content: 'y'.repeat(2000), size: 100 })], [file('a')]],
  ['two sizes', [pax({ size: '600' }), file('a')], [pax({ size: '1' }), file('a')]],
  ['a negative size', [pax({ size: '-1' }), file('a')], [pax({ size: '1' }), file('a')]],
  ['a directory with content', [{ name: 'd/', type: '5', content: 'x' }], [{ name: 'd/', type: '5' }]],
  ['a file with the name of a directory', [file('d/')], [file('d')]],
  ['a root that is a file', [file('.')], [{ name: './', type: '5' }]],
  ['two extended names', [pax({ path: 'a' }), gnuLong('L', 'b'), file('c')], [gnuLong('L', 'b'), file('c')]],
  ['a field twice', [doubled(), file('c')], [pax({ path: 'a' }), file('c')]],
  ['a global name', [pax({ path: 'a' }, 'g'), file('c')], [pax({ comment: 'a' }, 'g'), file('c')]],
  ['an extended header without an entry', [file('c'), pax({ path: 'a' })], [pax({ path: 'a' }), file('c')]],
  ['a wrong checksum', [file('a', { badSum: true })], [file('a')]],
  ['an extended header that is too long', [pax({ comment: 'x'.repeat(70_000) }), file('a')], [file('a')]],
]

function doubled(): Member {
  return { name: 'PaxHeader', type: 'x', content: '9 path=a\n9 path=b\n' }
}

describe('a hostile archive', () => {
  it.each(HOSTILE)('with %s is refused', (_what, hostile, control) => {
    expect(() => read([tarOf(control)])).not.toThrow()
    expect(() => read([tarOf(hostile)])).toThrow(TarError)
    expect(() => read(bytewise(tarOf(hostile)))).toThrow(TarError)
  })

  it('with too many entries or names is refused at the first that is too many', () => {
    const many = tarOf(Array.from({ length: 6 }, (_, at) => file(`f${at}`)))
    expect(() => read([many], { ...BOUNDS, entries: 6 })).not.toThrow()
    expect(() => read([many], { ...BOUNDS, entries: 5 })).toThrow('more than 5 entries')
    expect(() => read([many], { ...BOUNDS, nameBytes: 11 })).toThrow('too long together')
  })

  it('with a second archive behind it is refused', () => {
    expect(() => read([SMALL, SMALL])).toThrow('something follows its end')
    expect(() => read([SMALL, Buffer.alloc(10_240)])).not.toThrow()
  })
})

function* bytewise(bytes: Buffer): Generator<Buffer> {
  for (let at = 0; at < bytes.length; at++) yield bytes.subarray(at, at + 1)
}
