import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { isFresh } from './build-packages.ts'
import { InstalledPackages } from './installed.ts'

let dir: string
beforeEach(() => (dir = mkdtempSync(join(tmpdir(), 'airlock-dpkg-'))))
afterEach(() => rmSync(dir, { recursive: true, force: true }))

function write(...packages: readonly (readonly [string, string, string])[]): string {
  const file = join(dir, 'status')
  const stanzas = packages.map(
    ([name, version, state]) => `Package: ${name}\nStatus: ${state}\nVersion: ${version}\nDescription: x\n`,
  )
  writeFileSync(file, stanzas.join('\n'))
  return file
}

const INSTALLED = 'install ok installed'

it('knows what is installed, and not what was removed', () => {
  const file = write(['python3', '3.11', INSTALLED], ['vim', '9', 'deinstall ok config-files'])
  expect([...(new InstalledPackages(file).versions() ?? [])]).toEqual([['python3', '3.11']])
})

it('says that a host is not of this kind', () => {
  expect(new InstalledPackages(join(dir, 'nothing')).versions()).toBeUndefined()
})

it('notices that a package which an image stands on was upgraded or removed', () => {
  const installed = new InstalledPackages(write(['python3', '3.11', INSTALLED], ['vim', '9', INSTALLED]))
  const machine = machineOf(installed)
  const base = { machine, python3: '3.11' }
  expect(isFresh(base, installed)).toBe(true)
  write(['python3', '3.11', INSTALLED], ['vim', '10.0', INSTALLED])
  expect(isFresh(base, installed)).toBe(true)
  write(['python3', '3.12-1', INSTALLED], ['vim', '10.0', INSTALLED])
  expect(isFresh(base, installed)).toBe(false)
  write(['vim', '10.0', INSTALLED])
  expect(isFresh(base, installed)).toBe(false)
  expect(isFresh({ ...base, machine: 'another one' }, installed)).toBe(false)
})

/** What an image of this machine says of it, found by asking what is fresh. */
function machineOf(installed: InstalledPackages): string {
  const release = Object.fromEntries(['ID', 'VERSION_ID'].map((name) => [name, fieldOf(name)]))
  const machine = [process.arch, release['ID'], release['VERSION_ID']].join(' ')
  expect(isFresh({ machine }, installed)).toBe(true)
  return machine
}

function fieldOf(name: string): string {
  const text = readRelease()
  return new RegExp(`^${name}=(.*)$`, 'mu').exec(text)?.[1] ?? ''
}

function readRelease(): string {
  try {
    return readFileSync('/etc/os-release', 'utf8')
  } catch {
    // A machine without one is a machine with an empty one.
    return ''
  }
}
