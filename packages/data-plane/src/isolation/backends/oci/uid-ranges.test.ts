import { mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { UidRanges } from './uid-ranges.ts'

const FIRST = 0x70_00_00_00 + 65_536

function place(): { claims: string; sandbox: (name: string) => string } {
  const root = mkdtempSync(join(tmpdir(), 'uid-ranges-'))
  onTestFinished(() => rmSync(root, { recursive: true }))
  return {
    claims: join(root, 'claims'),
    sandbox: (name) => {
      mkdirSync(join(root, name))
      return join(root, name)
    },
  }
}

describe('UidRanges', () => {
  it('gives every sandbox a range of its own and gives it back', () => {
    const { claims, sandbox } = place()
    const ranges = new UidRanges(claims, [])
    const [a, b, c] = [sandbox('a'), sandbox('b'), sandbox('c')]
    expect(ranges.claim(a)).toEqual({ first: FIRST, count: 65_536 })
    expect(new UidRanges(claims, []).claim(b)).toEqual({ first: FIRST + 65_536, count: 65_536 })
    ranges.release(a)
    ranges.release(a)
    expect(ranges.holds(a)).toBe(false)
    expect(ranges.claim(c)).toEqual({ first: FIRST, count: 65_536 })
  })

  it('never gives a range that overlaps one of the administrator', () => {
    const { claims, sandbox } = place()
    const reserved = [
      { first: FIRST + 70_000, count: 10 },
      { first: 100_000, count: 65_536 },
    ]
    const ranges = new UidRanges(claims, reserved)
    expect([ranges.claim(sandbox('a')).first, ranges.claim(sandbox('b')).first]).toEqual([FIRST, FIRST + 2 * 65_536])
  })

  it('takes a range over only when the directory of its holder is gone', () => {
    const { claims, sandbox } = place()
    // All but two slots are reserved.
    const ranges = new UidRanges(claims, [{ first: FIRST + 2 * 65_536, count: 2 ** 31 }])
    const [a, b, c] = [sandbox('a'), sandbox('b'), sandbox('c')]
    const first = ranges.claim(a)
    ranges.claim(b)
    expect(() => ranges.claim(c)).toThrow('Every range of host uids is in use.')
    rmSync(a, { recursive: true })
    expect(ranges.claim(c)).toEqual(first)
    expect(readdirSync(claims).sort()).toEqual(['0', '1'])
  })
})
