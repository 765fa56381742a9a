import { DEFAULTS } from '@airlock/contract/defaults'
import type { Runtime } from '@airlock/sdk'
import type { Context } from '../context.ts'
import type { CodeOptions } from '../options/code-options.ts'
import { Repl } from '../repl/repl.ts'
import { withSession } from './with-session.ts'

/** Whoever sits at a prompt ends it with Ctrl-C. */
const PROMPT_TIMEOUT_MS = DEFAULTS.commandTimeoutMs.max

/** A conversation with an interpreter, until Ctrl-D. */
export async function openPrompt(
  context: Context,
  { runtime, options }: { readonly runtime: Runtime; readonly options: CodeOptions },
): Promise<number> {
  const step = { timeoutMs: options.timeout ?? PROMPT_TIMEOUT_MS }
  return withSession(context, { runtime, options, code: undefined }, async (session, interrupts) => {
    context.terminal.note(`${session.data.runtimeVersion} in ${session.data.sandbox}. Ctrl-D leaves.`)
    return new Repl(context.terminal, session, { options: step, interrupts }).run()
  })
}
