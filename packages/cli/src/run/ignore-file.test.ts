import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { UsageError } from '../usage.ts'
import { ignoreOf, parsePatterns } from './ignore-file.ts'

it.each([
  ['*.log', 'a.log', true],
  ['*.log', 'deep/er/a.log', true],
  ['*.log', 'a.log.txt', false],
  ['/a.log', 'a.log', true],
  ['/a.log', 'deep/a.log', false],
  ['docs/*.md', 'docs/a.md', true],
  ['docs/*.md', 'docs/deep/a.md', false],
  ['docs/**', 'docs/deep/a.md', true],
  ['**/out/x', 'a/b/out/x', true],
  ['**/out/x', 'out/x', true],
  ['?.txt', 'a.txt', true],
  ['?.txt', 'ab.txt', false],
  ['a+b(c)', 'a+b(c)', true],
  ['# a', '# a', false],
])('the pattern %s and the path %s: left out is %s', (pattern, path, expected) => {
  expect(parsePatterns(`${pattern}\r\n\n`).some((ignores) => ignores(path, 'file'))).toBe(expected)
})

it('a slash at the end means directories alone', () => {
  const [ignores] = parsePatterns('build/')
  expect([ignores?.('a/build', 'directory'), ignores?.('build', 'file')]).toEqual([true, false])
})

it('a line that would take something back in is refused', () => {
  expect(() => parsePatterns('*.log\n!keep.log')).toThrow(UsageError)
})

it('a directory leaves out what is usual and what its file names, and nothing with --all', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'airlock-ignore-'))
  try {
    await writeFile(join(directory, '.airlockignore'), 'dist\n')
    const ignore = await ignoreOf(directory, false)
    const paths = ['.git', 'a/node_modules', 'dist', 'src', '.gitignore']
    expect(paths.filter((path) => ignore?.(path, 'directory'))).toEqual(['.git', 'a/node_modules', 'dist'])
    const named = await ignoreOf(join(directory, 'node_modules'), false)
    expect(named?.('a/node_modules', 'directory')).toBe(false)
    expect(await ignoreOf(directory, true)).toBeUndefined()
  } finally {
    await rm(directory, { recursive: true })
  }
})
