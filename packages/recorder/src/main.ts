import { armFailpoint, sayObstacle, traceSteps } from '@airlock/contract'
import { createLog, Supervised, takeFile } from '@airlock/std'
import { compose } from './compose.ts'
import { readConfig } from './config.ts'

const config = readConfig()
const log = createLog({ process: 'recorder', level: config.logLevel, write: (line) => process.stderr.write(line) })
let running: Awaited<ReturnType<typeof compose>> | undefined
const supervised = new Supervised(async () => running?.stop())
const failpoint = armFailpoint(config.failpoint ?? undefined, {
  self: 'recorder',
  kill: (victim) => supervised.kill(victim),
  takeFile,
  onStep: traceSteps(log, config.logLevel),
})

try {
  running = await compose(config, { log, failpoint })
  supervised.ready()
} catch (error) {
  const obstacle = sayObstacle(error)
  if (obstacle === undefined) log.error('the recorder could not start', { error })
  else {
    // The log file has the cause, the terminal the sentence.
    log.info('the start failed', { error })
    log.error(obstacle)
  }
  process.exit(1)
}
