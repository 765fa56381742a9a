import { existsSync, mkdirSync, mkdtempSync, readlinkSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { linkCommand, unlinkCommand } from './link.ts'

let home: string
let bin: string
let program: string
let path: string
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'al-link-'))
  bin = join(home, 'bin')
  path = join(bin, 'airlock')
  mkdirSync(bin)
  program = makeClone('clone')
})
afterEach(() => rmSync(home, { recursive: true }))

function makeClone(name: string): string {
  const directory = join(home, name, 'packages/cli/bin')
  mkdirSync(directory, { recursive: true })
  writeFileSync(join(directory, 'airlock'), '')
  return join(directory, 'airlock')
}

it('a link is made, kept by the next start, and removed', () => {
  expect(linkCommand(program, bin)).toEqual({ path, outcome: 'made' })
  expect(readlinkSync(path)).toBe(program)
  expect(linkCommand(program, bin)).toEqual({ path, outcome: 'kept' })
  expect(unlinkCommand(program, bin)).toEqual({ path, outcome: 'removed' })
  expect(existsSync(path)).toBe(false)
  expect(unlinkCommand(program, bin)).toEqual({ path, outcome: 'absent' })
})

it.each([
  ['a file', () => writeFileSync(path, 'theirs')],
  ['a directory', () => mkdirSync(path)],
  ['a link to another clone', () => symlinkSync(makeClone('other'), path)],
  ['a link to another program', () => symlinkSync('/bin/true', path)],
  ['a link of somebody else that leads nowhere', () => symlinkSync('/gone/airlock', path)],
])('%s of that name stays', (_what, make) => {
  make()
  expect(linkCommand(program, bin)).toEqual({ path, outcome: 'taken' })
  expect(unlinkCommand(program, bin)).toEqual({ path, outcome: 'taken' })
})

it('a link to a clone that is gone is replaced', () => {
  symlinkSync('../gone/packages/cli/bin/airlock', path)
  expect(linkCommand(program, bin)).toEqual({ path, outcome: 'made' })
  expect(readlinkSync(path)).toBe(program)
})

it('a directory that is not there is not made', () => {
  expect(linkCommand(program, join(home, 'absent'))).toMatchObject({ outcome: 'refused' })
  expect(existsSync(join(home, 'absent'))).toBe(false)
})
