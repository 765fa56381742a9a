import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { inject } from 'vitest'
import { processesOf } from './leftovers.ts'
import type { Reachable, TestServer } from './server.ts'

export interface BorrowedServer extends Reachable, Pick<TestServer, 'processesOf' | 'logs'> {
  /** Ends the sandboxes that are left. The server goes on, for the next file. */
  giveBack(): Promise<void>
}

/**
 * A server that files of tests use one after the other, never two at once: for whoever wants default settings, kills no process
 * that does not come back, and changes nothing that it does not change back. `rules`: whether the shipped rules are in force.
 */
export async function borrowServer(rules: 'shipped' | 'off' = 'shipped'): Promise<BorrowedServer> {
  const server = (await ask(`/borrow?of=${rules}`)) as Reachable
  const { home } = server
  return {
    ...server,
    processesOf: (sandbox) => processesOf(home, sandbox),
    logs: () => readFileSync(join(home, 'logs/airlock.log'), 'utf8'),
    giveBack: async () => void (await ask(`/return?of=${encodeURIComponent(home)}`)),
  }
}

async function ask(path: string): Promise<unknown> {
  const answer = await fetch(`${inject('serverDesk')}${path}`)
  if (!answer.ok) throw new TypeError(await answer.text())
  return answer.json()
}
