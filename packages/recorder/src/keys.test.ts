import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { openKeys } from './keys.ts'

let dir: string
beforeEach(() => (dir = mkdtempSync(join(tmpdir(), 'airlock-keys-'))))
afterEach(() => rmSync(dir, { recursive: true }))

const DAMAGES: readonly (readonly [string, (bytes: Buffer) => Buffer])[] = [
  ['empty', () => Buffer.alloc(0)],
  ['cut in half', (bytes) => bytes.subarray(0, bytes.length / 2)],
  ['NULs', (bytes) => Buffer.alloc(bytes.length)],
]

it.each(DAMAGES.flatMap(([how, damage]) => (['head.pem', 'mac.key'] as const).map((name) => ({ name, how, damage }))))(
  'a recorder whose $name is $how does not start, and says what to do',
  ({ name, damage }) => {
    const { publicPem } = openKeys(dir)
    const path = join(dir, name)
    const bytes = readFileSync(path)
    writeFileSync(path, damage(bytes))
    expect(() => openKeys(dir)).toThrow(
      expect.objectContaining({
        code: 'state_damaged',
        message: expect.stringContaining(`${path} is damaged`),
        hint: expect.stringContaining('from a backup'),
      }),
    )
    writeFileSync(path, bytes)
    expect(openKeys(dir).publicPem).toBe(publicPem)
  },
)
