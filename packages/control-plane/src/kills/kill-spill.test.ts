import { mkdtempSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLog } from '@airlock/std'
import { afterEach, beforeEach, expect, it } from 'vitest'
import type { StoredKill } from '../store/kills.ts'
import { type KillSpill, openKillSpill } from './kill-spill.ts'

let dir: string
let spill: KillSpill
let logged: string[]

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'airlock-spill-'))
  logged = []
  spill = open()
})

afterEach(() => {
  spill.close()
  rmSync(dir, { recursive: true })
})

const path = () => join(dir, 'unstored-kills')
const open = () =>
  openKillSpill(dir, createLog({ process: 'control-plane', level: 'warn', write: (line) => void logged.push(line) }))
const reopened = () => {
  spill.close()
  spill = open()
  return spill.found
}
const kill = (id: string, scope: StoredKill['scope'] = 'agent', reason = ''): StoredKill => ({
  id,
  scope,
  tenant: 'acme',
  target: id,
  reason,
  actor: 'key:a',
  at: 1,
  liftedAt: null,
  liftedBy: null,
})

it('finds what was kept last, after any number of changes', () => {
  expect(reopened()).toEqual([])
  for (const kept of [[kill('a')], [kill('a'), kill('b')], [kill('b')]]) {
    spill.keep(kept)
    expect(reopened()).toEqual(kept)
  }
  spill.keep([])
  expect(reopened()).toEqual([])
  expect(logged).toEqual([])
})

it('takes its room beforehand, and needs no more', () => {
  const { size, blocks } = statSync(path())
  spill.keep([kill('a', 'agent', 'x'.repeat(500))])
  expect(statSync(path())).toMatchObject({ size, blocks })
})

it('finds what was kept before when a write was cut off', () => {
  spill.keep([kill('a')])
  spill.keep([kill('a'), kill('b')])
  const bytes = readFileSync(path())
  bytes[100] = 0
  writeFileSync(path(), bytes)
  expect(reopened()).toEqual([kill('a')])
})

it('says so when nothing of it can be read', () => {
  spill.keep([kill('a')])
  spill.keep([kill('b')])
  truncateSync(path(), 50)
  const bytes = readFileSync(path())
  writeFileSync(path(), Buffer.concat([bytes, Buffer.alloc(128 * 1024 - 50), bytes]))
  expect(reopened()).toEqual([])
  expect(logged.join('')).toContain('cannot be read any more')
})

it.each([0, 128 * 1024])('says so when it was cut to %i bytes', (size) => {
  spill.keep([kill('a')])
  spill.close()
  truncateSync(path(), size)
  spill = open()
  expect(logged.join('')).toContain('kills that the store had not taken may be missing')
})

it('keeps the widest when there is not room for all, and says so', () => {
  const many = Array.from({ length: 500 }, (_, index) => kill(`k${index}`, 'sandbox', 'x'.repeat(500)))
  spill.keep([...many, kill('all', 'all')])
  const found = reopened()
  expect(found[0]).toEqual(kill('all', 'all'))
  expect(found.length).toBeGreaterThan(100)
  expect(logged.join('')).toContain('too many kills')
})
