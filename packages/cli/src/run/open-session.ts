import { SESSION_TEMPLATES } from '@airlock/contract/defaults'
import { AirlockError, type Airlock, type CreateOptions, type Runtime, type Session } from '@airlock/sdk'
import { copyAllIn } from './copy-files.ts'
import { findSandbox } from './find-sandbox.ts'
import { needsData } from './needs-data.ts'
import { prepareTemplate } from './prepare-template.ts'
import { withProgress } from '../text/progress.ts'
import type { Terminal } from '../text/terminal.ts'

export interface SessionPlan {
  readonly runtime: Runtime
  /** The id or name of a sandbox that is there. */
  readonly sandbox: string | undefined
  readonly create: CreateOptions
  /** All that will run, where that is known. */
  readonly code: string | undefined
  readonly env: Readonly<Record<string, string>>
  readonly ttlMs: number | undefined
  /** Local files and directories to copy into /workspace first. */
  readonly files: readonly string[]
  /** Leaves nothing of them out. */
  readonly all: boolean
  readonly json: boolean
  /** Gives up what takes long. */
  readonly signal: AbortSignal
}

/** Starts an interpreter, in a sandbox that is there or in a new one; a template that is missing is installed first. */
export async function openSession(terminal: Terminal, airlock: Airlock, plan: SessionPlan): Promise<Session> {
  const sandbox = plan.sandbox === undefined ? undefined : (await findSandbox(airlock, plan.sandbox)).id
  const create = await planSandbox(terminal, airlock, plan)
  const start = async (): Promise<Session> =>
    airlock.sessions.create({
      runtime: plan.runtime,
      env: { ...plan.env },
      ...(plan.ttlMs === undefined ? {} : { ttlMs: plan.ttlMs }),
      ...(sandbox === undefined ? { create } : { sandbox }),
    })
  const session = await withProgress(terminal, () => `Starting ${plan.runtime}`, start)
  try {
    await copyAllIn({ terminal, json: plan.json }, session.files, { paths: plan.files, all: plan.all })
    return session
  } catch (error) {
    await session.terminate()
    throw error
  }
}

/** A person at a prompt may import anything; code says what it imports. */
function templateFor({ runtime, code, files }: SessionPlan): string | undefined {
  if (runtime !== 'python') return undefined
  return code === undefined || needsData(code, files) ? SESSION_TEMPLATES.python : BASE
}

/** Always there. */
const BASE = 'base'

async function planSandbox(terminal: Terminal, airlock: Airlock, plan: SessionPlan): Promise<CreateOptions> {
  if (plan.sandbox !== undefined) return {}
  const template = plan.create.template ?? templateFor(plan)
  if (template === undefined) return plan.create
  if (template === BASE) return { ...plan.create, template }
  try {
    await prepareTemplate(terminal, airlock, { name: template, signal: plan.signal })
  } catch (cause) {
    if (!(cause instanceof AirlockError) || plan.create.template !== undefined || cause.code !== 'template_failed')
      throw cause
    const hint = `${cause.hint} "--template base" goes without its packages.`
    throw new AirlockError(cause.code, cause.message, { cause, hint })
  }
  return { ...plan.create, template }
}
