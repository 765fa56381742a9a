import { readFileSync } from 'node:fs'
import type { TestServer } from './server.ts'

/** Stops the guest of a sandbox, as a host without a free processor would. Returns how to let it go on. */
export function suspendGuest(server: Pick<TestServer, 'processesOf'>, sandbox: string): () => void {
  const guest = server.processesOf(sandbox).find(isGuest)
  if (guest === undefined) throw new TypeError(`there is no guest of ${sandbox}`)
  process.kill(guest, 'SIGSTOP')
  return () => void process.kill(guest, 'SIGCONT')
}

/** The first process of a sandbox is a shell that names the guest as well. */
function isGuest(pid: number): boolean {
  const [program = '', ...args] = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')
  return program.endsWith('/node') && args.some((arg) => arg.endsWith('/guest.cjs'))
}
