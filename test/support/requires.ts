import { execFileSync } from 'node:child_process'
import { accessSync, constants } from 'node:fs'
import { answersGoProxy, findGo } from './go.ts'
import { postgresPrograms } from './postgres.ts'
import { answersPythonIndex, hasVenv } from './python.ts'

declare module 'vitest' {
  interface TaskMeta {
    skipReason?: string
  }
}

/** What a machine may lack. */
export type Requirement =
  | 'root'
  | 'crun'
  | 'runc'
  | 'runsc'
  | 'python3'
  | 'python3-venv'
  | 'python-index'
  | 'bash'
  | 'chromium'
  | 'openssl'
  | 'postgres'
  | 'node20'
  | 'dockerd'
  | 'docker-compose'
  | 'debootstrap'
  | 'apt-get'
  | 'npm'
  | 'git'
  | 'gcc'
  | 'make'
  | 'sqlite3'
  | 'strace'
  | 'go'
  | 'go-proxy'
  | 'qemu-system-x86_64'

/**
 * Options for `it` or `describe` that skip it, with the reason, on a machine that lacks something:
 * `describe('…', requires('root', 'crun'), () => {})`. Such a skip fails `.ci/run` if it installs what is lacking.
 */
export function requires(...requirements: readonly Requirement[]): { skip?: true; meta?: { skipReason: string } } {
  const lacking = requirements.filter((requirement) => !isThere(requirement))
  return lacking.length === 0 ? {} : { skip: true, meta: { skipReason: `needs ${lacking.join(', ')}` } }
}

const DIRECTORIES = ['/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin', '/sbin', '/bin']

function isThere(requirement: Requirement): boolean {
  if (requirement === 'root') return process.getuid?.() === 0
  if (requirement === 'node20') return findNode20() !== undefined
  if (requirement === 'postgres') return postgresPrograms() !== undefined
  if (requirement === 'go') return findGo() !== undefined
  if (requirement === 'go-proxy') return answersGoProxy()
  if (requirement === 'python3-venv') return hasVenv()
  if (requirement === 'python-index') return hasVenv() && answersPythonIndex()
  return DIRECTORIES.some((directory) => isExecutable(`${directory}/${requirement}`))
}

/** A Node of the system that is as old as users may have. */
export function findNode20(): string | undefined {
  return DIRECTORIES.map((directory) => `${directory}/node`)
    .filter(isExecutable)
    .find((path) => execFileSync(path, ['--version'], { encoding: 'utf8' }).startsWith('v20.'))
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    // Not there, or not for us: both are "lacking".
    return false
  }
}
