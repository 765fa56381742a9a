import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { builtinModules } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'

const BUILD = new URL('../build.ts', import.meta.url).pathname

describe('the bundle', () => {
  it('is one small file that needs nothing but Node', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'airlock-bundle-'))
    try {
      const path = join(directory, 'guest.cjs')
      await promisify(execFile)(process.execPath, [BUILD, path])
      const text = await readFile(path, 'utf8')
      const imported = [...text.matchAll(/\brequire\("(.+?)"\)/g)].map((match) => match[1] ?? '')
      expect(imported.length).toBeGreaterThan(0)
      expect(imported.filter((name) => !builtinModules.includes(name.replace('node:', '')))).toEqual([])
      expect(text.length).toBeLessThan(176 * 1024)
      expect(text).not.toContain('node_modules')
    } finally {
      await rm(directory, { recursive: true })
    }
  })
})
