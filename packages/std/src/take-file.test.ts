import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { takeFile } from './take-file.ts'

let directory: string
beforeEach(() => (directory = mkdtempSync(join(tmpdir(), 'airlock-take-'))))
afterEach(() => rmSync(directory, { recursive: true }))

it('takes a file that begins as asked, once', () => {
  const path = join(directory, 'one')
  writeFileSync(path, 'name:value')
  expect(takeFile(path, 'other:')).toBeUndefined()
  expect(takeFile(path, 'name:')).toBe('value')
  expect(takeFile(path, 'name:')).toBeUndefined()
  expect(existsSync(path)).toBe(false)
})

it('says so when a file cannot be read', () => {
  expect(() => takeFile(directory, 'name:')).toThrow('EISDIR')
})
