import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { AuditSink } from '@airlock/audit'
import { AirlockError } from '@airlock/contract'
import { systemClock } from '@airlock/std'
import { ApprovalNews } from '../../approvals/news.ts'
import { prepareFirstStart } from '../../identity/first-start.ts'
import { GuardKeys } from '../../identity/guard-keys.ts'
import { ApprovalAnswers } from '../../approvals/approvals.ts'
import { SealKeyFile } from '../../tools/seal-key-file.ts'
import { Secrets } from '../../tools/secrets.ts'
import { ToolRegistry } from '../../tools/tool-registry.ts'
import { WebhookRegistry } from '../../webhooks/registry.ts'
import type { App } from '../../app/app.ts'
import { DataPlaneClient } from '../../nodes/data-plane-client.ts'
import { Heartbeats } from '../../agents/heartbeats.ts'
import type { Kills } from '../../kills/killswitch.ts'
import { makeGuardian } from '../../testing/guardian.ts'
import { staged } from '../../testing/staged.ts'
import { createRegistry, type Registry } from '../../app/registry.ts'
import { setKeyUsed } from '../../store/api-keys.ts'
import { LatestTimes } from '../../store/engine/latest-times.ts'
import { openStore } from '../../store/engine/store.ts'

const BUDGET = {
  sandboxes: 5,
  memoryBytes: 2 ** 31,
  diskBytes: 2 ** 33,
  cpus: 2,
  computeSecondsPerDay: 172_800,
  dollarsPerDay: 10,
  modelCallsPerDay: 1000,
  modelTokensPerDay: 1_000_000,
}

const notHere = async () => Promise.reject(new AirlockError('not_ready'))
/** There is nothing here to kill. */
const NO_KILLSWITCH: Kills = { on: notHere, list: async () => [], lift: notHere }

export type TestWho = Registry & Pick<App, 'killswitch' | 'approvals' | 'webhooks' | 'secrets' | 'tools'>

/** For tests of the HTTP edge, the SDK and the CLI only: the real registry on a store of its own, with no sandboxes. */
export async function makeTestWho(audit: AuditSink): Promise<{ readonly who: TestWho; dispose(): Promise<void> }> {
  const dir = mkdtempSync(join(tmpdir(), 'airlock-test-who-'))
  const store = await openStore({ file: join(dir, 'airlock.db') })
  await prepareFirstStart(store, { keysDir: dir, clock: systemClock, node: 'here' })
  const heartbeats = new Heartbeats({ store, clock: systemClock })
  const keyUses = new LatestTimes(store, setKeyUsed)
  const node = { id: 'here', holder: 'here' }
  const here = { node, dataPlane: new DataPlaneClient({ unix: '/nonexistent' }), ...makeGuardian(store, audit) }
  const world = {
    store,
    audit: staged(audit),
    clock: systemClock,
    heartbeats,
    keyUses,
    guardKeys: new GuardKeys({ store, clock: systemClock }),
    budgetDefaults: BUDGET,
    approvesVersions: false,
    ...here,
  }
  const ends = {
    agentEnds: { endSandboxesOf: async () => {} },
    grantEnds: { endHoldersOf: async () => {} },
  }
  const asked = {
    killswitch: NO_KILLSWITCH,
    approvals: new ApprovalAnswers({ ...world, approvalNews: new ApprovalNews() }),
    webhooks: new WebhookRegistry({ ...world, webhookPrivate: true }),
    secrets: new Secrets({ ...world, sealKey: new SealKeyFile('/nonexistent') }),
    tools: new ToolRegistry(world),
  }
  const dispose = async (): Promise<void> => {
    await store.close()
    rmSync(dir, { recursive: true, force: true })
  }
  return { who: { ...createRegistry(world, ends), ...asked }, dispose }
}
