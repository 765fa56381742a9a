import { afterEach, expect, it, vi } from 'vitest'
import { Terminal } from './terminal.ts'

afterEach(() => vi.restoreAllMocks())

/** What is drawn on a terminal of this width. */
function draw(columns: number | undefined): readonly string[] {
  const drawn: string[] = []
  const stream = Object.assign(Object.create(process.stderr) as typeof process.stderr, {
    columns,
    cursorTo: () => true,
    clearLine: () => true,
    write: (text: string) => drawn.push(text) > 0,
  })
  vi.spyOn(process, 'stderr', 'get').mockReturnValue(stream)
  new Terminal({ allowsColor: false }).showProgress('Downloading 1 of 2')
  return drawn
}

it.each([
  [80, ['Downloading 1 of 2']],
  [12, ['Downloading']],
  [0, []],
  [undefined, []],
])('progress on a terminal of %s columns is %j', (columns, drawn) => {
  expect(draw(columns)).toEqual(drawn)
})
