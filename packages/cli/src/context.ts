import type { CliConfig } from './config.ts'
import { Terminal } from './terminal.ts'

/** What every verb gets. */
export class Context {
  readonly terminal: Terminal
  /** What the process exits with when nothing fails. */
  exitCode = 0

  constructor(config: CliConfig) {
    this.terminal = new Terminal(config)
  }
}
