import { Airlock } from '@airlock/sdk'
import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { requires } from '../support/requires.ts'
import { borrowServer, type BorrowedServer } from '../support/borrow-server.ts'
import { runConformance, type Failures } from './conformance-run.ts'
import { Forwarder } from './forwarder.ts'

/** One red pixel. */
const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC'

let server: BorrowedServer
let forwarder: Forwarder
beforeAll(async () => {
  server = await borrowServer()
  const airlock = new Airlock({ url: server.url, apiKey: server.developerKey })
  const { id: sandbox, files } = await airlock.sandboxes.create()
  await files.write('dot.png', Buffer.from(PNG, 'base64'))
  // Scenarios of tools call those of the suite's own example server; ours that do the same stand in for them.
  forwarder = await Forwarder.start({
    target: server.url,
    key: server.developerKey,
    aliases: {
      test_simple_text: { name: 'run_command', arguments: { sandbox, argv: ['echo', 'hello'] } },
      test_image_content: { name: 'read_file', arguments: { sandbox, path: 'dot.png' } },
      test_error_handling: { name: 'read_file', arguments: { sandbox, path: 'nothing-here' } },
      test_tool_with_progress: {
        name: 'run_command',
        arguments: { sandbox, shell: 'for i in 1 2 3; do echo $i; sleep 0.4; done' },
      },
    },
  })
})
afterAll(async () => {
  await forwarder?.[Symbol.asyncDispose]()
  await server?.giveBack()
})

interface NotApplicable {
  readonly reason: string
  /** Scenario → the checks of it that cannot pass for that reason. */
  readonly scenarios: Failures
}

/** What does not apply to a server of tools, and why. Whatever else fails, or passes against this list, is a failure. */
const BASELINE = parseBaseline(readFileSync(new URL('conformance-baseline.json', import.meta.url), 'utf8'))

describe('the official conformance suite', requires('root'), () => {
  it.each(Object.entries(BASELINE))('passes for revision %s, but for what does not apply', async (revision, known) => {
    const found = await runConformance(`${forwarder.url}/mcp`, revision)
    const passing = Object.fromEntries(known.passing.map((scenario) => [scenario, []]))
    expect(found).toEqual({ ...passing, ...merged(known.notApplicable) })
  })
})

/** A scenario may have checks that do not apply for several reasons. */
function merged(groups: readonly NotApplicable[]): Failures {
  const all: Record<string, readonly string[]> = {}
  for (const [scenario, checks] of groups.flatMap((group) => Object.entries(group.scenarios)))
    all[scenario] = [...(all[scenario] ?? []), ...checks].toSorted()
  return all
}

function parseBaseline(
  text: string,
): Readonly<Record<string, { readonly passing: readonly string[]; readonly notApplicable: readonly NotApplicable[] }>> {
  return JSON.parse(text) as ReturnType<typeof parseBaseline>
}
