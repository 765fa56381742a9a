import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { compileGlob, compileGlobs } from './glob.ts'

describe('a glob of paths', () => {
  it.each([
    ['/etc', '/etc', true],
    ['/etc', '/etc/x', false],
    ['/etc/*', '/etc/x', true],
    ['/etc/*', '/etc/x/y', false],
    ['/etc/**', '/etc/x/y', true],
    ['/etc/**', '/etc', true],
    ['/etc/**', '/etcetera', false],
    ['/home/*/.ssh/**', '/home/me/.ssh', true],
    ['/home/*/.ssh/id_*', '/home/me/.ssh/id_rsa', true],
    ['/home/*/.ssh/id_*', '/home/a/b/.ssh/id_rsa', false],
    ['**/.ssh/**', '/a/b/.ssh/c', true],
    ['/dev/sd?', '/dev/sda', true],
    ['/proc/[0-9]*/environ', '/proc/12/environ', true],
    ['/proc/[!0-9]*/environ', '/proc/12/environ', false],
    ['/[*]', '/*', true],
    ['/[*]', '/x', false],
    ['/[x', '/[x', true],
  ])('%s on %s: %s', (glob, path, expected) => {
    expect(compileGlob(glob, 'path')(path)).toBe(expected)
  })
})

describe('a glob of texts', () => {
  it.each([
    ['mkfs.*', 'mkfs.ext4', true],
    ['http://*', 'http://x/y/z', true],
    ['*.pem', 'a/b.pem', true],
    ['*AKIA*', 'xAKIAx', true],
    ['a*b*c', 'a/b/c', true],
    ['a*b*c', 'acb', false],
  ])('%s on %s: %s', (glob, text, expected) => {
    expect(compileGlob(glob, 'text')(text)).toBe(expected)
  })

  it('never throws, and takes what it is made of', () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), (glob, text) => typeof compileGlob(glob, 'path')(text) === 'boolean'),
    )
    fc.assert(fc.property(fc.stringMatching(/^[\w/.-]*$/u), (text) => compileGlob(text, 'text')(text)))
  })
})

describe('a list of globs', () => {
  it('matches any of them, unless one with ! does', () => {
    const { matches } = compileGlobs(['/usr/**', '!/usr/local/**'], 'path')
    expect(['/usr/bin', '/usr/local/bin', '/etc'].map(matches)).toEqual([true, false, false])
  })

  it('of only such ones matches everything else', () => {
    const { matches } = compileGlobs(['!echo'], 'text')
    expect(['echo', 'cat'].map(matches)).toEqual([false, true])
  })
})
