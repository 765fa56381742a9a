import { createHash } from 'node:crypto'
import {
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync, zstdCompressSync } from 'node:zlib'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { gnuLong, type Member, pax, tarOf } from '@airlock/std/tar/testing'
import { unpack, type Unpacked } from './unpack.ts'

let dir: string

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'airlock-unpack-'))
  mkdirSync(join(dir, 'work'))
  mkdirSync(join(dir, 'work', 'root'))
  writeFileSync(join(dir, 'outside'), 'untouched')
})
afterEach(() => rmSync(dir, { recursive: true, force: true }))

const LIMITS = { bytes: 64 * 1024, entries: 100 }

async function unpackHere(tar: Buffer): Promise<Unpacked> {
  async function* chunks(): AsyncGenerator<Buffer> {
    for (let at = 0; at < tar.length; at += 4096) yield tar.subarray(at, at + 4096)
  }
  return unpack(chunks(), { root: join(dir, 'work', 'root'), spool: join(dir, 'work', 'spool') }, LIMITS)
}

/** Everything below a directory: `path` → content, `-> target`, or `/`. */
function treeOf(at: string, prefix = ''): Record<string, string> {
  return Object.fromEntries(
    readdirSync(at).flatMap((name): [string, string][] => {
      const path = join(at, name)
      const stat = lstatSync(path)
      if (stat.isSymbolicLink()) return [[`${prefix}${name}`, `-> ${readlinkSync(path)}`]]
      if (stat.isDirectory()) return [[`${prefix}${name}`, '/'], ...Object.entries(treeOf(path, `${prefix}${name}/`))]
      return [[`${prefix}${name}`, readFileSync(path, 'utf8')]]
    }),
  )
}

const root = () => treeOf(join(dir, 'work', 'root'))

const ROOTFS: readonly Member[] = [
  { name: './', type: '5' },
  { name: './etc/', type: '5', mode: 0o700 },
  { name: './etc/passwd', content: 'root:x:0:0::/:/bin/sh\n' },
  { name: './bin', type: '2', link: 'usr/bin' },
  { name: './usr/bin/tool', content: 'tool', mode: 0o4750 },
  { name: './usr/bin/same', type: '1', link: './usr/bin/tool' },
  { name: './usr/bin/absolute', type: '2', link: '/usr/bin/tool' },
  { name: './secret', content: 's', mode: 0o600 },
]

describe('a root file system', () => {
  it.each([
    ['as it is', (tar: Buffer) => tar],
    ['with gzip', gzipSync],
    ['with zstd', zstdCompressSync],
  ])('is unpacked %s', async (_how, pack) => {
    expect(await unpackHere(Buffer.from(pack(tarOf(ROOTFS))))).toEqual({
      env: [],
      passwd: ['root:x:0:0::/:/bin/sh', ''],
      group: [],
    })
    expect(root()).toEqual({
      etc: '/',
      'etc/passwd': 'root:x:0:0::/:/bin/sh\n',
      bin: '-> usr/bin',
      usr: '/',
      'usr/bin': '/',
      'usr/bin/tool': 'tool',
      'usr/bin/same': 'tool',
      'usr/bin/absolute': '-> /usr/bin/tool',
      secret: 's',
    })
  })

  it('can be read by everybody, written by nobody, and gives no rights', async () => {
    await unpackHere(tarOf(ROOTFS))
    const mode = (path: string) => lstatSync(join(dir, 'work', 'root', path)).mode & 0o7777
    expect([mode('etc'), mode('usr/bin/tool'), mode('secret')]).toEqual([0o755, 0o555, 0o444])
  })
})

