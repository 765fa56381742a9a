import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { requires } from '../../../../../../../test/support/requires.ts'
import { makeProgram as makeLogged, programsDir, removeOldPrograms } from './program.ts'

const warnings: unknown[] = []
const makeProgram = async (...[stateDir, sources]: [string, Parameters<typeof makeLogged>[1]]) =>
  makeLogged(stateDir, sources, { warn: (_message, fields) => void warnings.push(fields?.['files']) })

function place(): { readonly stateDir: string; readonly sources: Parameters<typeof makeProgram>[1] } {
  const dir = mkdtempSync(join(tmpdir(), 'airlock-program-'))
  onTestFinished(() => rmSync(dir, { recursive: true }))
  for (const name of ['state/images', 'kernels']) mkdirSync(join(dir, name), { recursive: true })
  const sources = { node: process.execPath, guest: join(dir, 'guest.cjs'), kernels: join(dir, 'kernels') }
  writeFileSync(sources.guest, 'the guest')
  writeFileSync(join(sources.kernels, 'python.py'), 'a driver')
  return { stateDir: join(dir, 'state'), sources }
}

describe('what sandboxes are started from', requires('root'), () => {
  it('is taken whole, and is the same when what it was taken from is gone', async () => {
    const { stateDir, sources } = place()
    const { dir, tools } = await makeProgram(stateDir, sources)
    for (const path of [sources.guest, sources.kernels]) rmSync(path, { recursive: true })
    expect(readFileSync(join(dir, 'guest.cjs'), 'utf8')).toBe('the guest')
    expect(readFileSync(join(dir, 'kernels', 'python.py'), 'utf8')).toBe('a driver')
    expect(statSync(join(dir, 'bin', 'node')).size).toBe(statSync(process.execPath).size)
    expect(Object.values(tools).filter((path) => !path.startsWith(stateDir) || !existsSync(path))).toEqual([])
  })

  it('is taken once, and again when a file of it is another', async () => {
    const { stateDir, sources } = place()
    const first = await makeProgram(stateDir, sources)
    const { ino, mtimeMs } = statSync(join(first.dir, 'guest.cjs'))
    const again = await makeProgram(stateDir, sources)
    expect(again).toEqual(first)
    expect(statSync(join(again.dir, 'guest.cjs'))).toMatchObject({ ino, mtimeMs })
    writeFileSync(sources.guest, 'another')
    const other = await makeProgram(stateDir, sources)
    expect(other.name).not.toBe(first.name)
    expect(readFileSync(join(first.dir, 'guest.cjs'), 'utf8')).toBe('the guest')
  })

  it('does not take what was broken off for whole', async () => {
    const { stateDir, sources } = place()
    const { name, dir } = await makeProgram(stateDir, sources)
    rmSync(join(programsDir(stateDir), name), { recursive: true })
    mkdirSync(join(programsDir(stateDir), `${name}.new`, 'inside'), { recursive: true })
    await makeProgram(stateDir, sources)
    expect(readFileSync(join(dir, 'guest.cjs'), 'utf8')).toBe('the guest')
    expect(readdirSync(programsDir(stateDir))).toEqual([name])
  })

  it.each(['inside/guest.cjs', 'inside/closure/lib/libc.so.6', 'tools/launch.sh', 'inside/bin/node'])(
    'is repaired file by file when %s is damaged, and sandboxes keep their directory',
    async (path) => {
      const { stateDir, sources } = place()
      const { name } = await makeProgram(stateDir, sources)
      const dir = join(programsDir(stateDir), name)
      const [file, other] = [join(dir, path), join(dir, 'inside/probe')]
      const [before, of, inode] = [readFileSync(file), statSync(other).ino, statSync(join(dir, 'inside')).ino]
      // Node has a second name that must stay as it is.
      rmSync(file)
      writeFileSync(file, before.subarray(0, before.length / 2), { mode: 0o755 })
      warnings.length = 0
      await makeProgram(stateDir, sources)
      expect(readFileSync(file).equals(before)).toBe(true)
      expect([statSync(other).ino, statSync(join(dir, 'inside')).ino, warnings]).toEqual([of, inode, [[path]]])
      expect(readdirSync(programsDir(stateDir))).toEqual([name])
    },
  )

  it('is repaired when Node begins with NULs', async () => {
    const { stateDir, sources } = place()
    const { dir } = await makeProgram(stateDir, sources)
    const node = join(dir, 'bin/node')
    const { size } = statSync(node)
    rmSync(node)
    writeFileSync(node, Buffer.alloc(size))
    await makeProgram(stateDir, sources)
    expect(readFileSync(node).equals(readFileSync(process.execPath))).toBe(true)
  })

  it('is taken again when its list of files is damaged', async () => {
    const { stateDir, sources } = place()
    const { name, dir } = await makeProgram(stateDir, sources)
    writeFileSync(join(programsDir(stateDir), name, 'files.json'), '')
    writeFileSync(join(dir, 'guest.cjs'), '')
    await makeProgram(stateDir, sources)
    expect(readFileSync(join(dir, 'guest.cjs'), 'utf8')).toBe('the guest')
    warnings.length = 0
    await makeProgram(stateDir, sources)
    expect(warnings).toEqual([])
  })

  it('stays while the mounts of a sandbox are not known', async () => {
    const { stateDir, sources } = place()
    const used = await makeProgram(stateDir, sources)
    writeFileSync(sources.guest, 'current')
    const current = await makeProgram(stateDir, sources)
    const sandboxes = join(stateDir, 'sandboxes')
    mkdirSync(join(sandboxes, 'sbx_1', 'launch'), { recursive: true })
    writeFileSync(join(sandboxes, 'sbx_1', 'launch', 'fstab'), '\0'.repeat(80))
    removeOldPrograms(stateDir, current, sandboxes)
    expect(readdirSync(programsDir(stateDir)).toSorted()).toEqual([used.name, current.name].toSorted())
  })

  it('is removed when it is old and no sandbox was started from it', async () => {
    const { stateDir, sources } = place()
    const used = await makeProgram(stateDir, sources)
    writeFileSync(sources.guest, 'unused')
    await makeProgram(stateDir, sources)
    writeFileSync(sources.guest, 'current')
    const current = await makeProgram(stateDir, sources)
    mkdirSync(join(stateDir, 'images', 'program-0123abcd'))
    mkdirSync(join(stateDir, 'images', 'host-0123abcd'))
    const fstab = `${used.dir} /run/airlock-stage/program none bind,X-mount.mkdir 0 0\n`
    const sandboxes = join(stateDir, 'sandboxes')
    mkdirSync(join(sandboxes, 'sbx_1', 'launch'), { recursive: true })
    mkdirSync(join(sandboxes, 'sbx_2'))
    writeFileSync(join(sandboxes, 'sbx_1', 'launch', 'fstab'), fstab)
    removeOldPrograms(stateDir, current, sandboxes)
    expect(readdirSync(programsDir(stateDir)).toSorted()).toEqual([used.name, current.name].toSorted())
    expect(readdirSync(join(stateDir, 'images'))).toEqual(['host-0123abcd'])
  })
})
