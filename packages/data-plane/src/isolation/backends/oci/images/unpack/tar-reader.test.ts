import fc from 'fast-check'
import { expect, it } from 'vitest'
import { ByteSource } from './byte-source.ts'
import { readTar } from './tar-reader.ts'
import { gnuLong, pax, tarOf } from '@airlock/std/tar/testing'

interface Seen {
  readonly name: string
  readonly type: string
  readonly target: string
  readonly content: string
}

async function read(bytes: Buffer, chunk = 1000): Promise<readonly Seen[]> {
  async function* chunks(): AsyncGenerator<Buffer> {
    for (let at = 0; at < bytes.length; at += chunk) yield bytes.subarray(at, at + chunk)
  }
  const seen: Seen[] = []
  for await (const entry of readTar(new ByteSource(chunks(), 64 * 1024 * 1024))) {
    const content = entry.type === 'file' ? Buffer.concat(await Array.fromAsync(entry.body)).toString() : ''
    seen.push({ name: entry.name, type: entry.type, target: entry.target, content })
  }
  return seen
}

it('reads back what was written, however it is cut into pieces', async () => {
  const name = fc.stringMatching(/^[a-z][a-z0-9/._-]{0,80}[a-z]$/u)
  const member = fc.record({ name, content: fc.string({ maxLength: 2000 }) })
  await fc.assert(
    fc.asyncProperty(fc.array(member, { maxLength: 8 }), fc.integer({ min: 1, max: 3000 }), async (members, chunk) => {
      const expected = members.map((one) => ({ ...one, type: 'file', target: '' }))
      const seen = await read(tarOf(members), chunk)
      expect(seen).toEqual(expected.map((one) => expect.objectContaining(one)))
    }),
    { numRuns: 60 },
  )
})

it('takes names, targets and sizes from extended headers of both kinds', async () => {
  const long = `${'d/'.repeat(80)}file`
  const archive = tarOf([
    pax({ path: long, mtime: '1.5', comment: 'ä' }),
    { name: 'short', content: 'one' },
    gnuLong('L', `${long}2`),
    { name: 'short', content: 'two' },
    gnuLong('K', long),
    { name: 'link', type: '2', link: 'short' },
    pax({ comment: 'for all' }, 'g'),
    { name: 'dir/', type: '5' },
    { name: 'old-directory/' },
  ])
  expect(await read(archive)).toEqual([
    { name: long, type: 'file', target: '', content: 'one' },
    { name: `${long}2`, type: 'file', target: '', content: 'two' },
    { name: 'link', type: 'symlink', target: long, content: '' },
    { name: 'dir/', type: 'directory', target: '', content: '' },
    { name: 'old-directory/', type: 'directory', target: '', content: '' },
  ])
})

it('goes on after a body that nobody read', async () => {
  const source = new ByteSource(Readable(tarOf([{ name: 'a', content: 'x'.repeat(5000) }, { name: 'b' }])), 1e6)
  const names: string[] = []
  for await (const { name } of readTar(source)) names.push(name)
  expect(names).toEqual(['a', 'b'])
})

it.each([
  ['a sum that is wrong', tarOf([{ name: 'x', badSum: true }]), /sum is wrong/],
  ['no end', tarOf([{ name: 'x', content: 'abc' }], false), /breaks off/],
  ['an end in the middle of a file', tarOf([{ name: 'x', content: 'a'.repeat(2000) }]).subarray(0, 1500), /breaks off/],
  ['a size beyond the archive', tarOf([{ name: 'x', content: 'abc', size: 4e9 }]), /breaks off/],
  ['an extended size that lies', tarOf([pax({ size: '99999999' }), { name: 'x', content: 'abc' }]), /breaks off/],
  ['an extended size that is no number', tarOf([pax({ size: '-1' }), { name: 'x' }]), /damaged/],
  ['two extended names', tarOf([pax({ path: 'a' }), pax({ path: 'b' }), { name: 'x' }]), /damaged/],
  ['a name for all that follow', tarOf([pax({ path: 'a' }, 'g'), { name: 'x' }]), /damaged/],
  ['a sparse file of GNU', tarOf([{ name: 'holes', type: 'S' }]), /"holes" is a sparse file/],
  ['a sparse file of PAX', tarOf([pax({ 'GNU.sparse.major': '1' }), { name: 'x' }]), /damaged/],
  [
    'an extended header without end',
    tarOf([{ name: 'p', type: 'x', content: '999 path=a\n' }, { name: 'x' }]),
    /damaged/,
  ],
  ['a directory with content', tarOf([{ name: 'd', type: '5', content: 'abc' }]), /has a size/],
  ['an unknown kind', tarOf([{ name: 'v', type: 'V' }]), /unknown kind/],
  ['a name that is not UTF-8', tarOf([{ name: Buffer.from([0x61, 0xff]) }]), /not UTF-8/],
  ['a name with an escape', tarOf([{ name: 'a\u001B[2Jb' }]), /control characters/],
  ['a name with a line break', tarOf([pax({ path: 'a\nb' }), { name: 'x' }]), /control characters/],
])('refuses %s', async (_what, archive, why) => {
  await expect(read(archive)).rejects.toMatchObject({ code: 'template_invalid', message: expect.stringMatching(why) })
})

it('never takes bytes that are not an archive for one, and never throws anything else', async () => {
  await fc.assert(
    fc.asyncProperty(fc.uint8Array({ minLength: 1, maxLength: 3000 }), async (bytes) => {
      const outcome = await read(Buffer.from(bytes)).catch((error: { code?: string }) => error.code)
      expect([undefined, 'template_invalid']).toContain(Array.isArray(outcome) ? undefined : outcome)
    }),
    { numRuns: 200 },
  )
})

async function* Readable(bytes: Buffer): AsyncGenerator<Buffer> {
  yield bytes
}
