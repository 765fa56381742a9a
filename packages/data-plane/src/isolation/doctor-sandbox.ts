import { createLog } from '@airlock/std'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { SandboxSpec } from './backend.ts'
import { createOciBackend } from './backends/oci/oci-backend.ts'
import { PROBE_COMMAND, readProbe, type Probe } from './probe/probes.ts'
import { runThrowAway } from './throw-away.ts'

export interface SandboxTrial {
  readonly runtime: string
  readonly node: string
  readonly guestBundle: string
}

export interface TriedSandbox {
  readonly runtime: string
  readonly startMs: number
  readonly probe: Probe
  /** Why `stat` fails in it, where it does; null where the image has none. */
  readonly statFault: string | null
}

const LIMIT_MS = 20_000

/**
 * Starts a whole sandbox in a state directory of its own, tries the forbidden calls and `stat` in it, and ends it. Throws what
 * went wrong. Leaves nothing behind.
 */
export async function trySandbox(trial: SandboxTrial, tier: SandboxSpec['tier'] = 'standard'): Promise<TriedSandbox> {
  const root = await mkdtemp(join(tmpdir(), 'airlock-doctor-'))
  try {
    const backend = await createOciBackend({
      ...trial,
      stateDir: join(root, 'state'),
      runtimeDir: join(root, 'run'),
      // It is gone in a moment, and the directory for temporary files may be small.
      diskReserveBytes: 0,
      log: createLog({ process: 'doctor', level: 'silent', write: () => {} }),
      failpoint: async () => {},
    })
    const signal = AbortSignal.timeout(LIMIT_MS)
    const commands = [PROBE_COMMAND, ['stat', '/workspace']]
    const { isolation, startMs, ran } = await runThrowAway(backend, {
      tier,
      image: 'host',
      dir: root,
      commands,
      signal,
    })
    const [probed, stat] = ran
    const statFault = stat?.exitCode === 0 ? null : (stat?.output.toString().trim() ?? null)
    return { runtime: isolation.runtime, startMs, probe: readProbe(probed, tier), statFault }
  } finally {
    await rm(root, { recursive: true, force: true })
  }
}
