import { DEFAULTS, type Permit, signPermit } from '@airlock/contract'
import { newId } from '@airlock/std'
import { generateKeyPairSync } from 'node:crypto'
import { mkdtemp, readdir, rm, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { PermitDesk } from './permit-desk.ts'

const { publicKey, privateKey } = generateKeyPairSync('ed25519')
const NOW = Date.now()
let directory: string

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'al-permits-'))
  await writeFile(join(directory, 'node'), 'here')
  await writeFile(join(directory, 'permit.pub'), publicKey.export({ type: 'spki', format: 'pem' }))
})

afterEach(async () => rm(directory, { recursive: true, force: true }))

it('takes a permit once, also after a restart', async () => {
  const token = signPermit(somePermit(), privateKey)
  expect(await desk().redeem(token)).toEqual(somePermit())
  await expect(desk().redeem(token)).rejects.toMatchObject({
    code: 'permit_rejected',
    message: 'The permit was used before.',
  })
})

it('claims nothing for a permit that is not ours', async () => {
  const forged = signPermit(somePermit(), generateKeyPairSync('ed25519').privateKey)
  await expect(desk().redeem(forged)).rejects.toMatchObject({ code: 'permit_rejected' })
  await expect(desk().redeem('not.a.permit')).rejects.toMatchObject({ code: 'permit_rejected' })
  const elsewhere = signPermit({ ...somePermit(), node: 'there' }, privateKey)
  await expect(desk().redeem(elsewhere)).rejects.toMatchObject({ message: 'The permit is for another node.' })
  expect((await readdir(directory)).toSorted()).toEqual(['node', 'permit.pub'])
})

it('lets exactly one of many at once have it', async () => {
  const token = signPermit(somePermit(), privateKey)
  const all = await Promise.allSettled(Array.from({ length: 20 }, () => desk().redeem(token)))
  expect(all.filter((one) => one.status === 'fulfilled').length).toBe(1)
})

it('forgets claims that are older than any permit', async () => {
  await desk().redeem(signPermit(somePermit(), privateKey))
  const old = new Date(NOW - 3_600_000)
  await utimes(join(directory, 'permits', 'pmt_1'), old, old)
  await desk().redeem(signPermit({ ...somePermit(), permitId: 'pmt_2' }, privateKey))
  expect(await readdir(join(directory, 'permits'))).toEqual(['pmt_2'])
})

it('keeps the claims of permits that are good where the clock of files is another', async () => {
  const now = NOW + 3_600_000
  const good = { ...somePermit(), expiresAt: now + 60_000 }
  const token = signPermit(good, privateKey)
  await desk(now).redeem(token)
  await desk(now).redeem(signPermit({ ...good, permitId: 'pmt_2' }, privateKey))
  await expect(desk(now).redeem(token)).rejects.toMatchObject({ message: 'The permit was used before.' })
})

function desk(now = NOW): PermitDesk {
  return new PermitDesk({ publicDir: directory, stateDir: directory, clock: { now: () => now } })
}

function somePermit(): Permit {
  return {
    permitId: 'pmt_1',
    sandbox: newId('sbx', 1).replace(/.{16}$/, '0'.repeat(16)),
    node: 'here',
    tenant: 'default',
    agent: 'default',
    generation: 1,
    template: 'base',
    image: 'host',
    tier: 'standard',
    limits: {
      memoryBytes: DEFAULTS.memoryBytes.default,
      cpus: DEFAULTS.cpus.default,
      pids: DEFAULTS.pids.default,
      diskBytes: DEFAULTS.diskBytes.default,
      inodes: DEFAULTS.inodes.default,
      openFiles: DEFAULTS.openFiles.default,
      cpuSeconds: null,
    },
    env: {},
    mounts: [],
    doors: [],
    conditions: {},
    policyVersion: 'builtin@1',
    reservation: 'rsv_1',
    expiresAt: NOW + 60_000,
    endsAt: NOW + 3_600_000,
  }
}
