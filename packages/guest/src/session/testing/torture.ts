import { setTimeout as delay } from 'node:timers/promises'
import type { GuestRuntime } from '@airlock/contract/guest'

/**
 * What code may do to the session that runs it. Every runtime has an answer to every row: code that does it, or why it
 * cannot. After each attack the next step returns its own result and nothing else, or says that the interpreter was
 * started anew, and the one after it does.
 */
export const TORTURES = [
  'prints on every fd',
  'prints bytes that are no text',
  'prints control characters',
  'prints 64 MB without a newline',
  'opens its streams again by name',
  'reads its stdin beyond the end',
  'exits with a status',
  'exits behind the back of the interpreter',
  'dies of a signal',
  'replaces itself by another program',
  'forks and prints later',
  'forks and lets the child run on',
  'leaves a daemon that holds its streams',
  'leaves a thread or timer that prints',
  'leaves a thread or timer that throws',
  'closes its streams',
  'closes every fd',
  'replaces its output streams',
  'patches what the driver may need',
  'installs signal handlers',
  'registers exit handlers',
  'recurses without end',
  'throws what cannot be shown',
  'changes its environment and directory',
  'forges a result of its own',
  'forges a result of another step',
  'breaks the framing of the channel',
  'is interrupted in a busy loop',
  'is interrupted while it waits for a child',
  'runs out of time',
  'runs out of time and ignores interrupts',
] as const
export type Torture = (typeof TORTURES)[number]

export interface Attack {
  readonly code: string
  readonly stdin?: string
  readonly timeoutMs?: number
  /** Interrupted so long after its start. */
  readonly interruptAfterMs?: number
  /** The next step waits, so that whatever comes late would be in it. */
  readonly isLate?: boolean
  /** What the attacking step itself must say, as far as it is certain. */
  readonly expected?: Partial<TortureResult>
  /** `kept`: the state must survive. `gone`: it must not, and this was said. Else either, as long as it is said. */
  readonly state?: 'kept' | 'gone'
}

/** By its row; a text says why the runtime has none. */
export type Attacks = Readonly<Record<Torture, Attack | string>>

export interface TortureResult {
  readonly status: 'completed' | 'failed'
  readonly stdout: string
  readonly stderr: string
  /** The name of the error. */
  readonly error: string | null
  readonly restarted: boolean
}

/** A session, in the guest or through the product. */
export interface TortureTarget {
  run(code: string, options: { readonly stdin?: string; readonly timeoutMs?: number }): Promise<TortureResult>
  interrupt(): Promise<void>
}

export interface TortureReport {
  readonly attack: TortureResult
  /** Of the attack, or of the step after it. */
  readonly saidRestarted: boolean
  readonly state: 'kept' | 'gone'
  /** The step that had to be intact, and what it should have been. */
  readonly next: TortureResult
  readonly wanted: TortureResult
}

/** Runs one attack in a session that remembers something, and asks afterwards. */
export async function torture(runtime: GuestRuntime, target: TortureTarget, attack: Attack): Promise<TortureReport> {
  const words = WORDS[runtime]
  await target.run(words.remember, {})
  const { code, stdin, timeoutMs, interruptAfterMs } = attack
  const limits = { ...(stdin === undefined ? {} : { stdin }), ...(timeoutMs === undefined ? {} : { timeoutMs }) }
  const running = target.run(code, limits)
  if (interruptAfterMs !== undefined) {
    await delay(interruptAfterMs)
    await target.interrupt()
  }
  const result = await running
  const first = await target.run(words.ask('one', attack.isLate ?? false), {})
  const isIntact = first.status === 'completed' && /^one (?:kept)?\n$/u.test(first.stdout) && first.stderr === ''
  const state = first.stdout.includes('kept') ? 'kept' : 'gone'
  const saidRestarted = result.restarted || first.restarted
  if (isIntact) return { attack: result, saidRestarted, state, next: first, wanted: { ...first, error: null } }
  const second = await target.run(words.ask('two', false), {})
  const wanted = { status: 'completed', stdout: 'two \n', stderr: '', error: null, restarted: false } as const
  return { attack: result, saidRestarted: first.restarted, state: 'gone', next: second, wanted }
}

/** Facts that hold for every attack and every runtime; empty when they do. */
export function brokenPromises(attack: Attack, report: TortureReport): readonly string[] {
  const { state, saidRestarted } = report
  const broken: string[] = []
  if (state === 'gone' && !saidRestarted) broken.push('the state is gone, and nobody said so')
  if (state === 'kept' && saidRestarted) broken.push('a restart was claimed, and there was none')
  if (attack.state !== undefined && attack.state !== state) broken.push(`the state is ${state}`)
  return broken
}

interface Words {
  readonly remember: string
  ask(word: string, isSlow: boolean): string
}

/** A slow one leaves time for whoever is late. */
const WORDS: Readonly<Record<GuestRuntime, Words>> = {
  python: {
    remember: 'kept = "kept"',
    ask: (word, isSlow) =>
      `${isSlow ? 'import time; time.sleep(0.6)\n' : ''}print("${word}", globals().get("kept", ""))`,
  },
  node: {
    remember: 'var kept = "kept"',
    ask: (word, isSlow) =>
      `${isSlow ? 'await new Promise((resolve) => setTimeout(resolve, 600));' : ''}process.stdout.write("${word} " + (typeof kept === "string" ? kept : "") + "\\n"); undefined`,
  },
  bash: {
    remember: 'kept=kept',
    ask: (word, isSlow) => `${isSlow ? 'sleep 0.6; ' : ''}echo "${word} $kept"`,
  },
}
