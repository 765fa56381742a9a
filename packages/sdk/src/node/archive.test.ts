import { gnuLong, type Member, pax, tarOf } from '@airlock/std/tar/testing'
import { execFileSync } from 'node:child_process'
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { LocalTree } from './local-tree.ts'
import { unpackTree } from './unpack-tree.ts'

let root: string
beforeEach(async () => (root = await mkdtemp(join(tmpdir(), 'airlock-sdk-'))))
afterEach(async () => rm(root, { recursive: true, force: true }))

const at = (name: string): string => join(root, name)
const failure = async (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => undefined,
    (error: unknown) => error,
  )
const unpack = async (archive: Buffer, to = 'to') => unpackTree(pieces(archive), at(to), {})

async function* pieces(bytes: Buffer): AsyncGenerator<Uint8Array> {
  for (let from = 0; from < bytes.length; from += 700) yield bytes.subarray(from, from + 700)
}

it('a tree comes back equal, with modes, times and links that stay inside', async () => {
  await mkdir(at('from/deep/empty'), { recursive: true })
  await writeFile(at('from/tool'), '#!/bin/sh\n', { mode: 0o755 })
  await writeFile(at('from/deep/large'), Buffer.alloc(1_000_000, 3))
  await symlink('../tool', at('from/deep/link'))
  await symlink('/etc/passwd', at('from/out'))
  execFileSync('mkfifo', [at('from/pipe')])
  const tree = new LocalTree(at('from'), {})
  const unpacked = await unpackTree(tree.bytes(), at('to'), {})
  expect(unpacked).toMatchObject({ files: 2, directories: 2, links: 1, bytes: 1_000_010, manifest: tree.manifest })
  expect(tree.skipped).toEqual([
    { path: 'out', why: 'is a link to an absolute path' },
    { path: 'pipe', why: 'is no file, directory or link' },
  ])
  await rm(at('from/out'))
  await rm(at('from/pipe'))
  execFileSync('diff', ['-r', '--no-dereference', at('from'), at('to')])
  const [before, after] = await Promise.all([stat(at('from/tool')), stat(at('to/tool'))])
  expect([after.mode, Math.floor(after.mtimeMs / 1000)]).toEqual([before.mode, Math.floor(before.mtimeMs / 1000)])
})

it('a file that becomes shorter while it is sent is an error', async () => {
  await mkdir(at('from'))
  await writeFile(at('from/large'), Buffer.alloc(4_000_000))
  const sending = async (): Promise<void> => {
    for await (const _ of new LocalTree(at('from'), {}).bytes()) await truncate(at('from/large'), 10)
  }
  expect(await failure(sending())).toMatchObject({ code: 'file_changed' })
})

describe('an archive that a sandbox made up', () => {
  const hostile: readonly (readonly [string, Member])[] = [
    ['an absolute path', gnuLong('L', '/tmp/airlock-escaped')],
    ['a way up', { name: '../escaped' }],
    ['a hidden way up', pax({ path: 'a/../../escaped' })],
    ['a link out', { name: 'l', type: '2', link: '../..' }],
    ['a hard link', { name: 'h', type: '1', link: 'good' }],
    ['a device', { name: 'd', type: '3' }],
    ['a set-uid file', { name: 's', mode: 0o4755 }],
  ]
  it.each(hostile)('with %s writes nothing outside, and says how far it came', async (_what, bad) => {
    const good = { name: 'good', content: 'fine' }
    expect(await failure(unpack(tarOf([good, bad, { name: 'after', content: 'x' }])))).toMatchObject({
      code: 'archive_invalid',
      message: expect.stringContaining('1 entries were written to'),
    })
    expect([await readdir(root), await readdir(at('to'))]).toEqual([['to'], ['good']])
  })

  it('is not written through a link that was there', async () => {
    await mkdir(at('private'))
    await mkdir(at('to'))
    await symlink('../private', at('to/way'))
    expect(await failure(unpack(tarOf([{ name: 'way/planted', content: 'x' }])))).toMatchObject({
      code: 'not_a_directory',
    })
    await writeFile(at('private/kept'), 'kept')
    await symlink('../private/kept', at('to/file'))
    await unpack(tarOf([{ name: 'file', content: 'new' }]))
    expect([await readFile(at('private/kept'), 'utf8'), await readFile(at('to/file'), 'utf8')]).toEqual(['kept', 'new'])
    expect(await readdir(at('private'))).toEqual(['kept'])
  })

  it('that breaks off leaves no half of a file', async () => {
    const archive = tarOf([
      { name: 'whole', content: 'x' },
      { name: 'half', content: 'y'.repeat(5000) },
    ])
    expect(await failure(unpack(archive.subarray(0, 4000)))).toMatchObject({ code: 'archive_invalid' })
    expect(await readdir(at('to'))).toEqual(['whole'])
  })

  it('cannot make a directory that its owner cannot enter, or a comment that is not ours', async () => {
    const members = [
      pax({ comment: '{"skipped":[{"path":1}],"count":"many"}' }, 'g'),
      { name: 'd', type: '5', mode: 0 },
    ]
    expect(await unpack(tarOf([...members, { name: 'd/f', content: 'x' }]))).toMatchObject({ skipped: [], files: 1 })
    expect((await stat(at('to/d'))).mode & 0o700).toBe(0o700)
    await chmod(at('to/d'), 0o755)
  })
})
