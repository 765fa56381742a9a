import { createLog, deadline, waitFor } from '@airlock/std'
import { expect, it } from 'vitest'
import { Sweep } from './sweep.ts'

it('goes over its rows in order, skips what is not wanted now, and goes on past what fails', async () => {
  const lines: string[] = []
  const seen: string[] = []
  const log = createLog({ process: 'test', level: 'warn', write: (line) => void lines.push(line) })
  const run = (name: string) => async () => void seen.push(name)
  const sweep = new Sweep(
    [
      { name: 'first', everyRounds: 1, run: run('first') },
      { name: 'fails', everyRounds: 1, run: async () => Promise.reject(new TypeError('no disk')) },
      { name: 'never', everyRounds: 1, when: () => false, run: run('never') },
      { name: 'second', everyRounds: 2, run: run('second') },
      { name: 'last', everyRounds: 1, run: run('last') },
    ],
    log,
  )
  sweep.start()
  try {
    await waitFor(() => (seen.length >= 5 ? true : undefined), { signal: deadline(100_000), everyMs: 10 })
  } finally {
    await sweep.stop()
  }
  expect(seen).toEqual(['first', 'last', 'first', 'second', 'last'])
  expect(lines.map((line) => (JSON.parse(line) as { name: string }).name)).toEqual(['fails', 'fails'])
})
