import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { RecorderClient } from '@airlock/audit'
import type { NewRecord } from '@airlock/contract'
import { createLog } from '@airlock/std'

/** Few enough that a busy machine answers each in time. */
const BATCH = 50

/** Records of the agent `flood` that nobody asked for, written as the control plane of that server writes its own. */
export async function flood(home: string, of: { readonly count: number; readonly bytes: number }): Promise<void> {
  const spill = mkdtempSync(join(tmpdir(), 'airlock-flood-'))
  mkdirSync(join(spill, 'notes'))
  const log = createLog({ process: 'test', level: 'silent', write: () => {} })
  const socket = join(home, 'run/recorder-control-plane.sock')
  const recorder = new RecorderClient({ socket, spillDir: join(spill, 'notes'), log, requireMs: 60_000 })
  const who = { tenant: 'default', agent: 'flood', actor: 'system', point: 'command.run', status: 'done' } as const
  const text = Array.from({ length: Math.ceil(of.bytes / 4000) }, () => 'x'.repeat(Math.min(4000, of.bytes)))
  const one = (n: number): NewRecord => ({ ...who, payload: { n, text } })
  try {
    for (let n = 0; n < of.count; n += BATCH)
      await Promise.all(Array.from({ length: BATCH }, async (_, i) => recorder.require(one(n + i))))
  } finally {
    recorder.close()
    rmSync(spill, { recursive: true, force: true })
  }
}
