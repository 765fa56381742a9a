import { createHash } from 'node:crypto'
import { readFile, stat } from 'node:fs/promises'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { AirlockError, id } from '@airlock/contract'
import { randomText } from '@airlock/std'
import { replaceFile } from '../sandboxes/signing-key.ts'

const HOSTNAME_CHARS = 40
/** Whole only with the end of its line: the beginning of a name is a name too. */
const WHOLE = /^(.+)\n$/u

/** Which node of a store we are. */
export interface NodeIdentity {
  /** Made once for a home and kept in it: two homes on one machine are two nodes. */
  readonly id: string
  /** Who runs as this node: the same home in the same boot of a machine. A copy of the home is somebody else. */
  readonly holder: string
}

/**
 * Reads who we are, deciding it on the first start. Fails closed on a damaged name: as another node we would not know our
 * sandboxes and evidence.
 */
export async function openNodeIdentity(of: {
  readonly stateDir: string
  /** Has a copy of the name, for people. */
  readonly publicDir: string
}): Promise<NodeIdentity> {
  const path = join(of.stateDir, 'node-id')
  return { id: (await readId(path, of.publicDir)) ?? (await makeId(path)), holder: await holderOf(of.stateDir) }
}

async function readId(path: string, publicDir: string): Promise<string | undefined> {
  const text = await readFile(path, 'utf8').catch((error: unknown) => {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw error
  })
  if (text === undefined) return undefined
  const found = id.safeParse(WHOLE.exec(text)?.[1])
  if (found.success) return found.data
  const copy = join(publicDir, 'node')
  throw new AirlockError('state_damaged', `${path} is damaged: it does not name this node.`, {
    hint: `Put it back from a backup, or if ${copy} names the node: { cat ${copy}; echo; } > ${path}`,
  })
}

/** Begins with the name of the machine, for people. Whole or not at all. */
async function makeId(path: string): Promise<string> {
  const machine = hostname()
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replace(/^-+/, '')
    .slice(0, HOSTNAME_CHARS)
  const made = id.parse(`${machine === '' ? 'node' : machine}-${randomText(8)}`)
  await replaceFile(path, { text: `${made}\n`, mode: 0o600 })
  return made
}

async function holderOf(stateDir: string): Promise<string> {
  const boot = (await readFile('/proc/sys/kernel/random/boot_id', 'utf8')).trim()
  const { dev, ino } = await stat(stateDir)
  return createHash('sha256').update(`${boot} ${dev} ${ino} ${stateDir}`).digest('hex').slice(0, 32)
}
