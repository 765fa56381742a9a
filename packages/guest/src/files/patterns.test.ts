import { describe, expect, it } from 'vitest'
import { compilePatterns } from './patterns.ts'

const compile = (...patterns: string[]) => compilePatterns(patterns, '/workspace')

describe('a pattern', () => {
  it.each([
    ['out', '/workspace/out', true],
    ['out', '/workspace/out/x', false],
    ['out/*', '/workspace/out/x', true],
    ['out/*', '/workspace/out/x/y', false],
    ['out/**', '/workspace/out/x/y', true],
    ['out/**', '/workspace/outer/x', false],
    ['**/*.csv', '/workspace/a.csv', true],
    ['**/*.csv', '/workspace/a/b/c.csv', true],
    ['**/x/**/y', '/workspace/a/x/y', true],
    ['**/x/**/y', '/workspace/a/x/b/c/y', true],
    ['**/x/**/y', '/workspace/a/y', false],
    ['/tmp/?.log', '/tmp/1.log', true],
    ['/tmp/?.log', '/tmp/12.log', false],
    ['a*b*c', '/workspace/aXbYbZc', true],
    ['a*b*c', '/workspace/ac', false],
    ['[ab]', '/workspace/a', false],
    ['/**', '/etc/passwd', true],
  ])('%s of %s: %s', (pattern, path, expected) => {
    expect(compile(pattern).matches(path)).toBe(expected)
  })

  it('is looked for where it begins, and nowhere twice', () => {
    expect(compile('out/**', 'out/x/*.csv', '/tmp/a', 'o*t').roots).toEqual(['/tmp/a', '/workspace'])
    expect(compile('/**', 'x').roots).toEqual(['/'])
  })

  it('leads only to directories in which something could match', () => {
    const patterns = compile('out/*/x', '/tmp/**')
    const mayLeadTo = (path: string) => patterns.mayLeadTo(path)
    expect(['/workspace/out', '/workspace/out/a', '/workspace/out/a/b', '/tmp/a/b', '/etc'].map(mayLeadTo)).toEqual([
      true,
      true,
      false,
      true,
      false,
    ])
  })

  it('with many stars is matched in bounded work', () => {
    const pattern = '*a'.repeat(100)
    expect(compile(pattern).matches(`/workspace/${'a'.repeat(99)}b`)).toBe(false)
    expect(compile('**/'.repeat(60) + 'x').matches(`/workspace/${'y/'.repeat(120)}z`)).toBe(false)
  })
})
