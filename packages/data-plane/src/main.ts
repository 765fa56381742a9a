import { compose } from './compose.ts'
import { readConfig } from './config.ts'

await compose(readConfig())
