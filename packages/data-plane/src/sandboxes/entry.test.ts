import { expect, it } from 'vitest'
import { bury, type Entry } from './entry.ts'

const guestOf = (state: Entry['state']) => {
  const entry = { permit: { tier: 'standard' }, link: { close: async () => {} }, state, lostReason: null } as Entry
  const answer = Promise.withResolvers<'out_of_memory' | undefined>()
  return { entry, answer, buried: bury('sbx_1', entry, { lostFor: async () => answer.promise }) }
}

it('a dead guest is lost for what it was denied', async () => {
  const { entry, answer, buried } = guestOf('running')
  answer.resolve('out_of_memory')
  await buried
  expect(entry).toMatchObject({ state: 'lost', lostReason: 'guest_lost', lostFor: 'out_of_memory' })
})

it('an end that comes while the cause of a death is read stands', async () => {
  const { entry, answer, buried } = guestOf('running')
  entry.state = 'stopping'
  answer.resolve('out_of_memory')
  await buried
  expect(entry).toMatchObject({ state: 'stopping', lostReason: null })
})
