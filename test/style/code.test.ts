import { readdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { filesMatching, linesMatching, productSources, ROOT } from './repository.ts'

const sources = productSources()
const code = filesMatching(/^(?:packages|test|scripts|bench)\/.*\.[jt]sx?$|^[^/]+\.[jt]s$/)

describe('the code', () => {
  it('reads the environment only in config.ts', () => {
    const others = sources.filter(({ path }) => !/(?:^|\/)config\.ts$/.test(path))
    expect(linesMatching(others, /process\.env\b|from 'node:process'.*\benv\b/)).toEqual([])
  })

  it('asks whether it serves, or may grant, only where every request passes, and where none does', () => {
    // Doors are asked by sandboxes, not by routes; a place is taken long after its request came.
    const places =
      /control-plane\/src\/(?:api\/server|doors\/door-control|egress\/network-connections|models\/model-calls|tools\/tool-calls|sandboxes\/create|nodes\/readiness)\.ts$/
    const others = sources.filter(({ path }) => !places.test(path))
    expect(linesMatching(others, /readiness\.assert\(/)).toEqual([])
  })

  it('throws only errors that have a code', () => {
    expect(linesMatching(sources, /\bthrow (?:new )?Error\(/)).toEqual([])
  })

  it('has no default export, but where a tool asks for one', () => {
    const asked = new Set(['vitest.config.ts', 'scripts/vm/inside/vitest.config.ts', 'test/support/reporter.ts'])
    const others = code.filter(({ path }) => !asked.has(path))
    expect(linesMatching(others, /^export default\b|^export \{[^}]*\bas default\b/)).toEqual([])
  })

  it('has no `any` and no non-null assertion', () => {
    expect(linesMatching(sources, /(?::|\bas|<) ?any\b(?!\w)/)).toEqual([])
  })

  it('keeps files short', () => {
    const long = code.filter(
      ({ path, text }) => text.split('\n').length > (/^test\/|\.test\.ts$|\/conformance\.ts$/.test(path) ? 800 : 500),
    )
    expect(long.map(({ path }) => path)).toEqual([])
  })

  it('has no folder with more files than a reader looks through, but for tables', () => {
    const tables = /\/(?:verbs|migrations)$/
    const folders = Map.groupBy(sources, ({ path }) => dirname(path))
    const crowded = [...folders].filter(([folder, files]) => files.length > 30 && !tables.test(folder))
    expect(crowded.map(([folder]) => folder)).toEqual([])
  })

  it('numbers migrations without a gap, for a later one in a gap would never run', () => {
    const migrations = sources.filter(({ path }) => path.includes('/migrations/'))
    const numbers = migrations.map(({ path }) => Number(/\/(\d{4})-[a-z-]+\.ts$/.exec(path)?.[1]))
    expect(numbers).toEqual(numbers.map((_, index) => index + 1))
  })

  it('names files after a noun or a verb', () => {
    const vague = code.filter(({ path }) => /\/(?:utils?|helpers?|manager|service|common|misc)\.[jt]s$/.test(path))
    const shouting = code.filter(({ path }) => !/^[a-z0-9./-]+$/.test(path))
    expect([...vague, ...shouting].map(({ path }) => path)).toEqual([])
  })

  it('leaves nothing for later in a comment', () => {
    expect(linesMatching(code, /\b(?:T[O]DO|F[I]XME|X[X]X|H[A]CK)\b/)).toEqual([])
  })

  it('has content in every package', () => {
    const packages = readdirSync(join(ROOT, 'packages'))
    expect(packages.filter((name) => !sources.some(({ path }) => path.startsWith(`packages/${name}/src/`)))).toEqual([])
  })
})
