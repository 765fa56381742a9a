import { BOUNDS, type CollectedArtifacts, type ErrorCode, isAirlockError, type Operation } from '@airlock/contract'
import { deadline } from '@airlock/std'
import { createHash } from 'node:crypto'
import type { Caller } from '../app/caller.ts'
import type { Context } from '../app/context.ts'
import { type Governed } from '../evidence/evidence.ts'
import { insidePath } from '../sandboxes/asked-paths.ts'
import { inSandbox } from '../sandboxes/owned-sandbox.ts'
import type { StoredArtifact } from '../store/artifacts.ts'
import type { ArtifactKeeper, NewArtifact } from './artifact-keeper.ts'
import { nameOf } from './artifact-nouns.ts'

/** A collection ends after this, with what it has. */
const COLLECT_MS = 10 * 60_000
const SKIPPED_SHOWN = 20

/** What one file is left out for; the others are still taken. */
const OF_ONE_FILE: ReadonlySet<ErrorCode> = new Set([
  'file_changed',
  'file_not_found',
  'permission_denied',
  'is_a_directory',
  'not_a_directory',
  'artifact_too_large',
  'policy_denied',
  'approval_required',
])

export interface CollectionOf {
  readonly caller: Caller
  readonly deed: Governed
  readonly sandbox: string
  readonly patterns: readonly string[]
  /** Taken by an earlier life of this collection. */
  readonly known: readonly StoredArtifact[]
  readonly owner: Omit<NewArtifact, 'name' | 'bytes'>
  readonly signal: AbortSignal
}

export interface Collected {
  readonly items: readonly StoredArtifact[]
  readonly skipped: CollectedArtifacts['skipped']
  readonly skippedCount: number
  /** Why it ended early. What was taken before stays. */
  readonly error: unknown
}

type World = Pick<Context, 'store' | 'dataPlane' | 'guardian' | 'artifactBounds'>

/** Takes the files that match, one after another. Each is judged by its path and as an artifact before its first byte is read. */
export class Collection {
  readonly #world: World
  readonly #keeper: ArtifactKeeper
  readonly #of: CollectionOf
  readonly #items: StoredArtifact[]
  readonly #skipped: { name: string; why: string }[] = []
  #skippedCount = 0

  constructor(world: World, keeper: ArtifactKeeper, of: CollectionOf) {
    this.#world = world
    this.#keeper = keeper
    this.#of = of
    this.#items = [...of.known]
  }

  async run(): Promise<Collected> {
    const signal = deadline(COLLECT_MS, this.#of.signal)
    let failure: unknown
    try {
      await this.#takeAll(signal)
    } catch (error) {
      failure = error
    }
    return { items: this.#items, skipped: this.#skipped, skippedCount: this.#skippedCount, error: failure }
  }

  async #takeAll(signal: AbortSignal): Promise<void> {
    const { store, dataPlane } = this.#world
    const { sandbox, patterns } = this.#of
    const asked = {
      patterns: [...patterns],
      files: BOUNDS.collectedArtifacts,
      names: BOUNDS.collectedNames,
    }
    const found = await inSandbox(store, sandbox, () => dataPlane.artifacts.find(sandbox, asked, signal))
    for (const { path, why } of found.skipped) this.#skip(nameOf(path), why)
    this.#skippedCount += found.skippedCount - found.skipped.length
    if (found.stopped !== undefined) this.#skip(patterns.join(' '), STOPPED[found.stopped])
    const known = new Set(this.#items.map(({ name }) => name))
    for (const file of found.files) {
      signal.throwIfAborted()
      if (!known.has(nameOf(file.path))) await this.#takeOrSkip(file, { count: found.files.length, signal })
    }
  }

  async #takeOrSkip(
    file: { readonly path: string; readonly size: number },
    of: { readonly count: number; readonly signal: AbortSignal },
  ): Promise<void> {
    try {
      this.#items.push(await this.#take(file, of))
    } catch (error) {
      if (!isAirlockError(error) || !OF_ONE_FILE.has(error.code)) throw error
      this.#skip(nameOf(file.path), error.message)
    }
  }

  async #take(
    { path, size }: { readonly path: string; readonly size: number },
    { count, signal }: { readonly count: number; readonly signal: AbortSignal },
  ): Promise<StoredArtifact> {
    const { guardian, artifactBounds, store, dataPlane } = this.#world
    const { caller, deed, sandbox, owner } = this.#of
    const name = nameOf(path)
    const operations: readonly Operation[] = [
      { kind: 'file', action: 'read', path: insidePath(path) },
      { kind: 'artifact', action: 'collect', name, bytes: size, count },
    ]
    await guardian.passParts(caller, deed, operations)
    const maxBytes = Math.min(size, artifactBounds.maxBytes)
    return this.#keeper.keep({ ...owner, name, bytes: maxBytes }, async ({ tenant, id: artifact }) =>
      inSandbox(store, sandbox, () => dataPlane.artifacts.keep(sandbox, { artifact, tenant, path, maxBytes }, signal)),
    )
  }

  #skip(name: string, why: string): void {
    this.#skippedCount++
    if (this.#skipped.length < SKIPPED_SHOWN) this.#skipped.push({ name, why })
  }
}

const STOPPED = {
  files: `matches more than ${BOUNDS.collectedArtifacts} files; the others were left out`,
  names: `has more than ${BOUNDS.collectedNames} names to look at; the others were left out`,
  time: 'took too long to look through; the rest was left out',
} as const

/** As evidence says it: SHA-256 of one line per artifact, `<sha256>  <name>`, sorted by name. */
export function collectedPayload({ items, skippedCount }: Collected) {
  const lines = items.map(({ name, sha256 }) => ({ name, line: `${sha256}  ${name}\n` }))
  const text = lines
    .toSorted((a, b) => (a.name < b.name ? -1 : Number(a.name > b.name)))
    .map(({ line }) => line)
    .join('')
  return {
    artifacts: items.length,
    bytes: items.reduce((sum, { size }) => sum + size, 0),
    manifest: createHash('sha256').update(text).digest('hex'),
    skipped: skippedCount,
  }
}
