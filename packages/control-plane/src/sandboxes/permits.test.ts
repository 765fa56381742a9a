import { createPublicKey } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { verifyPermit } from '@airlock/contract'
import { newId } from '@airlock/std'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { openPermitDesk, type PermitDesk } from './permits.ts'

let dir: string
beforeEach(() => (dir = mkdtempSync(join(tmpdir(), 'airlock-permits-'))))
afterEach(() => rmSync(dir, { recursive: true, force: true }))

const WHAT = {
  sandbox: newId('sbx'),
  node: 'here',
  tenant: 'default',
  agent: 'default',
  generation: 1,
  template: 'base',
  image: 'host',
  tier: 'standard',
  limits: {
    memoryBytes: 67_108_864,
    cpus: 1,
    pids: 16,
    diskBytes: 16_777_216,
    inodes: 65_536,
    openFiles: 4096,
    cpuSeconds: null,
  },
  env: { A: 'b' },
  mounts: [],
  doors: [],
  conditions: {},
  policyVersion: 'builtin@1',
  reservation: newId('rsv'),
  endsAt: 500_000,
} satisfies Parameters<PermitDesk['issue']>[0]

it('signs permits that the published key verifies, for a minute', async () => {
  const desk = await openPermitDesk(dir)
  await desk.publish(dir, 'here')
  const key = createPublicKey(readFileSync(join(dir, 'permit.pub')))
  const permit = desk.issue(WHAT, 1000)
  expect(verifyPermit(permit, key, 60_999)).toEqual({
    ...WHAT,
    permitId: expect.stringMatching(/^pmt_/),
    expiresAt: 61_000,
  })
  expect(() => verifyPermit(permit, key, 61_000)).toThrow('expired')
})

it.each(['', '-----BEGIN PRIVATE KEY-----\nMC4CAQAw', '\0'.repeat(119)])(
  'fails closed on a damaged key, and says what to do: %j',
  async (damage) => {
    await openPermitDesk(dir)
    const path = join(dir, 'permit.key')
    writeFileSync(path, damage)
    await expect(openPermitDesk(dir)).rejects.toMatchObject({
      code: 'state_damaged',
      message: `${path} is damaged: it holds no private key.`,
      hint: expect.stringContaining('or remove it'),
    })
    rmSync(path)
    await openPermitDesk(dir)
  },
)

it('keeps its key to itself, over restarts', async () => {
  await (await openPermitDesk(dir)).publish(dir, 'here')
  const key = createPublicKey(readFileSync(join(dir, 'permit.pub')))
  expect(statSync(join(dir, 'permit.key')).mode & 0o777).toBe(0o600)
  expect(statSync(join(dir, 'permit.pub')).mode & 0o777).toBe(0o644)
  rmSync(join(dir, 'permit.pub'))
  const again = await openPermitDesk(dir)
  await again.publish(dir, 'here')
  expect(verifyPermit(again.issue(WHAT, 1000), key, 2000)).toMatchObject(WHAT)
  expect(createPublicKey(readFileSync(join(dir, 'permit.pub'))).equals(key)).toBe(true)
})
