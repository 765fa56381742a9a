import { describe, expect, it } from 'vitest'
import type { Line } from './line.ts'
import { someSandbox, someTenant } from './testing/some-metrics.ts'
import { NO_SANDBOXES, TopPage } from './top-page.ts'

const SIZE = { columns: 60, rows: 10 }
const textsOf = (lines: readonly Line[]): readonly string[] =>
  lines.map((line) =>
    line
      .map(({ text }) => text)
      .join('')
      .trimEnd(),
  )
const pageOf = (count: number, truncated = false): TopPage => {
  const page = new TopPage({ sort: 'name', agent: undefined, everyMs: 2_000 })
  const sandboxes = Array.from({ length: count }, (_, i) => someSandbox(i, { name: `n${String(i).padStart(2, '0')}` }))
  page.update(someTenant(sandboxes, truncated))
  return page
}
const namesOn = (page: TopPage, size = SIZE): readonly string[] =>
  textsOf(page.lines(size)).flatMap((text) => /^n\d\d(?= )/.exec(text) ?? [])

describe('the page of top', () => {
  it('fills the terminal, with the keys on its last line', () => {
    const lines = textsOf(pageOf(2).lines(SIZE))
    expect(lines).toEqual([
      expect.stringMatching(/^airlock top {2}default {2}by name {6,}\d\d:\d\d:\d\d, every 2s$/),
      expect.stringMatching(/^2 sandboxes {2}no alerts/),
      '',
      expect.stringMatching(/^SANDBOX +STATE +CPU/),
      expect.stringMatching(/^n00 /),
      expect.stringMatching(/^n01 /),
      '',
      '',
      '',
      'q quits   s sorts by cpu   ↑↓ scroll',
    ])
  })

  it('says so when there is no sandbox', () => {
    expect(textsOf(pageOf(0).lines(SIZE))).toContain(NO_SANDBOXES)
  })

  it('scrolls through those that do not fit, no further than to the last', () => {
    const page = pageOf(6)
    expect([namesOn(page), textsOf(page.lines(SIZE))[8]]).toEqual([['n00', 'n01', 'n02', 'n03'], '1 to 4 of 6'])
    for (const key of ['j', '\u001B[B', '\u001B[6~', '\u001BOB']) expect(page.press(key)).toBe(true)
    expect([namesOn(page), textsOf(page.lines(SIZE))[8]]).toEqual([['n02', 'n03', 'n04', 'n05'], '3 to 6 of 6'])
    page.press('k')
    expect(namesOn(page)[0]).toBe('n01')
    expect(namesOn(page, { columns: 60, rows: 30 })).toHaveLength(6)
  })

  it('says that the server left some out', () => {
    expect(textsOf(pageOf(2, true).lines(SIZE))).toContain('1 to 2 of 2, and more that the server left out')
  })

  it('changes the order by a key, and knows no other', () => {
    const page = pageOf(1)
    expect([page.press('s'), page.press('x')]).toEqual([true, false])
    expect(textsOf(page.lines(SIZE))[0]).toMatch(/by cpu/)
  })

  it('keeps what it had when the server does not answer, and says why it is old', () => {
    const page = pageOf(1)
    page.fail('No Airlock server answers.')
    expect([namesOn(page), textsOf(page.lines(SIZE)).at(-1)]).toEqual([['n00'], 'No Airlock server answers.'])
    page.update(someTenant([]))
    expect(textsOf(page.lines(SIZE)).at(-1)).toMatch(/^q quits/)
  })

  it.each([1, 2, 3, 4, 5])('has as many lines as a terminal with %i', (rows) => {
    expect(pageOf(3).lines({ columns: 20, rows })).toHaveLength(rows)
  })
})
