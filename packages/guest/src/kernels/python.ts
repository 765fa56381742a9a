import { join } from 'node:path'
import type { Kernel } from '../session/driver.ts'

/** Its driver is `python.py`. */
export const PYTHON: Kernel = {
  argv: ({ kernels }) => ['python3', join(kernels, 'python.py')],
  env: {},
  encodeStep: (request) => JSON.stringify(request),
  // A child that the code waits for must end too: `os.system` ignores the signal while it waits. The line tells a
  // driver that the signal found before its step which one was meant.
  interrupt: { signal: true, encode: (nonce) => JSON.stringify({ type: 'interrupt', nonce }) },
}
