import {
  artifactId,
  DEFAULTS,
  type FindFilesRequest,
  guestResults,
  id,
  type KeepFileRequest,
  storedArtifact,
  type StoredArtifactBytes,
} from '@airlock/contract'
import { deadline } from '@airlock/std'
import type { WireClient } from '@airlock/wire'
import { z } from 'zod'
import type { ArtifactRef, DataPlaneArtifacts } from './data-plane.ts'

const ANSWER_MS = 30_000
/** No transfer takes longer than a sandbox may live. */
const TRANSFER_MS = DEFAULTS.maxLifetimeMs.max

/** Calls about artifacts of `contract/src/host/data-plane-api.ts`. */
export class DataPlaneArtifactClient implements DataPlaneArtifacts {
  readonly #http: WireClient

  constructor(http: WireClient) {
    this.#http = http
  }

  async find(sandbox: string, json: FindFilesRequest, signal: AbortSignal) {
    const call = { method: 'POST', path: `/sandboxes/${sandbox}/find`, json, signal, again: 'same' } as const
    return this.#http.json({ ...call, answerMs: ANSWER_MS }, guestResults['file.find'])
  }

  async keep(sandbox: string, json: KeepFileRequest, signal: AbortSignal): Promise<StoredArtifactBytes> {
    const call = { method: 'POST', path: `/sandboxes/${sandbox}/artifacts`, json, signal } as const
    return this.#http.json({ ...call, answerMs: TRANSFER_MS, again: 'different' }, storedArtifact)
  }

  async put(
    of: ArtifactRef,
    { bytes, maxBytes }: { readonly bytes: AsyncIterable<Buffer>; readonly maxBytes: number },
  ): Promise<StoredArtifactBytes> {
    const call = { method: 'PUT', path: `${pathOf(of)}?max=${maxBytes}`, bytes, again: 'different' } as const
    return this.#http.json({ ...call, answerMs: TRANSFER_MS }, storedArtifact)
  }

  async read(
    of: ArtifactRef,
    part: { readonly from: number; readonly to: number; readonly signal: AbortSignal },
  ): Promise<AsyncIterable<Buffer>> {
    const path = `${pathOf(of)}?from=${part.from}&to=${part.to}`
    const signal = deadline(TRANSFER_MS, part.signal)
    const call = { method: 'GET', path, answerMs: ANSWER_MS, signal, again: 'same' } as const
    return this.#http.bytesOf(await this.#http.stream(call))
  }

  async remove(of: ArtifactRef, sha256: string | null): Promise<void> {
    const path = `${pathOf(of)}${sha256 === null ? '' : `?sha256=${sha256}`}`
    const call = { method: 'DELETE', path, answerMs: ANSWER_MS, again: 'same' } as const
    await this.#http.json(call, z.strictObject({}))
  }

  async tenants(): Promise<readonly string[]> {
    const call = { method: 'GET', path: '/artifacts', answerMs: ANSWER_MS, again: 'same' } as const
    return (await this.#http.json(call, z.strictObject({ tenants: z.array(id) }))).tenants
  }

  async list(tenant: string): Promise<readonly string[]> {
    const call = { method: 'GET', path: `/artifacts/${tenant}`, answerMs: ANSWER_MS, again: 'same' } as const
    return (await this.#http.json(call, z.strictObject({ artifacts: z.array(artifactId) }))).artifacts
  }
}

function pathOf({ tenant, id: artifact }: ArtifactRef): string {
  return `/artifacts/${tenant}/${artifact}`
}
