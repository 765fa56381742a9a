import { describe, expect, it } from 'vitest'
import { family } from './prometheus.ts'

describe('Prometheus text', () => {
  it('is a head and a line for each sample', () => {
    const samples = [
      { suffix: '_bucket', labels: { le: '0.1' }, value: 2 },
      { suffix: '_count', value: 3 },
    ]
    expect(family({ name: 'a_seconds', type: 'histogram', help: 'Time.', samples })).toEqual([
      '# HELP a_seconds Time.',
      '# TYPE a_seconds histogram',
      'a_seconds_bucket{le="0.1"} 2',
      'a_seconds_count 3',
    ])
  })

  it('escapes what would end a label or a line', () => {
    const [help, , line] = family({
      name: 'a',
      type: 'gauge',
      help: 'one\\\ntwo',
      samples: [{ labels: { tenant: 'a"b\\c\nd} 1' }, value: 1 }],
    })
    expect([help, line]).toEqual(['# HELP a one\\\\\\ntwo', 'a{tenant="a\\"b\\\\c\\nd} 1"} 1'])
  })
})
