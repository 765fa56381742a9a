import { createLog, Supervised } from '@airlock/std'
import { compose } from './compose.ts'
import { readConfig } from './config.ts'

const config = readConfig()
const log = createLog({ process: 'keys', level: config.logLevel, write: (line) => process.stderr.write(line) })
const supervised = new Supervised(async () => running.stop())
const running = await compose(config, log)
supervised.ready()
