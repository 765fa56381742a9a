import { AirlockError } from '@airlock/contract'
import { expect, it } from 'vitest'
import { isUncertain } from './uncertain.ts'

it.each(['data_plane_unavailable', 'guest_lost', 'timeout'] as const)('%s leaves open whether a call acted', (code) => {
  expect(isUncertain(new AirlockError(code))).toBe(true)
})

it.each(['ECONNREFUSED', 'ENOENT'])('a call that nobody listened to (%s) did not act', (code) => {
  const cause = Object.assign(new Error('connect'), { code })
  expect(isUncertain(new AirlockError('data_plane_unavailable', undefined, { cause }))).toBe(false)
})

it('a refusal did not act', () => {
  expect(isUncertain(new AirlockError('too_many_commands'))).toBe(false)
  expect(isUncertain(new Error('timeout'))).toBe(false)
})
