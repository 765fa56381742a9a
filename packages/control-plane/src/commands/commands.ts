import type { Written } from '@airlock/audit'
import {
  AirlockError,
  type Command,
  type CommandEvent,
  type Decision,
  isAirlockError,
  type NodeCommandSpec,
  type Operation,
  type RunCommandBody,
  type SignalName,
} from '@airlock/contract'
import { newId, untilAborted } from '@airlock/std'
import {
  type CommandEnd,
  deleteCommand,
  findCommand,
  insertCommand,
  listCommands,
  type StoredCommand,
} from '../store/commands.ts'
import type { StoredSandbox } from '../store/sandboxes.ts'
import type { Activity } from '../sandboxes/activity.ts'
import { insidePath } from '../sandboxes/asked-paths.ts'
import type { CommandWatch } from './command-watch.ts'
import type { Context } from '../app/context.ts'
import { type Caller, type Page, toPage } from '../app/caller.ts'
import { allCommandEvents, commandEvents, type EventOutput } from './command-events.ts'
import type { CommandRef } from './command-ref.ts'
import { boundTimeout, deedOf, doRecorded, type Governed, saying } from '../evidence/evidence.ts'
import { toCommand } from '../sandboxes/nouns.ts'
import { type OpenOutput, RecordedRuns, type RunHandle } from './recorded-run.ts'
import { assertHere, inSandbox, ownedSandbox, readableSandbox, usableSandbox } from '../sandboxes/owned-sandbox.ts'

interface Parts {
  readonly activity: Activity
  readonly watch: CommandWatch<StoredCommand, CommandEnd>
}

/** Commands in sandboxes: asked for, recorded, started, followed. */
export class Commands {
  readonly #context: Context
  readonly #parts: Parts
  readonly #runs: RecordedRuns<StoredCommand, CommandEnd>

  constructor(context: Context, parts: Parts) {
    this.#context = context
    this.#parts = parts
    this.#runs = new RecordedRuns(context, parts.watch)
  }

