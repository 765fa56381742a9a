import { join } from 'node:path'
import type { Kernel } from '../session/driver.ts'

/** Its driver is bundled from `node/main.ts`. */
export const NODE: Kernel = {
  // Code that is stopped inside a callback leaves Node's async ids in disorder, which it would end itself for.
  argv: ({ kernels, node }) => [...node, '--no-force-async-hooks-checks', join(kernels, 'node.cjs')],
  env: {},
  encodeStep: (request) => JSON.stringify(request),
  // The line stops JavaScript, the signal a child that it waits for.
  interrupt: { signal: true, encode: (nonce) => JSON.stringify({ type: 'interrupt', nonce }) },
}
