import { createHash } from 'node:crypto'
import { expect, it } from 'vitest'
import { NO_MEMORY } from './admission/body-memory.ts'
import { HeldBytes } from './held-bytes.ts'

const free = async () => NO_MEMORY

async function* chunks(...texts: readonly string[]): AsyncGenerator<Buffer> {
  for (const text of texts) yield Buffer.from(text)
}

async function textOf(bytes: AsyncIterable<Buffer>): Promise<string> {
  let text = ''
  for await (const chunk of bytes) text += chunk.toString()
  return text
}

it('passes bytes through as they are read, and holds none', async () => {
  const bytes = new HeldBytes(chunks('ab', 'cd'), free)
  expect(await textOf(bytes)).toBe('abcd')
  expect(bytes.size).toBe(0)
})

it('says the digest of all of them first, as often as it is asked, and gives them then', async () => {
  const bytes = new HeldBytes(chunks('ab', 'cd'), free)
  const digest = createHash('sha256').update('abcd').digest('hex')
  expect([await bytes.digest(), await bytes.digest()]).toEqual([digest, digest])
  expect(bytes.size).toBe(4)
  expect(await textOf(bytes)).toBe('abcd')
})

it('reads no more than may be asked about', async () => {
  const mib = Buffer.alloc(1024 * 1024)
  let read = 0
  const endless = async function* () {
    for (;;) {
      read++
      yield mib
    }
  }
  await expect(new HeldBytes(endless(), free).digest()).rejects.toMatchObject({ code: 'policy_denied' })
  expect(read).toBe(17)
})
