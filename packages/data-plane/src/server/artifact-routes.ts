import { AirlockError, findFilesRequest, keepFileRequest, type StoredArtifactBytes } from '@airlock/contract'
import type { ArtifactRef } from '../artifacts/artifact-files.ts'
import type { Sandboxes } from '../sandboxes/sandboxes.ts'
import { bytesOf, type Call, readJson } from './http.ts'
import type { Handler } from './routes.ts'

/** Files that leave sandboxes, and the bytes that are kept of them. */
export function createArtifactRoutes({ registry, artifacts }: Pick<Sandboxes, 'registry' | 'artifacts'>) {
  const files = (call: Call) => registry.link(call.params['id'] ?? '').files
  return new Map<string, Handler>([
    [
      'POST /sandboxes/:id/find',
      async (call) => ({ json: await files(call).find(await readJson(call, findFilesRequest), call.signal) }),
    ],
    [
      'POST /sandboxes/:id/artifacts',
      async (call) => {
        const { artifact, tenant, path, maxBytes } = await readJson(call, keepFileRequest)
        const { bytes } = await files(call).read(path, call.signal, { maxBytes })
        const stored: StoredArtifactBytes = await artifacts.put({ tenant, id: artifact }, bytes, maxBytes)
        return { json: stored }
      },
    ],
    [
      'PUT /artifacts/:tenant/:artifact',
      async (call) => ({ json: await artifacts.put(refOf(call), bytesOf(call), numberOf(call, 'max') ?? 0) }),
    ],
    [
      'GET /artifacts/:tenant/:artifact',
      async (call) => {
        const to = numberOf(call, 'to')
        const part = { from: numberOf(call, 'from') ?? 0, ...(to === undefined ? {} : { to }) }
        const bytes = await artifacts.read(refOf(call), part)
        if (!bytes) throw new AirlockError('artifact_not_found')
        return { bytes }
      },
    ],
    [
      'DELETE /artifacts/:tenant/:artifact',
      async (call) => {
        await artifacts.remove(refOf(call), call.query.get('sha256'))
        return { json: {} }
      },
    ],
    ['GET /artifacts', async () => ({ json: { tenants: await artifacts.tenants() } })],
    ['GET /artifacts/:tenant', async (call) => ({ json: { artifacts: await artifacts.list(tenantOf(call)) } })],
  ])
}

function tenantOf({ params }: Call): string {
  return params['tenant'] ?? ''
}

function refOf(call: Call): ArtifactRef {
  return { tenant: tenantOf(call), id: call.params['artifact'] ?? '' }
}

function numberOf({ query }: Call, name: string): number | undefined {
  const text = query.get(name)
  if (text === null) return undefined
  const value = Number(text)
  if (Number.isSafeInteger(value) && value >= 0) return value
  throw new AirlockError('invalid_request', `${name} must be a whole number`)
}
