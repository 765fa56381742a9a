import type { FileOperation, Operation, Point } from '@airlock/contract'
import { assertNever } from '@airlock/std'
import type { TarEntry, TarSummary } from '@airlock/std/tar'
import { posix } from 'node:path'
import type { StoredSandbox } from '../store/sandboxes.ts'
import type { Activity } from './activity.ts'
import { JudgedArchive, readAhead } from './archive.ts'
import { insidePath } from './asked-paths.ts'
import { countBytes } from '../commands/commands.ts'
import type { Context } from '../app/context.ts'
import type { Caller } from '../app/caller.ts'
import type { FileAnswer } from '../nodes/data-plane.ts'
import { type Deed, deedOf, describeError, doRecorded, type Governed } from '../evidence/evidence.ts'
import { hashThrough } from './ephemeral-sandboxes.ts'
import { inSandbox, usableSandbox } from './owned-sandbox.ts'

const POINT_OF = {
  'file.stat': 'file.list',
  'file.list': 'file.list',
  'file.mkdir': 'file.mkdir',
  'file.move': 'file.move',
  'file.remove': 'file.remove',
} as const satisfies Record<FileOperation['op'], Point>

/** Files of sandboxes. Paths are resolved inside; here they are words. */
export class Files {
  readonly #context: Context
  readonly #activity: Activity

  constructor(context: Context, activity: Activity) {
    this.#context = context
    this.#activity = activity
  }

  /** The last record is written when the bytes have left, or broke off. */
  async read(
    caller: Caller,
    id: string,
    file: { readonly path: string; readonly signal: AbortSignal },
  ): Promise<{ readonly size: number; readonly bytes: AsyncIterable<Buffer> }> {
    const { audit, store, dataPlane } = this.#context
    const about = { kind: 'file', action: 'read', path: insidePath(file.path) } as const
    const { deed } = await this.#use(caller, id, { point: 'file.read', payload: { path: file.path }, about })
    await audit.require({ ...deed, status: 'requested' })
    try {
      const { size, bytes } = await inSandbox(store, id, () => dataPlane.readFile(id, file))
      return { size, bytes: this.#recorded(deed, bytes) }
    } catch (error) {
      audit.note({ ...deed, status: 'failed', error: describeError(error) })
      throw error
    }
  }

  async write(
    caller: Caller,
    id: string,
    file: { readonly path: string; readonly append: boolean; readonly bytes: AsyncIterable<Buffer> },
  ): Promise<number> {
    const { store, dataPlane, ephemeral } = this.#context
    const payload = { path: file.path, append: file.append }
    const about = { kind: 'file', action: 'write', path: insidePath(file.path) } as const
    const { sandbox, deed } = await this.#use(caller, id, { point: 'file.write', payload, about })
    const change = ephemeral.begin(id)
    const hashed = hashThrough(file.bytes, change.counts)
    const written = await doRecorded(this.#context, deed, async () => {
      const bytes = await inSandbox(store, id, () => dataPlane.writeFile(id, { ...file, bytes: hashed.bytes }))
      return { value: bytes, payload: { bytes } }
    })
    change.finish({ ...payload, bytes: written, sha256: hashed.digest() })
    await this.#activity.touch(sandbox)
    return written
  }

  /** A directory as a tar. The beginning is judged before this resolves, so that most refusals are answers. */
  async pack(
    caller: Caller,
    id: string,
    of: { readonly path: string; readonly signal: AbortSignal },
  ): Promise<AsyncIterable<Buffer>> {
    const { audit, store, dataPlane } = this.#context
    const payload = { path: of.path, archive: true }
    const about = { kind: 'file', action: 'read', path: insidePath(of.path) } as const
    const { deed } = await this.#use(caller, id, { point: 'file.read', payload, about })
    await audit.require({ ...deed, status: 'requested' })
    const archive = new JudgedArchive(async (entries) =>
      this.#passEntries(caller, deed, { ...of, action: 'read', entries }),
    )
    try {
      const bytes = await inSandbox(store, id, () => dataPlane.readArchive(id, of))
      const judged = await readAhead(archive.judge(bytes))
      return this.#recorded(deed, judged, () => ({ ...archive.summary }))
    } catch (error) {
      audit.note({ ...deed, status: 'failed', error: describeError(error) })
      throw error
    }
  }

