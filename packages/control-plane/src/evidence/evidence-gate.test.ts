import type { AuditSink } from '@airlock/audit'
import { type Decision, isGoverned, type NewRecord, type Point, POINTS } from '@airlock/contract'
import { expect, it } from 'vitest'
import { staged } from '../testing/staged.ts'
import { EvidenceGate } from './evidence-gate.ts'

const ALLOW: Decision = { effect: 'allow', risk: 'low', rules: [], conditions: {}, policyVersion: 'builtin@1' }
const points = Object.keys(POINTS) as readonly Point[]

function gate(): { readonly gate: EvidenceGate; readonly kept: NewRecord[] } {
  const kept: NewRecord[] = []
  const keep = (record: NewRecord) => void kept.push(record)
  const sink: AuditSink = { require: async (record) => keep(record), note: keep, flush: async () => {} }
  return { gate: new EvidenceGate(staged(sink)), kept }
}

const record = (point: Point): NewRecord => ({ tenant: 'default', actor: 'key:x', point, status: 'requested' })

it.each(points.filter(isGoverned))('%s is not recorded as requested unless Guardian allowed it', async (point) => {
  const { gate: tried, kept } = gate()
  const unasked = { code: 'internal', message: `Guardian was not asked about ${point}.` }
  await expect(tried.require(record(point))).rejects.toMatchObject(unasked)
  await expect(tried.requireWritten(record(point))).rejects.toMatchObject(unasked)
  expect(() => tried.note(record(point))).toThrow(unasked.message)
  const denied: NewRecord = { ...record(point), decision: { ...ALLOW, effect: 'deny' } }
  await expect(tried.require(denied)).rejects.toMatchObject(unasked)
  expect(kept).toEqual([])
  const allowed = { ...record(point), decision: ALLOW }
  await tried.require(allowed)
  await (
    await tried.requireWritten(allowed)
  ).durable
  expect(kept).toEqual([allowed, allowed])
})

it('lets everything else pass: what reduces, what governs policies, and what is refused', async () => {
  const { gate: tried, kept } = gate()
  const ungoverned = points.filter((point) => !isGoverned(point))
  for (const point of ungoverned) await tried.require(record(point))
  for (const point of points) tried.note({ ...record(point), status: 'denied' })
  expect(kept).toHaveLength(ungoverned.length + points.length)
  expect(ungoverned).toEqual(expect.arrayContaining(['sandbox.terminate', 'policy.put', 'approval.approve', 'kill.on']))
})
