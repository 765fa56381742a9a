import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { openNodeIdentity } from './node-identity.ts'

let home: string
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'airlock-node-'))
  mkdirSync(join(home, 'control-plane'))
})
afterEach(() => rmSync(home, { recursive: true }))

const open = async () => openNodeIdentity({ stateDir: join(home, 'control-plane'), publicDir: join(home, 'public') })

it('a node keeps its name over restarts', async () => {
  expect((await open()).id).toBe((await open()).id)
})

it.each([
  ['empty', () => ''],
  ['cut in half', (text: string) => text.slice(0, text.length / 2)],
  ['without the end of its line', (text: string) => text.trimEnd()],
  ['NULs', (text: string) => '\0'.repeat(text.length)],
])('a node whose name is %s does not start, and says what to do', async (_how, damage) => {
  const { id } = await open()
  const path = join(home, 'control-plane/node-id')
  writeFileSync(path, damage(readFileSync(path, 'utf8')))
  await expect(open()).rejects.toMatchObject({
    code: 'state_damaged',
    message: `${path} is damaged: it does not name this node.`,
    hint: expect.stringContaining(`{ cat ${home}/public/node; echo; } > ${path}`),
  })
  writeFileSync(path, `${id}\n`)
  expect((await open()).id).toBe(id)
})