  /**
   * Resolves once the data plane has it; from then on it is followed to its end, by the caller until `follow` aborts. `id`: a new one
   * that its maker has written down. `eventOutput`: it gets an output for events beside stdout and stderr.
   */
  async run(
    caller: Caller,
    sandboxId: string,
    asked: RunCommandBody & { readonly id?: string; readonly follow?: AbortSignal; readonly eventOutput?: true },
  ): Promise<RunHandle<Command, CommandEvent>> {
    const { id = newId('cmd', this.#context.clock.now()), follow, ...body } = asked
    const sandbox = await usableSandbox(this.#context, caller, sandboxId)
    const { row, deed, timeoutMs } = await this.#pass(caller, sandbox, { body, id })
    // Never fails, and nobody needs it on disk before the command runs.
    void this.#parts.activity.touch(sandbox)
    const { open } = await this.#runs.begin(
      {
        row,
        deed,
        record: async () => this.#record(deed),
        insert: async () => this.#insert(row),
        forget: async () => this.#context.store.query((db) => deleteCommand(db, row.id)),
        waitsForDisk: true,
        give: async (letGo) => this.#give(row, { ...body, timeoutMs }, follow && letGo),
        explain: async (error) => this.#explain(row.sandbox, error),
      },
      follow,
    )
    const reading = { from: 0, follow: true, signal: follow ?? new AbortController().signal }
    return { noun: toCommand(row), events: commandEvents(this.#followed(row, open), reading) }
  }

  /** What was said from `from` on; with `follow`, until the command has ended and its output is complete. */
  async *events(
    caller: Caller,
    of: CommandRef,
    asked: { readonly from: number; readonly follow: boolean; readonly signal: AbortSignal },
  ): AsyncGenerator<CommandEvent> {
    yield* commandEvents(this.#followed(await this.#readable(caller, of), undefined), asked)
  }

  /** The same with the bytes of its event output. */
  async *allEvents(
    caller: Caller,
    of: CommandRef,
    asked: { readonly from: number; readonly follow: boolean; readonly signal: AbortSignal },
  ): AsyncGenerator<CommandEvent | EventOutput> {
    yield* allCommandEvents(this.#followed(await this.#readable(caller, of), undefined), asked)
  }

  async wait(caller: Caller, of: CommandRef, signal: AbortSignal): Promise<Command> {
    const row = await this.#find(caller, of)
    if (row.state !== 'running') return toCommand(row)
    await assertHere(this.#context, await ownedSandbox(this.#context.store, caller, of.sandbox))
    return toCommand(await untilAborted(this.#parts.watch.watch(row), signal))
  }

  async list(
    caller: Caller,
    sandbox: string,
    page: { readonly limit: number; readonly cursor?: string | undefined },
  ): Promise<Page<Command>> {
    const { id } = await ownedSandbox(this.#context.store, caller, sandbox)
    const filter = { sandbox: id, before: page.cursor, limit: page.limit + 1 }
    const rows = await this.#context.store.query((db) => listCommands(db, filter))
    return toPage(rows, page.limit, toCommand)
  }

  async get(caller: Caller, of: CommandRef): Promise<Command> {
    return toCommand(await this.#find(caller, of))
  }

  /** All that it said, where that was more than it was to say. Outlives the sandbox. */
  async fullOutput(
    caller: Caller,
    of: CommandRef,
    signal: AbortSignal,
  ): Promise<{ readonly size: number; readonly bytes: AsyncIterable<Buffer> }> {
    const { id, fullOutput } = await this.#find(caller, of)
    await assertHere(this.#context, await ownedSandbox(this.#context.store, caller, of.sandbox))
    return this.#context.dataPlane.fullOutput({ command: id, bytes: fullOutput?.bytes }, signal)
  }

  async signal(caller: Caller, of: CommandRef, name: SignalName): Promise<void> {
    const payload = { command: of.command, signal: name }
    const deed = await this.#passIn(caller, of, { point: 'command.signal', payload })
    const { store, dataPlane } = this.#context
    await doRecorded(this.#context, deed, async () => ({
      value: await inSandbox(store, of.sandbox, () => dataPlane.signal(of, name)),
    }))
  }

  async writeStdin(
    caller: Caller,
    of: CommandRef,
    input: { readonly bytes: AsyncIterable<Buffer>; readonly end: boolean },
  ): Promise<void> {
    const payload = { command: of.command, end: input.end }
    const deed = await this.#passIn(caller, of, { point: 'command.stdin', payload })
    const { store, dataPlane } = this.#context
    const { decision } = await this.#find(caller, of)
    // Nobody saw this input. The end of an input that is empty is none.
    const bytes = decision && isApproved(decision) ? refuseBytes(input.bytes) : input.bytes
    await doRecorded(this.#context, deed, async () => {
      const counted = countBytes(bytes)
      await inSandbox(store, of.sandbox, () => dataPlane.writeStdin(of, { bytes: counted.bytes, end: input.end }))
      return { value: undefined, payload: { bytes: counted.count() } }
    })
  }

  async #readable(caller: Caller, of: CommandRef): Promise<StoredCommand> {
    await readableSandbox(this.#context, caller, of.sandbox)
    const row = await this.#context.store.query((db) => findCommand(db, of))
    if (!row) throw new AirlockError('command_not_found')
    return row
  }

  async #record(deed: Governed): Promise<Written> {
    const { audit, failpoint } = this.#context
    await audit.require({ ...deed, status: 'requested' })
    await failpoint('command.recorded')
    return { durable: Promise.resolve() }
  }

  async #insert(row: StoredCommand): Promise<StoredCommand> {
    const { store, failpoint } = this.#context
    // A host that dies takes the sandbox along, and its evidence is on disk.
    try {
      await store.quickly((db) => insertCommand(db, row))
    } catch (error) {
      throw store.isMissing(error) ? new AirlockError('sandbox_ended', undefined, { cause: error }) : error
    }
    await failpoint('command.row-written')
    return row
  }

  /** A command that is followed says everything over the call that starts it. */
  async #give(
    row: StoredCommand,
    body: RunCommandBody & { readonly eventOutput?: true },
    letGo: AbortSignal | undefined,
  ) {
    const { dataPlane, failpoint } = this.#context
    const spec = specOf(row, body)
    const output = letGo
      ? await dataPlane.runFollowed(row.sandbox, spec, letGo)
      : void (await dataPlane.run(row.sandbox, spec))
    await failpoint('command.running')
    return output
  }

  /** A guest that died before it was asked is a sandbox that the node has no more. */
  async #explain(sandbox: string, cause: unknown): Promise<unknown> {
    const isGone = isAirlockError(cause) && cause.code === 'sandbox_not_active'
    const error = isGone ? new AirlockError('sandbox_not_found', undefined, { cause }) : cause
    const thrown = async () => {
      throw error
    }
    return inSandbox(this.#context.store, sandbox, thrown).catch((meant: unknown) => meant)
  }

  #followed(row: StoredCommand, open: OpenOutput | undefined) {
    const { store, dataPlane } = this.#context
    return { store, dataPlane, watch: this.#parts.watch, row, open }
  }

  async #find(caller: Caller, of: CommandRef): Promise<StoredCommand> {
    await ownedSandbox(this.#context.store, caller, of.sandbox)
    const row = await this.#context.store.query((db) => findCommand(db, of))
    if (!row) throw new AirlockError('command_not_found')
    return row
  }

  /** What is refused is no use of the sandbox. What a policy bounds is bounded here, and on record. */
  async #pass(
    caller: Caller,
    sandbox: StoredSandbox,
    what: { readonly body: RunCommandBody; readonly id: string },
  ): Promise<{ readonly row: StoredCommand; readonly deed: Governed; readonly timeoutMs: number }> {
    const { body } = what
    const row = newRow(sandbox, { ...what, caller, now: this.#context.clock.now() })
    const { argv, cwd } = row
    const env = Object.keys(body.env)
    const { timeoutMs: asksMs, cpuTimeMs } = body
    const bounds = { env, timeoutMs: asksMs, ...(cpuTimeMs === undefined ? {} : { cpuTimeMs }) }
    const about: Operation = { kind: 'command', argv: [...argv], cwd: insidePath(cwd), ...bounds }
    const asked = deedOf(caller, sandbox, { point: 'command.run', payload: requestOf(row, body) })
    const passed = await this.#context.guardian.pass(caller, asked, about)
    this.#context.ephemeral.disturb(sandbox.id, isApproved(passed.decision))
    const timeoutMs = boundTimeout(body.timeoutMs, passed.decision)
    return { row: { ...row, decision: passed.decision }, deed: saying(passed, { timeoutMs }), timeoutMs }
  }

  /** For something with a command that runs. */
  async #passIn(caller: Caller, of: CommandRef, what: Parameters<typeof deedOf>[2]): Promise<Governed> {
    const sandbox = await usableSandbox(this.#context, caller, of.sandbox)
    if ((await this.#find(caller, of)).state !== 'running') throw new AirlockError('command_ended')
    const deed = await this.#context.guardian.pass(caller, deedOf(caller, sandbox, what))
    await this.#parts.activity.touch(sandbox)
    return deed
  }
}

/** Whether a person let it pass. */
function isApproved({ rules }: Decision): boolean {
  return rules.some(({ policy }) => policy === 'approval')
}

/** Throws at the first byte. */
async function* refuseBytes(bytes: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  for await (const chunk of bytes) {
    if (chunk.length > 0)
      throw new AirlockError('policy_denied', 'A person approved this command without input, so it gets none.', {
        hint: 'Send the input with the command, so that the approval covers it: stdin: { text } in the API, --stdin for a file of code.',
      })
    yield chunk
  }
}

/** Bytes that pass through, and how many they were. */
export function countBytes(bytes: AsyncIterable<Buffer>): { readonly bytes: AsyncIterable<Buffer>; count(): number } {
  let count = 0
  const through = async function* () {
    for await (const chunk of bytes) {
      count += chunk.length
      yield chunk
    }
  }
  return { bytes: through(), count: () => count }
}

function newRow(
  sandbox: StoredSandbox,
  of: { readonly caller: Caller; readonly body: RunCommandBody; readonly id: string; readonly now: number },
): StoredCommand {
  const { body, caller, id, now } = of
  return {
    id,
    tenant: sandbox.tenant,
    agent: sandbox.agent,
    sandbox: sandbox.id,
    argv: body.argv ?? ['/bin/sh', '-c', body.shell ?? ''],
    cwd: body.cwd,
    state: 'running',
    exitCode: null,
    signal: null,
    timedOut: false,
    cause: null,
    truncated: false,
    outputBytes: 0,
    maxOutputBytes: body.maxOutputBytes,
    fullOutput: null,
    startedAt: now,
    endedAt: null,
    actor: caller.principal.actor,
    recorded: false,
    decision: null,
  }
}

function specOf(row: StoredCommand, body: RunCommandBody & { readonly eventOutput?: true }): NodeCommandSpec {
  const { id, argv, cwd, maxOutputBytes } = row
  const { env, stdin = 'none', timeoutMs, cpuTimeMs, eventOutput } = body
  const limits = cpuTimeMs === undefined ? {} : { limits: { cpuSeconds: Math.ceil(cpuTimeMs / 1000) } }
  return { id, argv, cwd, env, stdin, timeoutMs, maxOutputBytes, ...limits, ...(eventOutput && { eventOutput }) }
}

/** What is recorded of a request: the values of its environment and its stdin are not. */
function requestOf(row: StoredCommand, body: RunCommandBody) {
  const { argv, cwd } = row
  const { timeoutMs, cpuTimeMs } = body
  const bounds = { timeoutMs, ...(cpuTimeMs === undefined ? {} : { cpuTimeMs }) }
  return { command: row.id, argv: [...argv], cwd, env: Object.keys(body.env), ...bounds }
}
