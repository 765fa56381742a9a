import { describe, expect, it } from 'vitest'
import type { FreezeRequest } from '@airlock/contract'
import { isInScope, PermitBans } from './permit-bans.ts'

const OF = { tenant: 'acme', agent: 'a', sandbox: 'sbx_1' }
const EVERYTHING = { tenant: null, agent: null, sandbox: null }

const permitUntil = (expiresAt: number) => ({ ...OF, expiresAt })

describe('what is in a scope', () => {
  it.each([
    [EVERYTHING, true],
    [{ ...EVERYTHING, tenant: 'acme' }, true],
    [{ ...EVERYTHING, tenant: 'other' }, false],
    [{ tenant: 'acme', agent: 'a', sandbox: null }, true],
    [{ tenant: 'acme', agent: 'b', sandbox: null }, false],
    [{ tenant: 'other', agent: 'a', sandbox: null }, false],
    [{ ...EVERYTHING, sandbox: 'sbx_1' }, true],
    [{ ...EVERYTHING, sandbox: 'sbx_2' }, false],
  ])('%j: %s', (scope, isIn) => {
    expect(isInScope(scope, OF)).toBe(isIn)
  })
})

describe('PermitBans', () => {
  const ban = (permitsUntil: number, agent = 'a'): FreezeRequest => ({
    tenant: 'acme',
    agent,
    sandbox: null,
    permitsUntil,
  })

  it('cover what was signed before, and not what comes after', () => {
    const bans = new PermitBans({ now: () => 0 })
    bans.add(ban(1000))
    expect([1000, 1001].map((expiresAt) => bans.covers(permitUntil(expiresAt)))).toEqual([true, false])
  })

  it('hold beside each other, the later one of the same scope', () => {
    const bans = new PermitBans({ now: () => 0 })
    bans.add(ban(1000))
    bans.add(ban(9000, 'other'))
    bans.add(ban(2000))
    expect([2000, 2001].map((expiresAt) => bans.covers(permitUntil(expiresAt)))).toEqual([true, false])
  })

  it('are forgotten once nothing can be of use that they cover', () => {
    let now = 0
    const bans = new PermitBans({ now: () => now })
    bans.add(ban(1000))
    now = 1001
    bans.add(ban(9000, 'other'))
    expect(bans.covers(permitUntil(1000))).toBe(false)
  })
})
