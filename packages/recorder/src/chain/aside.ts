import { link, open, readFile, rm, unlink } from 'node:fs/promises'
import { AirlockError } from '@airlock/contract'
import { isCode } from './segments.ts'

/** More copies of one end are not kept: a disk that fails would fill with them. */
const MAX_COPIES = 16

/** Writes bytes that are about to be cut off to a file of that name, or a name like it: what is kept already is never overwritten. */
export async function keepAside(path: string, bytes: Buffer): Promise<void> {
  await underFreeName(path, async (name) => {
    const file = await open(name, 'wx', 0o600).catch(async (error: unknown) => {
      // A start that died before it could cut has kept the same bytes.
      if (isCode(error, 'EEXIST') && (await readFile(name)).equals(bytes)) return undefined
      throw error
    })
    if (!file) return
    try {
      await file.writeFile(bytes)
      await file.sync()
    } catch (error) {
      await rm(name, { force: true })
      throw error
    } finally {
      await file.close()
    }
  })
}

/** The same for a whole file. */
export async function moveAside(from: string, path: string): Promise<void> {
  await underFreeName(path, async (name) => link(from, name))
  await unlink(from)
}

async function underFreeName(path: string, work: (name: string) => Promise<void>): Promise<void> {
  for (let copy = 1; copy <= MAX_COPIES; copy++)
    try {
      return await work(copy === 1 ? path : `${path}.${copy}`)
    } catch (error) {
      if (!isCode(error, 'EEXIST')) throw error
    }
  throw new AirlockError('evidence_unavailable', `There are ${MAX_COPIES} copies of ${path} already: move them away.`)
}
