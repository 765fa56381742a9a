import { expect, it } from 'vitest'
import { filesMatching, linesMatching } from './repository.ts'

const ours = filesMatching(/^python\/.*\.py$/)

it('the client in Python has the version of the packages', () => {
  const [manifest] = filesMatching(/^packages\/sdk\/package\.json$/)
  const [project] = filesMatching(/^python\/pyproject\.toml$/)
  const version = /^ {2}"version": "(.*)",$/m.exec(manifest?.text ?? '')?.[1]
  expect(/^version = "(.*)"$/m.exec(project?.text ?? '')?.[1]).toBe(version)
  expect(project?.text).toContain('\ndependencies = []\n')
})

it('the client in Python keeps files and lines short, but for what is generated', () => {
  const written = ours.filter(({ text }) => !text.includes('Made by `npm run docs:generate`'))
  expect(written.length).toBeGreaterThan(20)
  expect(written.filter(({ text }) => text.split('\n').length > 500).map(({ path }) => path)).toEqual([])
  expect(linesMatching(written, /^.{121,}$/)).toEqual([])
})

it('the client in Python imports the standard library and itself', () => {
  const library =
    /^(?:__future__|base64|binascii|codecs|dataclasses|http|json|math|os|pathlib|re|select|socket|ssl|tempfile|threading|time|types|typing|urllib|uuid)\b/
  const sources = ours.filter(({ path }) => path.startsWith('python/src/'))
  const imported = linesMatching(sources, /^(?:import|from) /).map((line) => line.replace(/^\S+ (?:import|from) /, ''))
  expect(imported.length).toBeGreaterThan(50)
  expect(imported.filter((line) => !/^(?:\.|airlock_sandbox )/.test(line) && !library.test(line))).toEqual([])
})
