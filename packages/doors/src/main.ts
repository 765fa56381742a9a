import { armFailpoint, traceSteps } from '@airlock/contract'
import { createLog, Supervised, takeFile } from '@airlock/std'
import { compose } from './compose.ts'
import { readConfig } from './config.ts'

const config = readConfig()
const log = createLog({ process: 'doors', level: config.logLevel, write: (line) => process.stderr.write(line) })
const supervised = new Supervised(async () => running.stop())
const failpoint = armFailpoint(config.failpoint ?? undefined, {
  self: 'doors',
  kill: (victim) => supervised.kill(victim),
  takeFile,
  onStep: traceSteps(log, config.logLevel),
})
const running = await compose(config, { log, failpoint })
supervised.ready()
