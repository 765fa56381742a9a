import { buildImageRequest, imageReferences } from '@airlock/contract'
import type { NodeImageDesk } from '../sandboxes/node-images.ts'
import { bytesOf, readJson } from './http.ts'
import type { Handler } from './routes.ts'

/** The lines about images of the table of `contract/src/host/data-plane-api.ts`. */
export function createImageRoutes(images: NodeImageDesk): ReadonlyMap<string, Handler> {
  return new Map<string, Handler>([
    ['GET /images', async () => ({ json: images.list() })],
    ['POST /images', async (call) => ({ bytes: images.build((await readJson(call, buildImageRequest)).packages) })],
    ['PUT /images', async (call) => ({ json: await images.import(bytesOf(call), call.signal) })],
    [
      'POST /images/prune',
      async (call) => ({ json: { removed: await images.prune(await readJson(call, imageReferences)) } }),
    ],
  ])
}
