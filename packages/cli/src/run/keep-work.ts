import type { Sandbox } from '@airlock/sdk'
import { sanitizeLine } from '../text/sanitize.ts'
import type { Terminal } from '../text/terminal.ts'
import { renderDiff } from '../text/worktree-text.ts'

/** Notes have no colours. */
const PLAIN: Pick<Terminal, 'style'> = { style: (_style, text) => text }

/** Whether a sandbox must live on because its worktree holds work that would be gone with it; says how to get at that. */
export async function keepsWork(terminal: Terminal, sandbox: Sandbox): Promise<boolean> {
  if (!sandbox.data.mounts.some(({ mode }) => mode === 'worktree')) return false
  try {
    const diff = await sandbox.worktree.diff()
    if (diff.changes.length === 0) return false
    for (const line of renderDiff(PLAIN, diff).split('\n')) terminal.note(line)
  } catch (error) {
    // What cannot be read may still be work.
    terminal.note(`The worktree could not be read: ${sanitizeLine(error instanceof Error ? error.message : '')}`)
  }
  terminal.note(`The sandbox is kept until ${sandbox.data.expiresAt}, or its next use and its TTL.`)
  terminal.note(`Export: airlock worktree export ${sandbox.id} --branch NAME`)
  terminal.note(`Discard: airlock terminate ${sandbox.id}`)
  return true
}
