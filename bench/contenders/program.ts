import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { accessSync, constants } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'

const DIRECTORIES = ['/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin', '/sbin', '/bin']

/** Runs a program to its end and answers what it printed. Throws when it fails. */
export async function runProgram(file: string, args: readonly string[]): Promise<string> {
  const child = spawn(file, args, { stdio: ['ignore', 'pipe', 'pipe'] })
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
  if (code !== 0) throw new TypeError(`${file} ended with ${String(code)}: ${stderr.trim().slice(-500)}`)
  return stdout
}

/** Runs one whose children may hold its output open: it is over when it exits. */
export async function startDetached(file: string, args: readonly string[]): Promise<void> {
  const child = spawn(file, args, { stdio: 'ignore' })
  const [code] = await once(child, 'exit')
  if (code !== 0) throw new TypeError(`${file} ended with ${String(code)}.`)
}

export function findProgram(name: string): string | undefined {
  return DIRECTORIES.map((directory) => join(directory, name)).find((path) => {
    try {
      accessSync(path, constants.X_OK)
      return true
    } catch {
      // Not there.
      return false
    }
  })
}
