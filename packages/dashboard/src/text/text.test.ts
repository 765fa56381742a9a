import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { AnsiReader } from './ansi.ts'
import { commandLine } from './command-line.ts'
import { away, bytes, duration, percent } from './format.ts'
import { visible, visibleLine } from './visible.ts'

describe('text from sandboxes', () => {
  it('shows what would steer', () => {
    expect(visible('a\u001bb\u0000\u202Ec\u200bd\r\n\t')).toBe('a‹ESC›b‹U+0000›‹U+202E›c‹U+200B›d‹U+000D›\n\t')
    expect(visibleLine('a\nb\tc')).toBe('a↵b→c')
    const reader = new AnsiReader()
    expect([...reader.read('a\u001b['), ...reader.finish()].map(({ text }) => text)).toEqual(['a', '‹ESC›['])
  })

  it('has its colours wherever its chunks end, and no other sequence', () => {
    const text = 'a\u001b[31mred\u001b[0;1mbold\u001b[0m\u001b]0;x\u0007\u001b[2J\r\nend'
    const whole = [
      { text: 'a', look: '' },
      { text: 'red', look: 'fg-1' },
      { text: 'bold', look: 'bold' },
      { text: '‹ESC›]0;x‹U+0007›‹ESC›[2J\nend', look: '' },
    ]
    expect(new AnsiReader().read(text)).toEqual(whole)
    fc.assert(
      fc.property(fc.integer({ min: 0, max: text.length }), (at) => {
        const reader = new AnsiReader()
        const pieces = [...reader.read(text.slice(0, at)), ...reader.read(text.slice(at)), ...reader.finish()]
        const joined = (all: typeof pieces): string => all.map((one) => `${one.look}:${one.text}`).join('|')
        for (const { look } of whole)
          expect(
            pieces
              .filter((one) => one.look === look)
              .map((one) => one.text)
              .join(''),
          ).toBe(
            whole
              .filter((one) => one.look === look)
              .map((one) => one.text)
              .join(''),
          )
        expect(joined(pieces)).not.toContain('\u001b')
      }),
    )
  })

  it('says words as a shell would be given them', () => {
    expect(commandLine(['rm', '-rf', 'a b', "it's", ''])).toBe(String.raw`rm -rf 'a b' 'it'\''s' ''`)
    expect(commandLine(['/bin/sh', '-c', 'ls | wc'])).toBe('ls | wc')
    expect(commandLine(['sh', '-c', 'ls | wc'])).toBe("sh -c 'ls | wc'")
  })
})

it('says amounts and times short', () => {
  expect([bytes(0), bytes(1536), bytes(512 * 2 ** 20), bytes(null)]).toEqual(['0 B', '1.5 KiB', '512 MiB', '–'])
  expect([percent(0.25), percent(99.6), percent(null)]).toEqual(['0.3 %', '100 %', '–'])
  expect([duration(12), duration(1500), duration(61_000), duration(3_600_000), duration(null)]).toEqual([
    '12 ms',
    '1.5 s',
    '1 min 1 s',
    '1 h 0 min',
    '–',
  ])
  expect([
    away('2026-01-01T00:01:00Z', Date.UTC(2026, 0, 1)),
    away('2026-01-01T00:00:00Z', Date.UTC(2026, 0, 3)),
  ]).toEqual(['in 1 min', '2 d ago'])
})