  /** Nothing is written of an archive that is refused within its beginning; a later refusal says how far it came. */
  async unpack(
    caller: Caller,
    id: string,
    of: { readonly path: string; readonly bytes: AsyncIterable<Buffer> },
  ): Promise<TarSummary> {
    const { store, dataPlane, ephemeral } = this.#context
    const payload = { path: of.path, archive: true }
    const about = { kind: 'file', action: 'write', path: insidePath(of.path) } as const
    const { sandbox, deed } = await this.#use(caller, id, { point: 'file.write', payload, about })
    const archive = new JudgedArchive(async (entries) =>
      this.#passEntries(caller, deed, { ...of, action: 'write', entries }),
    )
    const change = ephemeral.begin(id)
    const summary = await doRecorded(this.#context, deed, async () => {
      const bytes = await readAhead(archive.judge(of.bytes))
      archive.isPassedOn = true
      await inSandbox(store, id, () => dataPlane.writeArchive(id, { path: of.path, bytes }))
      return { value: archive.summary, payload: { ...archive.summary } }
    })
    change.finish({ ...payload, ...summary, outline: archive.outline })
    await this.#activity.touch(sandbox)
    return summary
  }

  async operate(caller: Caller, id: string, operation: FileOperation): Promise<FileAnswer> {
    const { store, dataPlane, ephemeral } = this.#context
    const { op, ...payload } = operation
    const { deed } = await this.#use(caller, id, { point: POINT_OF[op], payload, about: aboutOf(operation) })
    if (POINT_OF[op] !== 'file.list') ephemeral.append(id, operation)
    return doRecorded(this.#context, deed, async () => ({
      value: await inSandbox(store, id, () => dataPlane.file(id, operation)),
    }))
  }

  /** A sandbox that may be used, and for this: what is refused is no use of it. */
  async #use(
    caller: Caller,
    id: string,
    what: Parameters<typeof deedOf>[2] & { readonly about: Operation },
  ): Promise<{ readonly sandbox: StoredSandbox; readonly deed: Governed }> {
    const { guardian } = this.#context
    const sandbox = await usableSandbox(this.#context, caller, id)
    const deed = await guardian.pass(caller, deedOf(caller, sandbox, what), what.about)
    await this.#activity.touch(sandbox)
    return { sandbox, deed }
  }

  /** A rule about a path holds for an entry of an archive as for a file. */
  async #passEntries(
    caller: Caller,
    deed: Governed,
    of: { readonly path: string; readonly action: 'read' | 'write'; readonly entries: readonly TarEntry[] },
  ): Promise<void> {
    const operations = of.entries.map(({ path, kind }): Operation => {
      const inDirectory = of.action === 'read' ? 'list' : 'mkdir'
      const action = kind === 'directory' ? inDirectory : of.action
      return { kind: 'file', action, path: posix.join(insidePath(of.path), path) }
    })
    await this.#context.guardian.passParts(caller, deed, operations)
  }

  async *#recorded(
    deed: Governed,
    bytes: AsyncIterable<Buffer>,
    more: () => Deed['payload'] = () => ({}),
  ): AsyncGenerator<Buffer> {
    const { audit, clock } = this.#context
    const startedAt = clock.now()
    const counted = countBytes(bytes)
    let outcome: { status: 'done' } | { status: 'failed'; error: ReturnType<typeof describeError> } = {
      status: 'failed',
      error: { code: 'timeout', message: 'The reader left.' },
    }
    try {
      yield* counted.bytes
      outcome = { status: 'done' }
    } catch (error) {
      outcome = { status: 'failed', error: describeError(error) }
      throw error
    } finally {
      const payload = { ...deed.payload, bytes: counted.count(), ...more() }
      audit.note({ ...deed, ...outcome, durationMs: clock.now() - startedAt, payload })
    }
  }
}

/** As rules see it: to look at a file is to look at its directory. */
function aboutOf(operation: FileOperation): Operation {
  switch (operation.op) {
    case 'file.stat':
    case 'file.list':
      return { kind: 'file', action: 'list', path: insidePath(operation.path) }
    case 'file.mkdir':
      return { kind: 'file', action: 'mkdir', path: insidePath(operation.path) }
    case 'file.move':
      return { kind: 'file', action: 'move', path: insidePath(operation.from), to: insidePath(operation.to) }
    case 'file.remove':
      return { kind: 'file', action: 'remove', path: insidePath(operation.path) }
    default:
      return assertNever(operation)
  }
}
