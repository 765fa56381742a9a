import { armFailpoint, sayObstacle, traceSteps } from '@airlock/contract'
import { createLog, type Notice, Supervised, takeFile } from '@airlock/std'
import { type Composed, compose } from './compose.ts'
import { readConfig } from './config.ts'

const config = readConfig()
const log = createLog({ process: 'control-plane', level: config.logLevel, write: (line) => process.stderr.write(line) })
let composed: Composed | undefined
const supervised = new Supervised(async (mode) => composed?.controlPlane.stop(mode))
const failpoint = armFailpoint(config.failpoint ?? undefined, {
  self: 'control-plane',
  kill: (victim) => supervised.kill(victim),
  takeFile,
  onStep: traceSteps(log, config.logLevel),
})
const onNotice = (notice: Notice) => supervised.notice(notice)

try {
  composed = await compose(config, { log, failpoint, onDisplaced: () => process.exit(1), onNotice })
  await composed.controlPlane.start()
  supervised.ready({ ...composed.facts })
} catch (error) {
  const obstacle = sayObstacle(error)
  if (obstacle === undefined) log.error('the control plane could not start', { error })
  else {
    // The log file has the cause, the terminal the sentence.
    log.info('the start failed', { error })
    log.error(obstacle)
  }
  process.exit(1)
}
