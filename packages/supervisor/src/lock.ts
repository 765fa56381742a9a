import { closeSync, existsSync, openSync, truncateSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { AirlockError } from '@airlock/contract'

export interface InstanceLock {
  release(): void
}

/** SQLite: another connection holds the lock; the file is no database. */
const [BUSY, NO_DATABASE] = [5, 26]

/**
 * One Airlock per state directory. The lock is an exclusive transaction, so the kernel drops it when this process
 * dies in whatever way: there is no stale lock to remove.
 */
export function takeInstanceLock(stateDir: string): InstanceLock {
  const path = join(stateDir, 'airlock.lock')
  if (!existsSync(path)) closeSync(openSync(path, 'a', 0o600))
  try {
    return takeLock(path)
  } catch (error) {
    if (codeOf(error) !== NO_DATABASE) throw refusal(path, error)
  }
  // SQLite locks before it reads, so no other Airlock holds a file that was read. The inode stays: two that empty it at once
  // still exclude each other.
  truncateSync(path)
  try {
    return takeLock(path)
  } catch (error) {
    throw refusal(path, error)
  }
}

function takeLock(path: string): InstanceLock {
  const database = new DatabaseSync(path, { timeout: 0 })
  try {
    database.exec('BEGIN EXCLUSIVE')
  } catch (error) {
    database.close()
    throw error
  }
  return { release: () => database.close() }
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && 'errcode' in error ? error.errcode : undefined
}

function refusal(path: string, cause: unknown): AirlockError {
  if (codeOf(cause) === BUSY)
    return new AirlockError('already_running', `Another Airlock uses ${dirname(path)}.`, { cause })
  const why = cause instanceof Error ? cause.message : String(cause)
  return new AirlockError('state_damaged', `${path} is damaged: ${why}.`, { cause })
}
