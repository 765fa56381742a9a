import { Readable } from 'node:stream'
import { finished } from 'node:stream/promises'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { readLines } from './lines.ts'

async function linesOf(chunks: readonly Buffer[]): Promise<readonly string[]> {
  const lines: string[] = []
  const stream = Readable.from(chunks, { objectMode: false })
  readLines(stream, (line) => lines.push(line))
  await finished(stream)
  return lines
}

it('gives the same lines however the bytes are cut', async () => {
  await fc.assert(
    fc.asyncProperty(fc.string({ unit: 'grapheme' }), fc.integer({ min: 1, max: 5 }), async (text, size) => {
      const bytes = Buffer.from(text)
      const chunks = Array.from({ length: Math.ceil(bytes.length / size) }, (_, index) =>
        bytes.subarray(index * size, (index + 1) * size),
      )
      expect(await linesOf(chunks)).toEqual(text.split('\n').filter((line) => line !== ''))
    }),
    { numRuns: 100 },
  )
})

it('cuts a line that has no end, and goes on with the next', async () => {
  const lines = await linesOf([Buffer.alloc(200_000, 'x'), Buffer.from('y\nnext\n')])
  expect(lines).toEqual(['x'.repeat(65_536), 'next'])
})
