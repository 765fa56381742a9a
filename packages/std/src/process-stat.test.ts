import { expect, it } from 'vitest'
import { parseProcessStat } from './process-stat.ts'

const REST = '34816 812 4194304 120 0 0 0 3 1 0 0 20 0 1 0 77001 10485760 900'

it.each([
  ['a plain name', `812 (sleep) S 700 812 700 ${REST}`, false],
  ['a name that looks like the rest', `812 (a) Z 1 1 1 (b) S 700 812 700 ${REST}`, false],
  ['a process that has ended', `812 (sleep) Z 700 812 700 ${REST}`, true],
])('reads %s', (_, text, isZombie) => {
  expect(parseProcessStat(text)).toEqual({ isZombie, session: 700, startTicks: '77001' })
})
