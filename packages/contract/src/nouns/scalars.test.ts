import { newId } from '@airlock/std'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { commandId, envVars, name, sandboxId, sandboxPath } from './scalars.ts'

describe('names and paths', () => {
  it('takes the ids that we make, and no id of another kind', () => {
    expect(sandboxId.safeParse(newId('sbx')).success).toBe(true)
    expect(commandId.safeParse(newId('cmd')).success).toBe(true)
    expect(sandboxId.safeParse(newId('cmd')).success).toBe(false)
  })

  it.each(['', '..', '../x', 'a/../b', 'a/..', '/workspace/../etc', 'a\0b', 'x'.repeat(5_000)])(
    'refuses the path %j',
    (path) => {
      expect(sandboxPath.safeParse(path).success).toBe(false)
    },
  )

  it.each(['a', '/workspace/a b', 'a..b', '...', 'späße/文', '/'])('takes the path %j', (path) => {
    expect(sandboxPath.safeParse(path).success).toBe(true)
  })

  it('never takes a path with a parent segment or NUL, whatever else is in it', () => {
    const part = fc.oneof(fc.constantFrom('..', '.', '', 'a\0'), fc.string())
    fc.assert(
      fc.property(fc.array(part, { minLength: 1 }), (parts) => {
        const path = parts.join('/')
        const hostile = path.includes('\0') || path.split('/').includes('..')
        if (hostile) expect(sandboxPath.safeParse(path).success).toBe(false)
      }),
    )
  })

  it.each(['-x', 'x-', 'X', 'a b', 'x'.repeat(64), '', 'a/b', '\u001b[31m'])('refuses the name %j', (text) => {
    expect(name.safeParse(text).success).toBe(false)
  })

  it('refuses environment names that a shell would not take, NUL, and too much of it', () => {
    const tooMany = Object.fromEntries(Array.from({ length: 129 }, (_, i) => [`V${i}`, '']))
    for (const env of [{ 'A=B': '' }, { '1A': '' }, { A: 'x\0' }, tooMany, { A: 'x'.repeat(70_000) }])
      expect(envVars.safeParse(env).success).toBe(false)
    expect(envVars.safeParse({ A_1: 'any\ntext' }).success).toBe(true)
  })
})
