import { expect, it } from 'vitest'
import { ByteBudget, TenantBytes } from './byte-budget.ts'

const KIB = 1024
const pools = () => ({ small: new TenantBytes(1024 * KIB), large: new TenantBytes(400 * KIB) })

it('a tenant holds half of what others leave, in however many sandboxes', () => {
  const { small, large } = pools()
  const sandbox = (tenant: string) => new ByteBudget({ tenant, most: 150 * KIB, small, large })
  const [one, two, other] = [sandbox('a'), sandbox('a'), sandbox('b')]
  const first = one.open()
  first.take((64 + 150) * KIB)
  expect(() => one.open().take(65 * KIB)).toThrow(expect.objectContaining({ code: 'too_many_requests' }))
  expect(() => two.open().take((64 + 51) * KIB)).toThrow('Too many large bodies')
  two.open().take((64 + 50) * KIB)
  expect(() => other.open().take((64 + 101) * KIB)).toThrow('Too many')
  other.open().take((64 + 100) * KIB)
  first.release()
  first.release()
  expect(() => two.open().take((64 + 101) * KIB)).toThrow('Too many')
  two.open().take((64 + 100) * KIB)
})

it('small bodies have room when no large one has', () => {
  const { small, large } = pools()
  const budget = new ByteBudget({ tenant: 'a', most: 200 * KIB, small, large })
  budget.open().take((64 + 200) * KIB)
  expect(() => budget.open().take(65 * KIB)).toThrow('Too many')
  budget.open().take(64 * KIB)
})
