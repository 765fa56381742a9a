import { AirlockError } from '@airlock/contract'
import { readFileSync } from 'node:fs'

/** The capabilities that sandboxes are made with, as the kernel numbers them. What each is for: docs/deploy.md. */
const NEEDED: Readonly<Record<string, number>> = {
  CHOWN: 0,
  DAC_OVERRIDE: 1,
  FOWNER: 3,
  KILL: 5,
  SETGID: 6,
  SETUID: 7,
  SYS_ADMIN: 21,
}

const SYS_RESOURCE = 24

/** Fails closed: root of a container is often root in name only. */
export function throwOnMissingCapabilities(): void {
  const missing = missingCapabilities(readFileSync('/proc/self/status', 'utf8'))
  if (missing.length > 0)
    throw new AirlockError('isolation_unavailable', `This process lacks capabilities: ${missing.join(', ')}.`, {
      hint: 'A container is given them by name: see docs/deploy.md.',
    })
}

/** Of those that are needed, the ones that a process with this status has not. */
export function missingCapabilities(status: string): readonly string[] {
  return Object.entries(NEEDED)
    .filter(([, number]) => !holds(status, number))
    .map(([name]) => name)
}

function holds(status: string, number: number): boolean {
  const held = BigInt(`0x${/^CapEff:\s*([0-9a-f]+)$/mu.exec(status)?.[1] ?? '0'}`)
  return ((held >> BigInt(number)) & 1n) === 1n
}

/** The kernel lets nobody else make a mounted file system larger. */
export function mayResizeDisks(status: string): boolean {
  return holds(status, SYS_RESOURCE)
}

export function neededCapabilities(): readonly string[] {
  return Object.keys(NEEDED)
}
