import { closeSync, existsSync, openSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { AirlockError } from '@airlock/contract'

export interface InstanceLock {
  release(): void
}

/**
 * One Airlock per state directory. The lock is an exclusive transaction, so the kernel drops it when this process
 * dies in whatever way: there is no stale lock to remove.
 */
export function takeInstanceLock(stateDir: string): InstanceLock {
  const path = join(stateDir, 'airlock.lock')
  if (!existsSync(path)) closeSync(openSync(path, 'a', 0o600))
  const database = new DatabaseSync(path, { timeout: 0 })
  try {
    database.exec('BEGIN EXCLUSIVE')
  } catch (cause) {
    database.close()
    throw new AirlockError('already_running', `Another Airlock uses ${stateDir}.`, { cause })
  }
  return { release: () => database.close() }
}
