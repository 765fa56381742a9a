import type { Command } from 'commander'

export interface JsonOption {
  readonly json?: boolean
}

/** The option that every verb has. */
export function withJson(command: Command): Command {
  return command.option('--json', 'print JSON on stdout, and nothing else')
}

/** For a verb whose options another package understands: all words are passed on as they are. */
export function forwarded(command: Command): Command {
  return command.usage('[--json]').argument('[arguments...]').allowUnknownOption().passThroughOptions()
}
