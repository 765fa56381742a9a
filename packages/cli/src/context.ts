import type { CliConfig } from './config.ts'
import { Terminal } from './text/terminal.ts'

/** What every verb gets. */
export class Context {
  readonly terminal: Terminal
  readonly version: string
  readonly canDraw: boolean
  /** All words that were given. */
  readonly argv: readonly string[]
  /** What the process exits with when nothing fails. */
  exitCode = 0

  constructor(config: CliConfig, argv: readonly string[]) {
    this.argv = argv
    this.terminal = new Terminal(config)
    this.version = config.version
    this.canDraw = config.canDraw
  }
}
