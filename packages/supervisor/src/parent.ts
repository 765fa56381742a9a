import { basename } from 'node:path'
import type { Environment } from './config.ts'
import { identify, leadsSession, lives } from './process-identity.ts'

const LOOK_MS = 250

/**
 * Calls `onGone` once that process has ended, in whatever way: SIGKILL leaves it no time to tell us. A process that is
 * gone already is found at the first look, which is never inside of this call.
 */
export function watchParent(pid: number, onGone: () => void): () => void {
  const parent = identify(pid)
  const timer = setInterval(() => {
    if (parent !== undefined && lives(parent)) return
    clearInterval(timer)
    onGone()
  }, LOOK_MS)
  timer.unref()
  return () => clearInterval(timer)
}

/**
 * The process that runs us for npm, when npm runs us: npm passes signals on to its shell alone, which does not pass them
 * on to us. None when we were sent away on purpose: by `setsid`, or by a shell that did not wait for us.
 */
export function findParent(env: Environment): number | undefined {
  const left = process.ppid <= 1 || leadsSession()
  return env['npm_lifecycle_event'] === undefined || left ? undefined : process.ppid
}

/** Node takes back what `nohup` asks for, which shells tell by the name of the command that they ran. */
export function hangupOf(env: Environment): 'leave' | 'ignore' {
  return basename(env['_'] ?? '') === 'nohup' ? 'ignore' : 'leave'
}
