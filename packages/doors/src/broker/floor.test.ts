import { expect, it } from 'vitest'
import { untilMultiple } from './floor.ts'

it('an answer leaves at the floor, or at its next multiple', () => {
  const at = (elapsed: number) => elapsed + untilMultiple(elapsed)
  expect([0, 1, 49.9, 50, 50.1, 99, 100, 1234].map(at)).toEqual([50, 50, 50, 50, 100, 100, 100, 1250])
})
