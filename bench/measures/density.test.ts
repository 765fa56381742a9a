import { expect, it } from 'vitest'
import { slope } from './density.ts'

it('takes the slope of what is on a line, and is not moved by one point that is not', () => {
  const line = [10, 20, 30, 40, 50].map((count) => [count, 100 + 3 * count] as const)
  expect(slope(line)).toBe(3)
  expect(slope([...line, [60, 5000]])).toBe(3)
})
