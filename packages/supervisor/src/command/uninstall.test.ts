import { expect, it } from 'vitest'
import { uninstall, type UninstallIo } from './uninstall.ts'

type Outcome = ReturnType<UninstallIo['unlink']>['outcome']

function run(outcome: Outcome, more: Partial<UninstallIo> = {}): readonly [number, readonly string[]] {
  const printed: string[] = []
  const print = (line: string) => void printed.push(line)
  const unlink = () => ({ path: '/bin/airlock', outcome })
  const io = { env: {}, uid: 0, out: print, err: print, unlink, stateDir: '/nowhere', ...more }
  return [uninstall(io), printed]
}

it('says what it removed, and what stays', () => {
  expect(run('removed')).toEqual([0, ['Removed /bin/airlock.']])
  expect(run('removed', { stateDir: '/tmp' })).toEqual([
    0,
    ['Removed /bin/airlock.', 'State and evidence stay in /tmp.'],
  ])
  expect(run('absent')).toEqual([0, ['There is no /bin/airlock.']])
})

it('fails where the name leads elsewhere, and without root', () => {
  expect(run('taken')).toEqual([1, ['/bin/airlock does not lead to this clone, and stays.']])
  expect(run('removed', { uid: 1000 })).toEqual([
    1,
    [expect.stringMatching(/^Only root may change the commands of a machine: sudo \S+airlock uninstall$/)],
  ])
})
