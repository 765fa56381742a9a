import { AirlockError, type StoredArtifactBytes } from '@airlock/contract'
import { newId } from '@airlock/std'
import type { Context } from '../app/context.ts'
import {
  countArtifacts,
  deleteArtifact,
  insertArtifact,
  knownArtifacts,
  listDeadArtifacts,
  setArtifactReady,
  type StoredArtifact,
} from '../store/artifacts.ts'
import { mediaTypeOf } from './artifact-nouns.ts'

const BATCH = 500

export type NewArtifact = Pick<
  StoredArtifact,
  'tenant' | 'agent' | 'name' | 'sandbox' | 'command' | 'step' | 'job' | 'attempt' | 'provenance' | 'createdBy'
> & {
  readonly ttlMs: number
  /** Set aside of the quota while it is written; its content has no more. */
  readonly bytes: number
}

type World = Pick<Context, 'store' | 'node' | 'clock' | 'dataPlane' | 'failpoint' | 'artifactBounds' | 'audit' | 'log'>

/**
 * Rows of artifacts and their bytes. The row comes first, `writing`, and sets the size aside of the quota; then the bytes are made
 * durable under its id; then it is `ready`. It goes in the opposite order: the row, then the bytes. So a row that is ready has its
 * bytes, whatever is killed, and bytes without a row are found and removed.
 */
export class ArtifactKeeper {
  readonly #world: World
  /** Being written by this process. */
  readonly #writing = new Set<string>()
  #hasPruned = false

  constructor(world: World) {
    this.#world = world
  }

  async keep(
    of: NewArtifact,
    write: (ref: { readonly tenant: string; readonly id: string }) => Promise<StoredArtifactBytes>,
  ): Promise<StoredArtifact> {
    const { clock, failpoint } = this.#world
    const row = this.#newRow(of, newId('art', clock.now()))
    this.#writing.add(row.id)
    try {
      await this.#reserve(row)
      await failpoint('artifact.row-written')
      const { sha256, bytes } = await write(row)
      return await this.#finish(row, { sha256, size: bytes })
    } catch (error) {
      await this.#undo(row)
      throw error
    } finally {
      this.#writing.delete(row.id)
    }
  }

  /** False when it was gone already. Bytes that cannot be removed now are removed by the next prune. */
  async remove(row: StoredArtifact): Promise<boolean> {
    const { store, failpoint, dataPlane, log } = this.#world
    const wasThere = await store.transaction(async (db) => deleteArtifact(db, row.id))
    await failpoint('artifact.row-removed')
    await dataPlane.artifacts
      .remove(row, row.sha256)
      .catch((error: unknown) => log.warn('could not remove the bytes of an artifact', { artifact: row.id, error }))
    return wasThere
  }

  /** One round of the sweep: what expired, and what an earlier process left half written. */
  async look(): Promise<void> {
    const { store, node, clock, audit } = this.#world
    const now = clock.now()
    const asked = { node: node.id, now, writtenBefore: now + 1, limit: BATCH }
    for (const row of await store.query((db) => listDeadArtifacts(db, asked))) {
      if (this.#writing.has(row.id)) continue
      if (!(await this.remove(row)) || row.state === 'writing') continue
      const { id: artifact, tenant, agent, sandbox, name } = row
      const payload = { artifact, name, reason: 'expired' }
      audit.note({ point: 'artifact.remove', status: 'done', tenant, agent, sandbox, actor: 'system', payload })
    }
    if (!this.#hasPruned) await this.prune()
  }

  /** Removes bytes that no row names. Rows are written before bytes, so bytes without a row are nobody's. */
  async prune(): Promise<void> {
    const { store, node, dataPlane, log } = this.#world
    for (const tenant of await dataPlane.artifacts.tenants()) {
      const ids = await dataPlane.artifacts.list(tenant)
      for (let at = 0; at < ids.length; at += BATCH) {
        const some = ids.slice(at, at + BATCH)
        const known = await store.query((db) => knownArtifacts(db, { node: node.id, ids: some }))
        for (const id of some.filter((one) => !known.has(one))) {
          log.info('removing an artifact that no row names', { tenant, artifact: id })
          await dataPlane.artifacts.remove({ tenant, id }, null)
        }
      }
    }
    this.#hasPruned = true
  }

  async #reserve(row: StoredArtifact): Promise<void> {
    const { store, artifactBounds } = this.#world
    const { quotaBytes, quotaCount } = artifactBounds
    await store.transaction(async (db) => {
      const { count, bytes } = await countArtifacts(db, row.tenant)
      if (count >= quotaCount)
        throw new AirlockError('artifact_quota', `The tenant has ${count} artifacts, and may have ${quotaCount}.`)
      if (bytes + row.size > quotaBytes)
        throw new AirlockError(
          'artifact_quota',
          `The artifacts of the tenant have ${bytes} bytes and may have ${quotaBytes}; ${row.size} more do not fit.`,
        )
      await insertArtifact(db, row)
    })
  }

  async #finish(
    row: StoredArtifact,
    content: { readonly sha256: string; readonly size: number },
  ): Promise<StoredArtifact> {
    const { store, failpoint } = this.#world
    if (!(await store.transaction(async (db) => setArtifactReady(db, row.id, content))))
      throw new AirlockError('artifact_not_found', 'The artifact was removed while it was written.')
    await failpoint('artifact.row-ready')
    return { ...row, ...content, state: 'ready' }
  }

  async #undo(row: StoredArtifact): Promise<void> {
    await this.remove(row).catch((error: unknown) =>
      this.#world.log.warn('an artifact that failed is left to the sweep', { artifact: row.id, error }),
    )
  }

  #newRow({ ttlMs, bytes, ...of }: NewArtifact, id: string): StoredArtifact {
    const { clock, node } = this.#world
    const createdAt = clock.now()
    return {
      ...of,
      id,
      node: node.id,
      state: 'writing',
      size: bytes,
      sha256: null,
      mediaType: mediaTypeOf(of.name),
      createdAt,
      expiresAt: createdAt + ttlMs,
    }
  }
}
