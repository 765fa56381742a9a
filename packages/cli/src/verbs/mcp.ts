import { serveOnStdio } from '@airlock/mcp/stdio'
import { openConnection, Transport } from '@airlock/sdk/internal'
import type { Command } from 'commander'
import type { Context } from '../context.ts'
import { SdkRoutes } from '../sdk-routes.ts'

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

const HELP = `
For clients that start their servers, as Claude Desktop, Claude Code and VS Code do. Examples are in docs/mcp.md:
  claude mcp add airlock -- airlock mcp`

/** Nothing but the protocol is written to stdout. */
export function defineMcp(command: Command, context: Context): void {
  command.addHelpText('after', HELP).action(async () => {
    const stop = new AbortController()
    for (const name of SIGNALS) process.once(name, () => stop.abort())
    await serveOnStdio({
      routes: new SdkRoutes(new Transport(openConnection({}))),
      version: context.version,
      signal: stop.signal,
      onFault: (error) => context.terminal.note(`mcp: ${error instanceof Error ? error.message : String(error)}`),
    })
  })
}
