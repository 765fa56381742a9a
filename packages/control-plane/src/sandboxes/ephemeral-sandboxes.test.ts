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
    expect(sandboxes.historyOf('a', 'command.run')).toBe(sandboxes.historyOf('b', 'command.run'))
    expect(sandboxes.historyOf('a', 'command.run')).not.toBe(sandboxes.historyOf('c', 'command.run'))
    const other = new EphemeralSandboxes()
    other.add('d', false, { image: 'j' })
    expect(other.historyOf('d', 'command.run')).not.toBe(made('d').historyOf('d', 'command.run'))
  })

  it('is unknown while a change is under way, and after one that failed', () => {
    const sandboxes = made('a')
    const change = sandboxes.begin('a')
    expect([change.counts, sandboxes.historyOf('a', 'command.run'), sandboxes.has('a')]).toEqual([
      true,
      undefined,
      true,
    ])
  })

  it('is unknown after two changes at once, whichever ends first', () => {
    const sandboxes = made('a')
    const [one, two] = [sandboxes.begin('a'), sandboxes.begin('a')]
    expect(two.counts).toBe(false)
    two.finish({ path: 'y' })
    one.finish({ path: 'x' })
    expect(sandboxes.historyOf('a', 'command.run')).toBeUndefined()
  })

  it('is unknown after a command, which other things are in no order with, and stays so', () => {
    const sandboxes = made('a')
    sandboxes.disturb('a')
    sandboxes.append('a', { op: 'x' })
    sandboxes.begin('a').finish({ path: 'x' })
    expect(sandboxes.historyOf('a', 'command.run')).toBeUndefined()
  })

  it('is unknown when something was done during a change, though the change ends well', () => {
    for (const during of ['append', 'disturb'] as const) {
      const sandboxes = made('a')
      const change = sandboxes.begin('a')
      if (during === 'append') sandboxes.append('a', { op: 'remove' })
      else sandboxes.disturb('a')
      change.finish({ path: 'x' })
      expect(sandboxes.historyOf('a', 'command.run')).toBeUndefined()
    }
  })

  it('is of steps once a session is open, and of nothing once there are two or it was disturbed', () => {
    const sandboxes = made('a', 'b', 'c')
    for (const id of ['a', 'b', 'c']) sandboxes.openSession(id, { session: 'python' })
    expect(sandboxes.historyOf('a', 'command.run')).toBeUndefined()
    sandboxes.step('a', { code: 'x' }, false)
    expect(sandboxes.historyOf('a', 'step.run')).toMatch(/^[0-9a-f]{64}$/)
    expect(sandboxes.historyOf('a', 'step.run')).not.toBe(sandboxes.historyOf('b', 'step.run'))
    sandboxes.openSession('b', { session: 'python' })
    sandboxes.disturb('c')
    expect(['b', 'c'].map((id) => sandboxes.historyOf(id, 'step.run'))).toEqual([undefined, undefined])
  })

  it('seals the sandbox when an approval is used by it: nothing else is done beside that', () => {
    const sandboxes = made('a', 'b')
    const history = sandboxes.historyOf('a', 'command.run') ?? ''
    sandboxes.begin('b')
    expect(sandboxes.seal('b', 'command.run', history)).toBe(false)
    expect(sandboxes.seal('a', 'command.run', history)).toBe(true)
    expect(sandboxes.seal('a', 'command.run', history)).toBe(false)
    const deeds = [
      () => sandboxes.begin('a'),
      () => sandboxes.append('a', {}),
      () => sandboxes.disturb('a'),
      () => sandboxes.openSession('a', {}),
      () => sandboxes.step('a', {}, false),
    ]
    for (const deed of deeds) expect(deed).toThrow('A person approved what was done last in this sandbox')
    sandboxes.disturb('a', true)
    expect(sandboxes.historyOf('a', 'command.run')).toBeUndefined()
  })

  it('ends with the sandbox', () => {
    const sandboxes = made('a')
    const change = sandboxes.begin('a')
    sandboxes.remove('a')
    change.finish({ path: 'x' })
    expect([sandboxes.has('a'), sandboxes.historyOf('a', 'command.run'), sandboxes.has(null)]).toEqual([
      false,
      undefined,
      false,
    ])
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
