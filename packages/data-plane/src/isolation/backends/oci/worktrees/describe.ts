import type { Finding, WorktreeChange } from '@airlock/contract'
import { open } from 'node:fs/promises'
import { constants } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { inflate } from 'node:zlib'
import { Gate, isBinary } from '../../../worktrees/gate.ts'
import type { Scanned, ScannedChange } from './manifest.ts'
import { nameBytes, shownName } from './names.ts'

const unpack = promisify(inflate)
const LEFT_OUT = {
  'git-name': 'has a name of .git in its path, and stays behind',
  special: 'is no file, directory or link, and stays behind',
  submodule: 'is in a submodule, and stays behind',
} as const

export interface Described {
  readonly changes: readonly WorktreeChange[]
  readonly findings: readonly Finding[]
}

/** What a scan found, as people see it, and what the gate says of it. Reads the sealed objects, never the worktree. */
export async function describe(found: Scanned, seal: string): Promise<Described> {
  const gate = new Gate()
  const changes: (WorktreeChange & { readonly oid: string | null; readonly oldOid: string | null })[] = []
  for (const change of found.changes) {
    const bytes = nameBytes(change.path)
    const content = change.newOid === null || change.sha256 === null ? undefined : await readObject(seal, change.newOid)
    const { oldMode, newMode } = change
    await gate.judge({ path: bytes.toString('utf8'), shown: shownName(bytes), oldMode, newMode, content })
    changes.push({
      path: shownName(bytes),
      status: statusOf(change),
      from: null,
      oldMode,
      newMode,
      bytes: change.size,
      binary: content !== undefined && isBinary(content),
      oid: change.newOid,
      oldOid: change.oldOid,
    })
  }
  for (const [path, why] of found.leftOut) gate.leaveOut(shownName(nameBytes(path)), LEFT_OUT[why])
  return { changes: joinRenames(changes), findings: gate.finish() }
}

function statusOf({ oldMode, newMode, oldOid, newOid }: ScannedChange): WorktreeChange['status'] {
  if (oldMode === null) return 'added'
  if (newMode === null) return 'deleted'
  if (oldMode.slice(0, 3) !== newMode.slice(0, 3)) return 'type'
  return oldOid === newOid ? 'mode' : 'changed'
}

type Known = WorktreeChange & { readonly oid: string | null; readonly oldOid: string | null }

/** A deletion and an addition of the same content are one line for people. Both were judged. */
function joinRenames(changes: readonly Known[]): readonly WorktreeChange[] {
  const gone = new Map<string, Known>()
  for (const change of changes) if (change.status === 'deleted' && change.oldOid) gone.set(change.oldOid, change)
  const moved = new Set<Known>()
  const joined = changes.map((change): Known => {
    const from = change.status === 'added' && change.oid !== null ? gone.get(change.oid) : undefined
    if (!from || moved.has(from)) return change
    moved.add(from)
    return { ...change, status: 'renamed', from: from.path, oldMode: from.oldMode }
  })
  return joined
    .filter((change) => !moved.has(change))
    .map(({ oid: _oid, oldOid: _oldOid, ...change }): WorktreeChange => change)
}

async function readObject(seal: string, oid: string): Promise<Buffer> {
  const path = join(seal, 'objects', oid.slice(0, 2), oid.slice(2))
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW)
  try {
    const raw = await unpack(await file.readFile())
    return raw.subarray(raw.indexOf(0) + 1)
  } finally {
    await file.close()
  }
}
