import { join } from 'node:path'
import { Worker } from 'node:worker_threads'

/** Bundled beside this one. */
const PROGRAM = 'node-control.cjs'

/** User code has the main thread. This one reads the channel, so that an interrupt is heard while code runs. */
export const control = new Worker(join(__dirname, PROGRAM), {
  stdout: true,
  stderr: true,
  execArgv: [],
  env: {},
})
