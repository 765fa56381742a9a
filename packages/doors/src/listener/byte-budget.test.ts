import { expect, it } from 'vitest'
import { ByteBudget } from './byte-budget.ts'

it('a share takes its bytes from the whole, and gives them back once', () => {
  const whole = new ByteBudget(100)
  const [one, two] = [new ByteBudget(80, whole), new ByteBudget(80, whole)]
  const release = one.take(80)
  expect(() => one.take(1)).toThrow(expect.objectContaining({ code: 'too_many_requests' }))
  expect(() => two.take(30)).toThrow('Too many large bodies')
  two.take(20)
  release()
  release()
  expect(() => two.take(61)).toThrow('Too many')
  one.take(80)
  expect(() => one.take(1)).toThrow('Too many')
})
