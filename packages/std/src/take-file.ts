import { readFileSync, unlinkSync } from 'node:fs'

/**
 * What stands in a file after `start`, and removes the file: of several who ask, one gets it. Undefined, and the file
 * stays, when it begins otherwise or is not there.
 */
export function takeFile(path: string, start: string): string | undefined {
  try {
    const text = readFileSync(path, 'utf8')
    if (!text.startsWith(start)) return undefined
    unlinkSync(path)
    return text.slice(start.length)
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw error
  }
}
