import { effectiveIsolation, limits, permit } from '@airlock/contract'
import { readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'

/** What the data plane must still know about a sandbox after kill -9. */
const sandboxState = z.strictObject({
  // Sandboxes that were started before permits named an image stand on the host, and have nothing mounted. What is checked only
  // when a permit is used need not be known of them.
  permit: permit.extend({
    image: permit.shape.image.default('host'),
    mounts: permit.shape.mounts.default([]),
    node: permit.shape.node.default('unknown'),
    doors: permit.shape.doors.default([]),
    conditions: permit.shape.conditions.default({}),
    policyVersion: permit.shape.policyVersion
      .nullable()
      .default(null)
      .transform((known) => known ?? 'none'),
    reservation: permit.shape.reservation.default('rsv_0'),
  }),
  bootId: z.string(),
  /** Null until the guest attached: a start that was cut off. */
  isolation: effectiveIsolation.nullable(),
  /** What it stands on, once it does. */
  image: z.string().nullable().default(null),
  /** Since when it is paused, by the clock of the host, and how long it was before that. */
  pausedAt: z.number().nullable().default(null),
  sleptMs: z.number().default(0),
  /** What it is held to. Null, or absent, of sandboxes from before limits could be changed: their permit says it. */
  limits: limits.nullable().default(null),
})
export type SandboxState = z.infer<typeof sandboxState>

export async function writeState(dir: string, state: SandboxState): Promise<void> {
  const path = join(dir, 'sandbox.json')
  await writeFile(`${path}.new`, JSON.stringify(state), { mode: 0o600, flush: true })
  await rename(`${path}.new`, path)
}

/**
 * Undefined when there is none: nobody was told that the sandbox started. Written whole or not at all, so a file that does not
 * parse is `damaged`. Never throws.
 */
export async function readState(dir: string): Promise<SandboxState | 'damaged' | undefined> {
  try {
    return sandboxState.parse(JSON.parse(await readFile(join(dir, 'sandbox.json'), 'utf8')))
  } catch (error) {
    const isAbsent = error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'ENOTDIR')
    return isAbsent ? undefined : 'damaged'
  }
}
