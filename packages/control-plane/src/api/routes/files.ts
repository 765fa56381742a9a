import type { App } from '../../app/app.ts'
import { json, NOTHING, type Handlers } from '../call.ts'

export function fileHandlers(files: App['files']) {
  return {
    readFile: async ({ caller, params, query, signal }) => {
      const { size, bytes } = await files.read(caller, params.id, { path: query.path, signal })
      return { kind: 'bytes', size, bytes }
    },
    writeFile: async ({ caller, params, query, bytes }) => {
      const written = await files.write(caller, params.id, { ...query, bytes })
      return json({ path: query.path, bytes: written })
    },
    readArchive: async ({ caller, params, query, signal }) => {
      const bytes = await files.pack(caller, params.id, { path: query.path, signal })
      return { kind: 'bytes', size: undefined, bytes, type: 'application/x-tar' }
    },
    writeArchive: async ({ caller, params, query, bytes }) =>
      json({ path: query.path, ...(await files.unpack(caller, params.id, { path: query.path, bytes })) }),
    removeFile: async ({ caller, params, query }) => {
      await files.operate(caller, params.id, { op: 'file.remove', ...query })
      return NOTHING
    },
    statFile: async ({ caller, params, query }) =>
      json(await files.operate(caller, params.id, { op: 'file.stat', ...query })),
    listFiles: async ({ caller, params, query }) =>
      json(await files.operate(caller, params.id, { op: 'file.list', ...query })),
    makeDirectory: async ({ caller, params, body }) => {
      await files.operate(caller, params.id, { op: 'file.mkdir', ...body })
      return NOTHING
    },
    moveFile: async ({ caller, params, body }) => {
      await files.operate(caller, params.id, { op: 'file.move', ...body })
      return NOTHING
    },
  } satisfies Partial<Handlers>
}
