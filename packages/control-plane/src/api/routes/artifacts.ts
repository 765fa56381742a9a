import type { App } from '../../app/app.ts'
import type { ReadableArtifact } from '../../artifacts/artifacts.ts'
import { json, NOTHING, type Handlers } from '../call.ts'

export function artifactHandlers(artifacts: App['artifacts']) {
  return {
    collectArtifacts: async ({ caller, params, body, signal }) =>
      json(await artifacts.collect(caller, params.id, { ...body, signal })),
    uploadArtifact: async ({ caller, query, bytes, contentLength }) =>
      json(await artifacts.upload(caller, { ...query, bytes, size: contentLength ?? query.size })),
    listArtifacts: async ({ caller, query }) => json(await artifacts.list(caller, query)),
    getArtifact: async ({ caller, params }) => json(await artifacts.get(caller, params.id)),
    downloadArtifact: async ({ caller, params, signal }) => fileOf(await artifacts.download(caller, params.id), signal),
    linkArtifact: async ({ caller, params, body }) => json(await artifacts.link(caller, params.id, body)),
    downloadLinkedArtifact: async ({ params, requestId, signal }) =>
      fileOf(await artifacts.downloadLinked(params.token, requestId), signal),
    removeArtifact: async ({ caller, params }) => {
      await artifacts.remove(caller, params.id)
      return NOTHING
    },
  } satisfies Partial<Handlers>
}

function fileOf(file: ReadableArtifact, signal: AbortSignal) {
  const { name, size, sha256, mediaType: type } = file.artifact
  return {
    kind: 'file',
    name,
    size,
    sha256,
    type,
    open: async (part) => file.open(part, signal),
  } as const satisfies FileOf
}

type FileOf = Extract<Awaited<ReturnType<Handlers['downloadArtifact']>>, { kind: 'file' }>
