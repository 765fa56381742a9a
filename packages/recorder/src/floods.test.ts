import { createSecretKey, generateKeyPairSync, randomBytes } from 'node:crypto'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { newRecord, type NewRecord } from '@airlock/contract'
import { createLog, newId, systemClock } from '@airlock/std'
import { expect, it } from 'vitest'
import { Floods } from './floods.ts'
import { Recorder } from './recorder.ts'

const { privateKey, publicKey } = generateKeyPairSync('ed25519')
const publicPem = publicKey.export({ format: 'pem', type: 'spki' }).toString()
const keys = { signing: privateKey, public: publicKey, publicPem, mac: createSecretKey(randomBytes(32)) }
const log = createLog({ process: 'recorder', level: 'silent', write: () => {} })

const entry = (fields: Partial<NewRecord> = {}, patient = false) => {
  const record = { tenant: 'default', actor: 'key:flood', point: 'command.run', status: 'requested', ...fields }
  return { rid: newId('rec'), process: 'control-plane', record: newRecord.parse(record), patient }
}

it('refuses the key that floods when all that is kept is young, and drops nothing of what was before', async () => {
  const chainsDir = join(mkdtempSync(join(tmpdir(), 'airlock-floods-')), 'chains')
  mkdirSync(chainsDir)
  const retention = { days: 30, maxBytes: 60_000, minAgeHours: 24 }
  const options = { chainsDir, keys, log, retention, clock: systemClock, failpoint: async () => {} }
  const recorder = new Recorder({ ...options, segmentBytes: 10_000 })
  await recorder.open()
  try {
    await recorder.append(entry({ actor: 'key:good', payload: { first: true } }))
    await recorder.append(entry({ tenant: 'other', actor: 'key:good' }))
    const flood = async () => {
      for (let n = 0; n < 5000; n++) await recorder.append(entry({ payload: { text: 'x'.repeat(500) } }))
    }
    await expect(flood()).rejects.toMatchObject({ code: 'evidence_full' })
    // Its refusals are the flood; how its work ended, and what it takes away, is not.
    await expect(recorder.append(entry({ point: 'auth.refuse', status: 'denied' }, true))).rejects.toMatchObject({
      code: 'evidence_full',
    })
    await recorder.append(entry({ status: 'done' }, true))
    await recorder.append(entry({ point: 'kill.on', status: 'done' }, true))
    await recorder.append(entry({ actor: 'key:good' }))
    await recorder.append(entry({ tenant: 'other', actor: 'key:good' }))
    const { retention: rules, firstSeq } = await recorder.stats('default')
    expect([firstSeq, rules.dropped]).toEqual([1, null])
  } finally {
    await recorder.close()
    rmSync(join(chainsDir, '..'), { recursive: true })
  }
})

it('refuses the grants of a tenant when no single key is to blame, then the next when that did not help', () => {
  const floods = new Floods(systemClock)
  for (const actor of ['key:a', 'key:b', 'key:c']) floods.add(entry({ actor }), 1000)
  floods.add(entry({ tenant: 'small', actor: 'key:one' }), 100)
  expect(floods.blame(10_000_000)).toBe('default')
  expect(() => floods.assertRoom(entry({ actor: 'key:d' }))).toThrow('no room for more evidence of default')
  floods.assertRoom(entry({ actor: 'key:a', status: 'denied' }, true))
  floods.assertRoom(entry({ tenant: 'small' }))
  expect(floods.blame(10_000_000)).toBeUndefined()
  expect(floods.blame(20_000_000)).toBe('small key:one')
  floods.clear()
  floods.assertRoom(entry({ actor: 'key:d' }))
})
