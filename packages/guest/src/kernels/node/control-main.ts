import { parentPort } from 'node:worker_threads'
import { Control } from './control.ts'

// That a function we use is experimental is no news to the author of a step.
process.emitWarning = () => undefined

if (parentPort) new Control(parentPort).start()
