import { describe, expect, it } from 'vitest'
import { KillList, type KillOn } from './kill-list.ts'

function kill(of: Partial<KillOn>): KillOn {
  const by = { reason: '', actor: 'key:x', at: 1, liftedAt: null, liftedBy: null, isPersisted: true }
  return { id: 'kil_1', scope: 'agent', tenant: 'acme', target: 'a', ...by, ...of }
}

const ON = kill({})
const ALIVE = { tenant: 'acme', agent: 'b', sandbox: 'sbx_1' }

describe('KillList', () => {
  it.each([
    [{ scope: 'all', tenant: '', target: '' }, { tenant: 'x', agent: null, sandbox: null }, true],
    [{ scope: 'tenant', tenant: 'acme', target: '' }, { tenant: 'acme', agent: null, sandbox: null }, true],
    [{ scope: 'tenant', tenant: 'acme', target: '' }, { tenant: 'other', agent: 'a', sandbox: null }, false],
    [{ scope: 'agent', tenant: 'acme', target: 'a' }, { tenant: 'acme', agent: 'a', sandbox: null }, true],
    [{ scope: 'agent', tenant: 'acme', target: 'a' }, { tenant: 'other', agent: 'a', sandbox: null }, false],
    [{ scope: 'agent', tenant: 'acme', target: 'a' }, { tenant: 'acme', agent: null, sandbox: null }, false],
    [{ scope: 'sandbox', tenant: 'acme', target: 'sbx_1' }, ALIVE, true],
    [{ scope: 'sandbox', tenant: 'acme', target: 'sbx_1' }, { ...ALIVE, sandbox: 'sbx_2' }, false],
  ] as const)('%j covers %j: %s', (scope, of, isCovered) => {
    const list = new KillList()
    list.add(kill(scope))
    expect(list.covers(of) !== undefined).toBe(isCovered)
    if (isCovered) expect(() => list.assertAlive(of)).toThrow(expect.objectContaining({ code: 'killed' }))
    else expect(() => list.assertAlive(of)).not.toThrow()
  })

  it('takes over what other nodes turned on and lifted', () => {
    const list = new KillList()
    list.add(ON)
    const other = kill({ id: 'kil_2', target: 'b' })
    list.replace([other], list.kills)
    expect(list.kills).toEqual([other])
  })

  it('keeps what was turned on here while the store was asked, and what it does not have yet', () => {
    const list = new KillList()
    const unwritten = kill({ id: 'kil_3', target: 'c', isPersisted: false })
    list.add(unwritten)
    const asked = list.kills
    list.add(ON)
    list.replace([], asked)
    expect(list.kills).toEqual([unwritten, ON])
  })

  it('does not take back what was lifted here while the store was asked, and takes a new one of the same', () => {
    const list = new KillList()
    list.add(ON)
    const asked = list.kills
    list.remove(ON)
    list.replace([ON], asked)
    expect(list.kills).toEqual([])
    const again = kill({ id: 'kil_9' })
    list.replace([again], list.kills)
    expect(list.kills).toEqual([again])
  })
})
