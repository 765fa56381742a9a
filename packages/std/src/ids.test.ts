import { expect, it } from 'vitest'
import { newId, randomText } from './ids.ts'

it('makes ids that differ, sort by age and name their kind', () => {
  const ids = [1_000, 2_000, 1_800_000_000_000].map((now) => newId('sbx', now))
  expect(ids.toSorted()).toEqual(ids)
  for (const id of ids) expect(id).toMatch(/^sbx_[0-9a-hjkmnp-tv-z]{26}$/)
  expect(new Set(Array.from({ length: 1_000 }, () => newId('sbx', 1))).size).toBe(1_000)
  expect(randomText(40)).toMatch(/^[0-9a-hjkmnp-tv-z]{40}$/)
})
