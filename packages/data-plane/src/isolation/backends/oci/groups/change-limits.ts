import { AirlockError } from '@airlock/contract'
import { readFile, writeFile } from 'node:fs/promises'
import { isSystemError } from '../system-error.ts'
import type { GroupWrite } from './groups.ts'

/**
 * Writes all of them, in this order, or leaves things as they were. Not synchronous: the kernel may have to take memory back
 * before it takes a lower limit. What it will not take because it is in use is `limit_in_use`.
 */
export async function writeAllOrNone(writes: readonly GroupWrite[]): Promise<void> {
  const before: GroupWrite[] = []
  try {
    for (const [file, value] of writes) {
      before.unshift([file, (await readFile(file, 'utf8')).trim()])
      await put(file, value)
    }
  } catch (error) {
    // Newest first, so that one that depends on another never stands without it.
    for (const [file, value] of before) await put(file, value)
    if (isSystemError(error, 'ENOENT', 'ENODEV')) throw new AirlockError('sandbox_ended', undefined, { cause: error })
    throw isSystemError(error, 'EBUSY') ? inUse(error) : error
  }
}

export function inUse(cause?: unknown): AirlockError {
  return new AirlockError('limit_in_use', 'The sandbox uses more memory than that.', { cause })
}

/** The file must exist: an open that creates would be refused with a misleading reason. */
async function put(file: string, value: string): Promise<void> {
  await writeFile(file, value, { flag: 'r+' })
}
