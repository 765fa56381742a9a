import type { FileOperation, Point } from '@airlock/contract'
import type { StoredSandbox } from '../store/sandboxes.ts'
import type { Activity } from './activity.ts'
import { countBytes } from './commands.ts'
import type { Context } from './context.ts'
import type { Caller, FileAnswer } from './core.ts'
import { type Deed, deedOf, describeError, doRecorded } from './evidence.ts'
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
    const sandbox = await this.#use(caller, id)
    const deed = deedOf(caller, sandbox, { point: 'file.read', payload: { path: file.path } })
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
    const { store, dataPlane } = this.#context
    const sandbox = await this.#use(caller, id)
    const payload = { path: file.path, append: file.append }
    const written = await doRecorded(
      this.#context,
      deedOf(caller, sandbox, { point: 'file.write', payload }),
      async () => {
        const bytes = await inSandbox(store, id, () => dataPlane.writeFile(id, file))
        return { value: bytes, payload: { bytes } }
      },
    )
    await this.#activity.touch(sandbox)
    return written
  }

  async operate(caller: Caller, id: string, operation: FileOperation): Promise<FileAnswer> {
    const { store, dataPlane } = this.#context
    const sandbox = await this.#use(caller, id)
    const { op, ...payload } = operation
    return doRecorded(this.#context, deedOf(caller, sandbox, { point: POINT_OF[op], payload }), async () => ({
      value: await inSandbox(store, id, () => dataPlane.file(id, operation)),
    }))
  }

  async #use(caller: Caller, id: string): Promise<StoredSandbox> {
    this.#context.readiness.assertGranting()
    const sandbox = await usableSandbox(this.#context, caller, id)
    await this.#activity.touch(sandbox)
    return sandbox
  }

  async *#recorded(deed: Deed, bytes: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
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
      const payload = { ...deed.payload, bytes: counted.count() }
      audit.note({ ...deed, ...outcome, durationMs: clock.now() - startedAt, payload })
    }
  }
}