describe('an archive that is hostile', () => {
  const far = `${'x/'.repeat(2100)}y`
  const OUT = '../../outside'
  const table: readonly (readonly [string, readonly Member[], RegExp])[] = [
    ['an absolute name', [{ name: '/etc/evil' }], /"\/etc\/evil" is absolute/],
    ['a name above the root', [{ name: '../outside', content: 'evil' }], /"\.\.\/outside" contains "\.\."/],
    ['a name that climbs', [{ name: 'a/../../outside', content: 'evil' }], /contains "\.\."/],
    ['an absolute name in an extended header', [pax({ path: '/x' }), { name: 'x' }], /is absolute/],
    ['a climbing name in a long header', [gnuLong('L', '../outside'), { name: 'x' }], /contains "\.\."/],
    ['a link out', [{ name: 'a/l', type: '2', link: OUT }], /"a\/l" is a link that leads out/],
    ['a link out by an extended header', [pax({ linkpath: OUT }), { name: 'l', type: '2' }], /leads out/],
    ['a link to nothing', [{ name: 'l', type: '2' }], /link to nothing/],
    ['a hard link out', [{ name: 'l', type: '1', link: OUT }], /contains "\.\."/],
    ['a hard link to an absolute name', [{ name: 'l', type: '1', link: '/etc/passwd' }], /is absolute/],
    ['a hard link to what is not there', [{ name: 'l', type: '1', link: 'x' }], /is no file/],
    ['a hard link to itself', [{ name: 'l', type: '1', link: 'l' }], /is no file/],
    [
      'a hard link through a link',
      [{ name: 'd/f' }, { name: 'l', type: '2', link: 'd' }, { name: 'h', type: '1', link: 'l/f' }],
      /leads nowhere/,
    ],
    [
      'a hard link to a link',
      [
        { name: 'l', type: '2', link: '/etc/shadow' },
        { name: 'h', type: '1', link: 'l' },
      ],
      /is no file/,
    ],
    [
      'a file through a link',
      [
        { name: 'l', type: '2', link: '/tmp' },
        { name: 'l/evil', content: 'evil' },
      ],
      /"l\/evil" goes through the link "l"/,
    ],
    [
      'a directory through a link',
      [
        { name: 'l', type: '2', link: '/tmp' },
        { name: 'l/evil', type: '5' },
      ],
      /goes through the link/,
    ],
    [
      'a file over a link of the same name',
      [
        { name: 'l', type: '2', link: '/tmp/evil' },
        { name: 'l', content: 'evil' },
      ],
      /"l" appears twice/,
    ],
    [
      'a file twice',
      [
        { name: 'f', content: '1' },
        { name: './f', content: '2' },
      ],
      /"\.\/f" appears twice/,
    ],
    [
      'a link in the place of a directory',
      [{ name: 'd/f' }, { name: 'd', type: '2', link: '/tmp' }],
      /would replace a directory/,
    ],
    ['a file below a file', [{ name: 'f' }, { name: 'f/g' }], /not a directory/],
    ['a device', [{ name: 'dev/sda', type: '4' }], /"dev\/sda" is a device/],
    ['a character device', [{ name: 'null', type: '3' }], /"null" is a device/],
    ['a pipe', [{ name: 'p', type: '6' }], /"p" is a named pipe/],
    ['a file in the place of the root', [{ name: 'a' }, { name: './.' }], /would replace the root/],
    ['a name that is too deep', [pax({ path: far }), { name: 'x' }], /too (?:deep|long)/],
    ['a part that is too long', [pax({ path: 'x'.repeat(300) }), { name: 'x' }], /too long/],
    [
      'too many bytes',
      [
        { name: 'f', content: 'x'.repeat(65_000) },
        { name: 'g', content: 'x'.repeat(1000) },
      ],
      /too large/,
    ],
    ['too many entries', Array.from({ length: 101 }, (_, at) => ({ name: `f${at}` })), /too many entries/],
  ]

  it.each(table)('is refused for %s, and nothing is outside', async (_what, members, why) => {
    await expect(unpackHere(tarOf(members))).rejects.toMatchObject({
      code: 'template_invalid',
      message: expect.stringMatching(why),
    })
    const { outside, work, 'work/root': inside, ...rest } = treeOf(dir)
    expect([outside, work, inside]).toEqual(['untouched', '/', '/'])
    expect(Object.keys(rest).filter((path) => !path.startsWith('work/root/'))).toEqual([])
  })

  it('is refused when little becomes much', async () => {
    const bomb = tarOf([{ name: 'f', content: Buffer.alloc(8 * 1024 * 1024) }])
    await expect(unpackHere(gzipSync(bomb))).rejects.toMatchObject({ message: expect.stringMatching(/too large/) })
    await expect(unpackHere(gzipSync(bomb).subarray(0, 2000))).rejects.toMatchObject({ code: 'template_invalid' })
  })
})

