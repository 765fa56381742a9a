import type { NewRecord } from '@airlock/contract'
import { expect, it } from 'vitest'
import { staged } from '../testing/staged.ts'
import { CountedDenials } from './counted-denials.ts'

const denied = (host: string, sandbox = 'sbx_1'): NewRecord => ({
  tenant: 'default',
  sandbox,
  actor: `sandbox:${sandbox}`,
  point: 'network.connect',
  status: 'denied',
  error: { code: 'policy_denied', message: 'No.' },
  payload: { host, port: 443 },
})

function counting() {
  const written: NewRecord[] = []
  const sink = staged({
    require: async (record) => void written.push(record),
    note: (record) => void written.push(record),
    flush: async () => {},
  })
  return { written, denials: new CountedDenials(sink) }
}

const sum = (records: readonly NewRecord[]) =>
  records.map(({ payload }) => Number(payload?.['refusals'])).reduce((all, one) => all + one, 0)

it('20,000 denials of one sandbox in a minute add at most 100 records, and their counts sum up', async () => {
  const { written, denials } = counting()
  for (let n = 0; n < 20_000; n++) denials.note(denied(`h${n % 300}.example`))
  await denials.flush(1000)
  expect(written.length).toBeLessThanOrEqual(100)
  expect(sum(written)).toBe(20_000)
})

it('the first denial of a host is written at once, and the others with their number', async () => {
  const { written, denials } = counting()
  for (let n = 0; n < 5; n++) denials.note(denied('a.example'))
  denials.note(denied('a.example', 'sbx_2'))
  expect(written.map(({ payload }) => payload)).toEqual([
    { host: 'a.example', port: 443, refusals: 1 },
    { host: 'a.example', port: 443, refusals: 1 },
  ])
  await denials.flush(1000)
  expect(written.slice(2)).toMatchObject([{ payload: { host: 'a.example', refusals: 4 } }])
})

it('nothing else is counted', async () => {
  const { written, denials } = counting()
  const others: NewRecord[] = [
    { ...denied('a.example'), status: 'requested' },
    { ...denied('a.example'), point: 'command.run' },
  ]
  for (const record of [...others, ...others]) denials.note(record)
  expect(written).toEqual([...others, ...others])
})
