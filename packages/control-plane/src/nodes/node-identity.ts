import { createHash } from 'node:crypto'
import { readFile, rename, stat, writeFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { id } from '@airlock/contract'
import { randomText } from '@airlock/std'

const HOSTNAME_CHARS = 40

/** Which node of a store we are. */
export interface NodeIdentity {
  /** Made once for a home and kept in it: two homes on one machine are two nodes. */
  readonly id: string
  /** Who runs as this node: the same home in the same boot of a machine. A copy of the home is somebody else. */
  readonly holder: string
}

/** Reads who we are, deciding it on the first start. */
export async function openNodeIdentity(stateDir: string): Promise<NodeIdentity> {
  const path = join(stateDir, 'node-id')
  return { id: (await readId(path)) ?? (await makeId(path)), holder: await holderOf(stateDir) }
}

async function readId(path: string): Promise<string | undefined> {
  try {
    return id.parse((await readFile(path, 'utf8')).trim())
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw error
  }
}

/** Begins with the name of the machine, for people. Whole or not at all. */
async function makeId(path: string): Promise<string> {
  const machine = hostname()
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replace(/^-+/, '')
    .slice(0, HOSTNAME_CHARS)
  const made = id.parse(`${machine === '' ? 'node' : machine}-${randomText(8)}`)
  await writeFile(`${path}.new`, `${made}\n`, { mode: 0o600, flush: true })
  await rename(`${path}.new`, path)
  return made
}

async function holderOf(stateDir: string): Promise<string> {
  const boot = (await readFile('/proc/sys/kernel/random/boot_id', 'utf8')).trim()
  const { dev, ino } = await stat(stateDir)
  return createHash('sha256').update(`${boot} ${dev} ${ino} ${stateDir}`).digest('hex').slice(0, 32)
}