describe('an image of layers', () => {
  const bottom = tarOf([
    { name: 'keep', content: 'kept' },
    { name: 'gone', content: 'x' },
    { name: 'dir/old', content: 'old' },
    { name: 'dir/sub/old', content: 'old' },
    { name: 'lib', type: '2', link: '/usr/lib' },
  ])
  const top = tarOf([
    { name: '.wh.gone' },
    { name: 'dir/new', content: 'new' },
    { name: 'dir/.wh..wh..opq' },
    { name: 'lib', type: '5' },
    { name: 'lib/own', content: 'own' },
  ])
  const expected = { keep: 'kept', dir: '/', 'dir/new': 'new', lib: '/', 'lib/own': 'own' }
  const arch = process.arch === 'x64' ? 'amd64' : process.arch
  const config = JSON.stringify({ os: 'linux', architecture: arch, config: { Env: ['PATH=/opt/bin', 'LANG=C'] } })

  it('of OCI is put together from the bottom up, for the platform of this host', async () => {
    expect(await unpackHere(layout())).toMatchObject({ env: ['PATH=/opt/bin', 'LANG=C'] })
    expect(root()).toEqual(expected)
    expect(readdirSync(join(dir, 'work'))).toEqual(['root'])
  })

  it('of docker save is put together, with layers that are links to others', async () => {
    const members: readonly Member[] = [
      { name: 'aaaa/layer.tar', content: bottom },
      { name: 'bbbb/layer.tar', content: top },
      { name: 'config.json', content: config },
      { name: 'cccc/layer.tar', type: '2', link: '../bbbb/layer.tar' },
      {
        name: 'manifest.json',
        content: JSON.stringify([
          { Config: 'config.json', RepoTags: null, Layers: ['aaaa/layer.tar', 'bbbb/layer.tar', 'cccc/layer.tar'] },
        ]),
      },
    ]
    await unpackHere(tarOf([{ name: 'repositories', content: '{}' }, ...members]))
    expect(root()).toEqual(expected)
  })

  it.each([
    ['a blob that is not what its name says', { damage: true }, /is damaged/],
    ['another platform', { platform: 'sparc' }, /no image for linux/],
    ['a layer that is missing', { lacking: true }, /lacks the blob/],
  ])('is refused for %s', async (_what, wrong, why) => {
    await expect(unpackHere(layout(wrong))).rejects.toMatchObject({
      code: 'template_invalid',
      message: expect.stringMatching(why),
    })
  })

  it('cannot reach outside by a mark that something is gone', async () => {
    for (const name of ['.wh...', '.wh..', '.wh.'])
      await expect(unpackHere(layout({ top: tarOf([{ name }]) }))).rejects.toMatchObject({ code: 'template_invalid' })
    expect(readFileSync(join(dir, 'outside'), 'utf8')).toBe('untouched')
  })

  interface Wrong {
    readonly damage?: boolean
    readonly platform?: string
    readonly lacking?: boolean
    readonly top?: Buffer
  }

  function layout(wrong: Wrong = {}): Buffer {
    const blobs = new Map<string, Buffer>()
    const add = (content: Buffer | string): string => {
      const digest = createHash('sha256').update(content).digest('hex')
      blobs.set(digest, Buffer.from(content))
      return `sha256:${digest}`
    }
    const layers = [gzipSync(bottom), zstdCompressSync(wrong.top ?? top)].map((layer) => ({ digest: add(layer) }))
    const manifest = add(JSON.stringify({ config: { digest: add(config) }, layers }))
    const platform = { os: 'linux', architecture: wrong.platform ?? arch }
    const inner = add(
      JSON.stringify({
        manifests: [
          { digest: `sha256:${'0'.repeat(64)}`, platform: { os: 'unknown', architecture: 'unknown' } },
          { digest: manifest, platform },
        ],
      }),
    )
    const index = { manifests: [{ mediaType: 'application/vnd.oci.image.index.v1+json', digest: inner }] }
    const [first = ''] = blobs.keys()
    if (wrong.damage === true) blobs.set(first, Buffer.from('other'))
    if (wrong.lacking === true) blobs.delete(first)
    return tarOf([
      { name: 'blobs/', type: '5' },
      ...[...blobs].map(([digest, content]) => ({ name: `blobs/sha256/${digest}`, content })),
      { name: 'index.json', content: JSON.stringify(index) },
    ])
  }
})
