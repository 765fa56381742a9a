import { createHash } from 'node:crypto'
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { FailpointName } from '@airlock/contract'
import { createLog, newId } from '@airlock/std'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { ArtifactFiles } from './artifact-files.ts'

let dir: string
let hasRoom: boolean
let dies: FailpointName | undefined

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'airlock-artifacts-'))
  hasRoom = true
  dies = undefined
})
afterEach(() => rmSync(dir, { recursive: true }))

/** Stands for a kill: nothing after it happens, and a new store is opened. */
const never = async () => new Promise<void>(() => {})
const open = async () => {
  const log = createLog({ process: 'test', level: 'silent', write: () => {} })
  const failpoint = async (name: FailpointName) => (name === dies ? never() : undefined)
  return ArtifactFiles.open({ dir, hasRoom: () => hasRoom, log, failpoint })
}
const ref = (tenant = 'acme') => ({ tenant, id: newId('art') })
async function* bytes(...parts: string[]): AsyncGenerator<Buffer> {
  for (const part of parts) yield Buffer.from(part)
}
const textOf = async (found: AsyncIterable<Buffer> | undefined) =>
  found && Buffer.concat(await Array.fromAsync(found)).toString()
const contents = (tenant: string) => readdirSync(join(dir, 'content', tenant))

describe('the bytes of an artifact', () => {
  it('are kept under its id, and answered whole or in part, by a later process too', async () => {
    const of = ref()
    const sha256 = createHash('sha256').update('one two').digest('hex')
    expect(await (await open()).put(of, bytes('one', ' two'), 7)).toEqual({ sha256, bytes: 7 })
    const later = await open()
    expect(await textOf(await later.read(of, { from: 0 }))).toBe('one two')
    expect(await textOf(await later.read(of, { from: 1, to: 4 }))).toBe('ne t')
    expect(await later.list('acme')).toEqual([of.id])
    expect(await later.read(ref(), { from: 0 })).toBeUndefined()
  })

  it('are kept once for equal content of a tenant, until the last artifact is removed', async () => {
    const files = await open()
    const [one, other, foreign] = [ref(), ref(), ref('globex')]
    const { sha256 } = await files.put(one, bytes('same'), 9)
    for (const at of [other, foreign]) await files.put(at, bytes('same'), 9)
    expect([contents('acme'), contents('globex')]).toEqual([[sha256], [sha256]])
    await files.remove(one, sha256)
    expect(await textOf(await files.read(other, { from: 0 }))).toBe('same')
    await files.remove(other, null)
    await files.remove(other, null)
    expect([contents('acme'), contents('globex')]).toEqual([[], [sha256]])
  })

  it('that are too many, break off or find no room leave nothing', async () => {
    const files = await open()
    await expect(files.put(ref(), bytes('ab', 'c'), 2)).rejects.toMatchObject({ code: 'artifact_too_large' })
    const broken = async function* () {
      yield Buffer.from('a')
      throw new TypeError('broke off')
    }
    await expect(files.put(ref(), broken(), 9)).rejects.toThrow('broke off')
    hasRoom = false
    await expect(files.put(ref(), bytes('a'), 9)).rejects.toMatchObject({ code: 'host_disk_full' })
    expect([readdirSync(join(dir, 'incoming')), readdirSync(join(dir, 'content'))]).toEqual([[], []])
  })

  it.each(['artifact.staged', 'artifact.stored'] as const)('are whole or gone after a kill at %s', async (at) => {
    dies = at
    const files = await open()
    const of = ref()
    void files.put(of, bytes('x'), 9)
    const isThere = () => (at === 'artifact.staged' ? readdirSync(join(dir, 'incoming')).length === 1 : named(of) === 1)
    await expect.poll(isThere).toBe(true)
    const later = await open()
    expect(await textOf(await later.read(of, { from: 0 }))).toBe(at === 'artifact.stored' ? 'x' : undefined)
    expect(readdirSync(join(dir, 'incoming'))).toEqual([])
  })

  it('that nothing names are removed at the next start', async () => {
    const files = await open()
    const of = ref()
    const { sha256 } = await files.put(of, bytes('kept'), 9)
    writeFileSync(join(dir, 'content', 'acme', '0'.repeat(64)), 'unnamed')
    await open()
    expect(contents('acme')).toEqual([sha256])
  })

  it('are reached by no name but that of an artifact and a tenant', async () => {
    const files = await open()
    for (const of of [
      { tenant: 'acme', id: '../x' },
      { tenant: '../acme', id: newId('art') },
    ])
      await expect(files.put(of, bytes('x'), 9)).rejects.toMatchObject({ code: expect.stringContaining('not_found') })
  })
})

function named({ tenant, id }: { tenant: string; id: string }): number {
  try {
    return readdirSync(join(dir, 'named', tenant)).filter((name) => name === id).length
  } catch {
    return 0
  }
}
