import type { PolicyDocumentInput } from '@airlock/contract'
import { Airlock, type AirlockError, type CommandOptions, type Sandbox } from '@airlock/sdk'
import { deadline, waitFor } from '@airlock/std'
import { DatabaseSync } from 'node:sqlite'
import { expect } from 'vitest'
import type { TestServer } from '../support/server.ts'

type Rules = PolicyDocumentInput['rules']
type Rule = Rules[number]

/** The rules that the tests of approvals ask by. What they ask for leaves a trace that can be counted. */
export const RULES: Rules = [
  { ...ask('append', 'high'), kind: 'command', match: { programs: ['tee'] } },
  { ...ask('fatal', 'critical'), kind: 'command', match: { programs: ['critical-thing'] } },
  { ...ask('code', 'medium'), kind: 'code', match: { pattern: 'ask_me' }, examples: { match: ['ask_me=1'] } },
  { ...ask('upload', 'medium'), kind: 'file', match: { actions: ['write'], paths: ['**/asked-*'] } },
  { ...ask('many-processes', 'low'), kind: 'quota', match: { over: { pids: 300 } } },
  { ...ask('extend', 'low'), kind: 'operation', match: { points: ['sandbox.extend'] } },
]

function ask(id: string, risk: Rule['risk']): Pick<Rule, 'id' | 'effect' | 'risk' | 'reason'> {
  return { id, effect: 'ask', risk, reason: `The tests ask about ${id}.` }
}

/** The same, but one of them denies. */
export function denying(id: string): Rules {
  return RULES.map((rule): Rule => (rule.id === id ? { ...rule, effect: 'deny' } : rule))
}

/** A server's principals, and what tests do again and again. */
export class Asking {
  readonly server: TestServer
  readonly admin: Airlock
  readonly developer: Airlock
  readonly operator: Airlock

  constructor(server: TestServer, operator: Airlock) {
    this.server = server
    this.admin = new Airlock({ url: server.url, apiKey: server.adminKey })
    this.developer = new Airlock({ url: server.url, apiKey: server.developerKey })
    this.operator = operator
  }

  static async on(server: TestServer): Promise<Asking> {
    const admin = new Airlock({ url: server.url, apiKey: server.adminKey })
    const { secret } = await admin.keys.create({ name: 'operator', role: 'operator' })
    const asking = new Asking(server, new Airlock({ url: server.url, apiKey: secret }))
    await asking.policy()
    return asking
  }

  /** The rules in force, with changes. */
  async policy(rules: Rules = RULES): Promise<void> {
    await this.admin.policies.put({ name: 'asks', rules })
  }

  async key(options: Omit<Parameters<Airlock['keys']['create']>[0], 'name'>): Promise<Airlock> {
    return this.with((await this.admin.keys.create({ name: 'extra', ...options })).secret)
  }

  with(apiKey: string, waitApprovalS?: number): Airlock {
    return new Airlock({ url: this.server.url, apiKey, waitApprovalS })
  }

  /** The sandbox as a developer who waits for the answers to what is asked. */
  async waiting(sandbox: Sandbox): Promise<Sandbox> {
    return this.with(this.server.developerKey, 60).sandboxes.get(sandbox.id)
  }

  /** The newest ask, once it is there. */
  async pending(sandbox: Sandbox): Promise<string> {
    return waitFor(
      async () => (await this.admin.approvals.list()).items.find((one) => one.sandbox === sandbox.id)?.id,
      { signal: deadline(20_000), everyMs: 20 },
    )
  }

  /** Moves the end of an approval into the past, as time would. */
  expire(id: string): void {
    const store = new DatabaseSync(`${this.server.home}/control-plane/airlock.db`, { timeout: 10_000 })
    try {
      store.prepare('update approvals set expires_at = ? where id = ?').run(Date.now() - 1, id)
    } finally {
      store.close()
    }
  }
}

/** Appends one line to a file of the sandbox, which must be asked for. */
export async function append(sandbox: Sandbox, options: CommandOptions = {}, file = 'log'): Promise<void> {
  await sandbox.run(['tee', '-a', `/workspace/${file}`], { stdin: { text: 'x\n' }, ...options })
}

/** How often it was appended to. */
export async function appended(sandbox: Sandbox, file = 'log'): Promise<number> {
  const { stdout } = await sandbox.run(['sh', '-c', `cat /workspace/${file} 2>/dev/null | wc -l`])
  return Number(stdout)
}

/** The id of the approval that something needs. */
export async function needed(work: Promise<unknown>): Promise<string> {
  const error = await refusal(work)
  expect(error).toMatchObject({ code: 'approval_required', status: 428 })
  expect(error.approval).toMatch(/^apr_/)
  return error.approval ?? ''
}

export async function refusal(work: Promise<unknown>): Promise<AirlockError> {
  return work.then(
    () => expect.unreachable('it was not refused'),
    (error: unknown) => error as AirlockError,
  )
}
