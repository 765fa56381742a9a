import { AirlockError } from '@airlock/contract'
import { execFile } from 'node:child_process'
import { accessSync, constants } from 'node:fs'
import { join } from 'node:path'

/** Where programs of the host are looked up, whatever environment we were started with. */
const HOST_PATH = ['/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin', '/sbin', '/bin'] as const

export const HOST_ENV = { PATH: HOST_PATH.join(':'), LC_ALL: 'C' } as const

export interface ToolResult {
  readonly exitCode: number
  readonly stdout: string
  readonly stderr: string
}

/** Runs a program of the host to its end. Bounded in time and output; a failure to start is exit code 127. */
export async function runTool(file: string, args: readonly string[], timeoutMs = 10_000): Promise<ToolResult> {
  return await new Promise((resolve) => {
    const options = { env: HOST_ENV, timeout: timeoutMs, maxBuffer: 1024 * 1024, killSignal: 'SIGKILL' as const }
    execFile(file, args, options, (error, stdout, stderr) => {
      const code = error ? (typeof error.code === 'number' ? error.code : 127) : 0
      resolve({ exitCode: code, stdout, stderr: stderr || (error?.message ?? '') })
    })
  })
}

export function findTool(name: string): string | undefined {
  const candidates = name.includes('/') ? [name] : HOST_PATH.map((dir) => join(dir, name))
  return candidates.find((path) => isExecutable(path))
}

export function requireTool(name: string, debianPackage: string): string {
  const found = findTool(name)
  if (found !== undefined) return found
  throw new AirlockError('isolation_unavailable', `The program "${name}" is missing.`, {
    hint: `apt-get install ${debianPackage}`,
  })
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    // Not there, or not for us: either way not usable.
    return false
  }
}
