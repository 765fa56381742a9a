import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { makeHostImage } from './image.ts'

it.each(['', 'root:x:0', '\0'.repeat(140)])('a damaged file of the host image is written again: %j', (damaged) => {
  const stateDir = mkdtempSync(join(tmpdir(), 'airlock-image-'))
  onTestFinished(() => rmSync(stateDir, { recursive: true }))
  const repaired: string[] = []
  const make = () => makeHostImage(stateDir, (path) => repaired.push(path))
  const passwd = join(make().root[0] ?? '', 'etc/passwd')
  const [text, { ino }] = [readFileSync(passwd, 'utf8'), statSync(passwd)]
  writeFileSync(passwd, damaged)
  make()
  expect([readFileSync(passwd, 'utf8'), statSync(passwd).ino, repaired]).toEqual([text, ino, [passwd]])
  make()
  expect(repaired).toHaveLength(1)
})
