import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { chmodSync, mkdirSync, mkdtempSync, rmSync, statSync, symlinkSync } from 'node:fs'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { requires } from '../../../test/support/requires.ts'
import { loadSettings, type Settings } from './config.ts'
import { prepareDirectories, prepareStateDirectory } from './directories.ts'

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'al-dirs-'))
  chmodSync(directory, 0o711)
})
afterEach(() => rmSync(directory, { recursive: true }))

const settings = (home: string): Settings => loadSettings({ AIRLOCK_HOME: home }, '/')

describe('the directories of a server', requires('root'), () => {
  it('have the owners and modes of the layout, also when they were there with others', () => {
    mkdirSync(`${directory}/control-plane`, { mode: 0o777 })
    prepareStateDirectory(settings(directory))
    prepareDirectories(settings(directory))
    const found = [
      '',
      'control-plane',
      'recorder',
      'data-plane',
      'public',
      'logs',
      'compiled',
      'run',
      'run/sandboxes',
      'run/doors',
      'run/keys',
    ]
    const spill = ['run/spill/control-plane', 'run/spill/data-plane']
    expect([...found, ...spill].map(describeDirectory)).toEqual([
      ' 711 0',
      'control-plane 700 1879048193',
      'recorder 700 1879048194',
      'data-plane 700 0',
      'public 755 0',
      'logs 700 0',
      'compiled 700 0',
      'run 711 0',
      'run/sandboxes 711 0',
      'run/doors 710 0',
      'run/keys 710 0',
      'run/spill/control-plane 700 1879048193',
      'run/spill/data-plane 700 0',
    ])
  })

  it('are refused where a link or a directory of somebody else is in the way', () => {
    prepareStateDirectory(settings(directory))
    symlinkSync('/etc', `${directory}/logs`)
    expect(() => prepareDirectories(settings(directory))).toThrow(`${directory}/logs must be a directory of root`)
  })

  it('are refused below a directory that processes without root cannot pass', () => {
    mkdirSync(`${directory}/closed`, { mode: 0o700 })
    expect(() => prepareStateDirectory(settings(`${directory}/closed/home`))).toThrow(
      `${directory}/closed lets only its owner in`,
    )
  })

  it('are refused where the paths of sockets would be too long', () => {
    expect(() => prepareStateDirectory(settings(`/tmp/${'x'.repeat(60)}`))).toThrow('is too long for sockets')
  })
})

function describeDirectory(name: string): string {
  const { mode, uid } = statSync(`${directory}/${name}`)
  return `${name} ${(mode & 0o7777).toString(8)} ${uid}`
}
