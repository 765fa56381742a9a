import { createHash } from 'node:crypto'
import { AirlockError, type Artifact, type ArtifactLink, type CollectedArtifacts } from '@airlock/contract'
import { newId } from '@airlock/std'
import type { Page } from '../../app/caller.ts'
import { mediaTypeOf } from '../../artifacts/artifact-nouns.ts'
import type { ReadableArtifact } from '../../artifacts/artifacts.ts'

interface Kept {
  readonly artifact: Artifact
  readonly bytes: Buffer
}

/** For tests only: artifacts of `TestCore`, in memory. */
export class TestArtifacts {
  readonly #kept = new Map<string, Kept>()

  /** Of plain names in a directory; no pattern means anything here. */
  async collect(
    sandbox: string,
    of: { readonly patterns: readonly string[]; readonly read: (name: string) => Promise<Buffer> },
  ): Promise<CollectedArtifacts> {
    const items: Artifact[] = []
    for (const name of of.patterns) items.push(this.#keep(name, await of.read(name), sandbox))
    return { items, skipped: [], skippedCount: 0 }
  }

  async upload(of: { readonly name: string; readonly bytes: AsyncIterable<Buffer> }): Promise<Artifact> {
    return this.#keep(of.name, Buffer.concat(await Array.fromAsync(of.bytes)), null)
  }

  async list(query: { readonly name?: string | undefined; readonly limit: number }): Promise<Page<Artifact>> {
    const all = [...this.#kept.values()].map(({ artifact }) => artifact).toReversed()
    const items = all.filter(({ name }) => query.name === undefined || name === query.name)
    return { items: items.slice(0, query.limit), nextCursor: null }
  }

  async get(id: string): Promise<Artifact> {
    return this.#find(id).artifact
  }

  async download(id: string): Promise<ReadableArtifact> {
    const { artifact, bytes } = this.#find(id)
    return { artifact, open: async ({ from, to }) => once(bytes.subarray(from, to + 1)) }
  }

  async link(id: string): Promise<ArtifactLink> {
    this.#find(id)
    return { url: `http://localhost/v1/artifact-links/${id}`, expiresAt: new Date().toISOString() }
  }

  async downloadLinked(): Promise<never> {
    throw new AirlockError('artifact_link_invalid')
  }

  async remove(id: string): Promise<void> {
    this.#find(id)
    this.#kept.delete(id)
  }

  #keep(name: string, bytes: Buffer, sandbox: string | null): Artifact {
    const now = new Date().toISOString()
    const sha256 = createHash('sha256').update(bytes).digest('hex')
    const content = { name, size: bytes.length, sha256, mediaType: mediaTypeOf(name) }
    const from = { sandbox, command: null, step: null, job: null, provenance: null }
    const owner = { tenant: 'default', agent: 'default', node: 'local', createdBy: 'key:test' }
    const artifact = { id: newId('art'), ...owner, ...content, ...from, createdAt: now, expiresAt: now }
    this.#kept.set(artifact.id, { artifact, bytes })
    return artifact
  }

  #find(id: string): Kept {
    const kept = this.#kept.get(id)
    if (!kept) throw new AirlockError('artifact_not_found')
    return kept
  }
}

async function* once(bytes: Buffer): AsyncGenerator<Buffer> {
  yield bytes
}
