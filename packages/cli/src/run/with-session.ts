import type { Runtime, Session } from '@airlock/sdk'
import type { CodeOptions } from '../options/code-options.ts'
import { waitingAirlock } from '../options/command-options.ts'
import type { Context } from '../context.ts'
import { Interrupts } from './interrupts.ts'
import { openSession } from './open-session.ts'
import { inThrowAway } from './throw-away.ts'
import { withProgress } from '../text/progress.ts'
import { toCreateOptions } from '../options/sandbox-options.ts'
import type { JsonOption } from '../verb.ts'

/** A person at a prompt thinks longer than a program. */
const LASTING_TTL_MS = 60 * 60_000

/** Opens a session for some code, or for a prompt, and ends it afterwards, with the sandbox that was made for it. */
export async function withSession(
  { terminal }: Context,
  how: { readonly runtime: Runtime; readonly options: CodeOptions & JsonOption; readonly code: string | undefined },
  work: (session: Session, interrupts: Interrupts) => Promise<number>,
): Promise<number> {
  const { runtime, options } = how
  using interrupts = new Interrupts()
  const session = await openSession(terminal, waitingAirlock(options), {
    runtime,
    sandbox: options.sandbox,
    create: { ...toCreateOptions(options), ephemeral: how.code !== undefined },
    code: how.code,
    env: options.env ?? {},
    ttlMs: options.ttl ?? (how.code === undefined ? LASTING_TTL_MS : undefined),
    files: options.with ?? [],
    all: options.all === true,
    json: options.json === true,
    signal: interrupts.asked,
  }).catch((error: unknown) => {
    interrupts.throwIfAsked()
    throw error
  })
  try {
    interrupts.throwIfAsked()
    const begin = async (): Promise<number> => work(session, interrupts)
    return await (options.sandbox === undefined ? inThrowAway(begin) : begin())
  } finally {
    await withProgress(
      terminal,
      () => `Ending ${session.id}`,
      async () => session.terminate(),
    )
  }
}
