import { Airlock } from '@airlock/sdk'
import { expect, it } from 'vitest'
import { startServer } from '../support/server.ts'
import { switchShippedRulesOff } from '../support/shipped-rules.ts'

it(
  'a tree of 100,000 names gives what one collection may keep, and stops nobody else',
  { timeout: 600_000 },
  async () => {
    const server = await startServer()
    try {
      await switchShippedRulesOff(server)
      const airlock = new Airlock({ url: server.url, apiKey: server.developerKey })
      const sandbox = await airlock.sandboxes.create({ limits: { inodes: 200_000 } })
      await sandbox.run({ shell: 'mkdir n && cd n && seq 100000 | xargs touch' })
      const other = await airlock.sandboxes.create()
      const collecting = airlock.artifacts.collect(sandbox.id, ['n/*'])
      expect((await other.run(['echo', 'still here'])).stdout).toBe('still here\n')
      const { items, skipped } = await collecting
      expect(items.length).toBe(1000)
      expect(skipped.at(-1)).toEqual({ name: 'n/*', why: expect.stringContaining('more than 1000 files') })
    } finally {
      await server.stop()
    }
  },
)
