import { setImmediate as nextTurn } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { Turns } from './turns.ts'

describe('turns', () => {
  it('let one request begin in each turn of the event loop, the first at once', async () => {
    const turns = new Turns()
    const begun: number[] = []
    for (const at of [0, 1, 2]) turns.take('other', ['acme', 'key'], () => begun.push(at))
    const seen = [[...begun]]
    for (let turn = 0; turn < 3; turn++) {
      await nextTurn()
      seen.push([...begun])
    }
    expect(seen).toEqual([[0], [0, 1], [0, 1, 2], [0, 1, 2]])
  })

  it('go round tenants, and round the callers of a tenant', async () => {
    const order = await orderOf((turns, begin) => {
      for (const at of [1, 2, 3]) turns.take('other', ['acme', 'a'], begin(`acme a${at}`))
      turns.take('other', ['acme', 'b'], begin('acme b'))
      turns.take('other', ['default', 'c'], begin('default c'))
    })
    expect(order).toEqual(['acme a1', 'acme a2', 'default c', 'acme b', 'acme a3'])
  })

  it('let what takes power away begin beside the rest', async () => {
    const order = await orderOf((turns, begin) => {
      for (const at of [1, 2, 3]) turns.take('other', ['acme', 'a'], begin(`ask ${at}`))
      for (const at of [1, 2]) turns.take('reduces', ['acme', 'a'], begin(`kill ${at}`))
    })
    expect(order).toEqual(['ask 1', 'kill 1', 'kill 2', 'ask 2', 'ask 3'])
  })

  it('pass by whoever left', async () => {
    const order = await orderOf((turns, begin) => {
      turns.take('other', ['acme', 'a'], begin('first'))
      const leave = turns.take('other', ['acme', 'a'], begin('left'))
      turns.take('other', ['default', 'b'], begin('last'))
      leave()
      leave()
    })
    expect(order).toEqual(['first', 'last'])
  })

  it('only accept for as long as work took, while connections come in', async () => {
    let now = 0
    const turns = new Turns(() => now)
    const begun: string[] = []
    const slow = (): void => void begun.push(`at ${now}`)
    for (const _ of [1, 2, 3]) turns.take('other', ['acme', 'a'], slow)
    now = 10
    for (let turn = 0; turn < 12; turn++) {
      turns.accepted()
      await nextTurn()
      now += 2
    }
    expect(begun).toEqual(['at 0', 'at 20', 'at 24'])
  })
})

async function orderOf(ask: (turns: Turns, begin: (name: string) => () => void) => void): Promise<readonly string[]> {
  const order: string[] = []
  ask(new Turns(), (name) => () => void order.push(name))
  for (let turn = 0; turn < 10; turn++) await nextTurn()
  return order
}
