import { describe, expect, it } from 'vitest'
import { EphemeralSandboxes, hashThrough } from './ephemeral-sandboxes.ts'

function made(...ids: string[]): EphemeralSandboxes {
  const sandboxes = new EphemeralSandboxes()
  for (const id of ids) sandboxes.add(id, false, { image: 'i' })
  return sandboxes
}

describe('the history of an ephemeral sandbox', () => {
  it('is equal where making and changes are equal, in the same order', () => {
    const sandboxes = made('a', 'b', 'c')
    const files = [
      { path: 'x', sha256: '1' },
      { path: 'y', sha256: '2' },
    ] as const
    for (const id of ['a', 'b']) for (const file of files) sandboxes.begin(id).finish(file)
    for (const file of files.toReversed()) sandboxes.begin('c').finish(file)
    expect(sandboxes.historyOf('a')).toBe(sandboxes.historyOf('b'))
    expect(sandboxes.historyOf('a')).not.toBe(sandboxes.historyOf('c'))
    const other = new EphemeralSandboxes()
    other.add('d', false, { image: 'j' })
    expect(other.historyOf('d')).not.toBe(made('d').historyOf('d'))
  })

  it('is unknown while a change is under way, and after one that failed', () => {
    const sandboxes = made('a')
    const change = sandboxes.begin('a')
    expect([change.counts, sandboxes.historyOf('a'), sandboxes.has('a')]).toEqual([true, undefined, true])
  })

  it('is unknown after two changes at once, whichever ends first', () => {
    const sandboxes = made('a')
    const [one, two] = [sandboxes.begin('a'), sandboxes.begin('a')]
    expect(two.counts).toBe(false)
    two.finish({ path: 'y' })
    one.finish({ path: 'x' })
    expect(sandboxes.historyOf('a')).toBeUndefined()
  })

  it('is unknown after something whose bytes are not known, and stays so', () => {
    const sandboxes = made('a')
    sandboxes.forgetHistory('a')
    sandboxes.append('a', { command: 'x' })
    sandboxes.begin('a').finish({ path: 'x' })
    expect(sandboxes.historyOf('a')).toBeUndefined()
  })

  it('ends with the sandbox', () => {
    const sandboxes = made('a')
    const change = sandboxes.begin('a')
    sandboxes.remove('a')
    change.finish({ path: 'x' })
    expect([sandboxes.has('a'), sandboxes.historyOf('a'), sandboxes.has(null)]).toEqual([false, undefined, false])
  })
})

it('bytes that pass are hashed, and arrive as they are', async () => {
  const hashed = hashThrough(
    (async function* () {
      yield Buffer.from('he')
      yield Buffer.from('llo')
    })(),
    true,
  )
  expect(Buffer.concat(await Array.fromAsync(hashed.bytes)).toString()).toBe('hello')
  expect(hashed.digest()).toBe('2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824')
})
