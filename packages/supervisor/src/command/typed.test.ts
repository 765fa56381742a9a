import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { typedCommand } from './typed.ts'

let home: string
let program: string
let link: string
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "al-it's-"))
  program = makeProgram('clone')
  link = makeDirectory('bin')
  symlinkSync(program, join(link, 'airlock'))
})
afterEach(() => rmSync(home, { recursive: true }))

function makeDirectory(name: string): string {
  const directory = join(home, name)
  mkdirSync(directory, { recursive: true })
  return directory
}

function makeProgram(name: string, mode = 0o755): string {
  const path = join(makeDirectory(name), 'airlock')
  writeFileSync(path, '')
  chmodSync(path, mode)
  return path
}

const asPath = (...directories: string[]): string => directories.join(':')
const untyped = (other?: string) => {
  const quoted = program.replace("'", String.raw`'\''`)
  const directory = quoted.slice(0, -'/airlock'.length)
  return { word: `'${quoted}'`, pathLine: `export PATH='${directory}':$PATH`, other }
}

it('a link in PATH is typed by its name', () => {
  const PATH = asPath('relative', join(home, 'absent'), join(home, 'clone/airlock'), link, join(home, 'clone'))
  expect(typedCommand({ PATH }, program)).toEqual({ word: 'airlock', pathLine: undefined, other: undefined })
})

it('without one the path works as pasted, and so does the line for PATH', () => {
  expect(typedCommand({ PATH: '/nowhere' }, program)).toEqual(untyped())
  expect(typedCommand({}, program)).toEqual(untyped())
})

it('the first program of that name counts', () => {
  const other = makeProgram('other')
  expect(typedCommand({ PATH: asPath(join(home, 'other'), link) }, program)).toEqual(untyped(other))
  makeProgram('text', 0o644)
  expect(typedCommand({ PATH: asPath(join(home, 'text'), link) }, program).word).toBe('airlock')
})

it('the directories that npm puts in front do not count, for another terminal has none of them', () => {
  const ofNpm = makeDirectory('node_modules/.bin')
  symlinkSync(program, join(ofNpm, 'airlock'))
  expect(typedCommand({ PATH: ofNpm, npm_lifecycle_event: 'start' }, program)).toEqual(untyped())
  expect(typedCommand({ PATH: ofNpm }, program).word).toBe('airlock')
})
