import { expect, it } from 'vitest'
import { Turns } from './turns.ts'

/** Work that names itself when it begins, and lasts until it is ended. */
function scene(places: number) {
  const turns = new Turns(places)
  const begun: string[] = []
  const ends = new Map<string, () => void>()
  const ask = (name: string) => {
    const [tenant = '', sandbox = ''] = name.split('/')
    void turns.during({ tenant, sandbox }, async () => {
      begun.push(name)
      await new Promise<void>((resolve) => ends.set(name, resolve))
    })
  }
  const end = async (name: string) => {
    ends.get(name)?.()
    await new Promise((resolve) => setImmediate(resolve))
  }
  return { begun, ask, end }
}

it('a tenant holds one place, in however many sandboxes', async () => {
  const { begun, ask, end } = scene(2)
  for (const name of ['a/1/x', 'a/2/x', 'a/3/x', 'b/1/x']) ask(name)
  await end('')
  expect(begun).toEqual(['a/1/x', 'b/1/x'])
  await end('b/1/x')
  expect(begun).toHaveLength(2)
  await end('a/1/x')
  expect(begun.at(-1)).toBe('a/2/x')
})

it('tenants take turns, and so do the sandboxes of a tenant', async () => {
  const { begun, ask, end } = scene(1)
  const asked = ['a/1/x', 'a/1/y', 'a/1/z', 'a/2/x', 'b/1/x', 'b/1/y', 'c/1/x']
  for (const name of asked) ask(name)
  for (let at = 0; at < asked.length; at++) await end(begun.at(-1) ?? '')
  expect(begun).toEqual(['a/1/x', 'a/1/y', 'b/1/x', 'c/1/x', 'a/2/x', 'b/1/y', 'a/1/z'])
})

it('a place whose work fails is free again', async () => {
  const turns = new Turns(1)
  const holder = { tenant: 'a', sandbox: '1' }
  const failing = turns.during(holder, async () => Promise.reject(new Error('failed')))
  await expect(failing).rejects.toThrow('failed')
  await expect(turns.during(holder, async () => 'done')).resolves.toBe('done')
})
