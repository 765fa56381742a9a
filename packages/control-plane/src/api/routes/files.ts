import type { Core } from '../../app/core.ts'
import { json, NOTHING, type Handlers } from '../call.ts'

export function fileHandlers(core: Core) {
  return {
    readFile: async ({ caller, params, query, signal }) => {
      const { size, bytes } = await core.readFile(caller, params.id, { path: query.path, signal })
      return { kind: 'bytes', size, bytes }
    },
    writeFile: async ({ caller, params, query, bytes }) => {
      const written = await core.writeFile(caller, params.id, { ...query, bytes })
      return json({ path: query.path, bytes: written })
    },
    removeFile: async ({ caller, params, query }) => {
      await core.fileOperation(caller, params.id, { op: 'file.remove', ...query })
      return NOTHING
    },
    statFile: async ({ caller, params, query }) =>
      json(await core.fileOperation(caller, params.id, { op: 'file.stat', ...query })),
    listFiles: async ({ caller, params, query }) =>
      json(await core.fileOperation(caller, params.id, { op: 'file.list', ...query })),
    makeDirectory: async ({ caller, params, body }) => {
      await core.fileOperation(caller, params.id, { op: 'file.mkdir', ...body })
      return NOTHING
    },
    moveFile: async ({ caller, params, body }) => {
      await core.fileOperation(caller, params.id, { op: 'file.move', ...body })
      return NOTHING
    },
  } satisfies Partial<Handlers>
}
