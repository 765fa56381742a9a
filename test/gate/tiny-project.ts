import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { stripVTControlCharacters } from 'node:util'

const PROGRAM = fileURLToPath(new URL('../../scripts/test/main.ts', import.meta.url))
const MODULES = fileURLToPath(new URL('../../node_modules', import.meta.url))

export interface Ended {
  readonly exitCode: number
  /** Lines printed after the list of the slowest files. */
  readonly summary: readonly string[]
  readonly output: string
}

/** A project of a few test files, for the program behind `npm test`. */
export class TinyProject implements Disposable {
  readonly directory: string

  /** `files`: names and texts of test files. `config`: more settings of the one project, `unit`. */
  constructor(files: Readonly<Record<string, string>>, config = '') {
    this.directory = mkdtempSync(join(tmpdir(), 'airlock-gate-'))
    symlinkSync(MODULES, join(this.directory, 'node_modules'))
    this.write('package.json', '{ "type": "module" }')
    const project = `name: 'unit', include: ['unit/*.test.js'], testTimeout: 100_000, ${config}`
    this.write('vitest.config.js', `export default { test: { projects: [{ test: { ${project} } }] } }`)
    mkdirSync(join(this.directory, 'unit'))
    for (const [name, text] of Object.entries(files)) this.write(`unit/${name}.test.js`, text)
  }

  write(name: string, text: string): void {
    writeFileSync(join(this.directory, name), text)
  }

  async run(env: Readonly<Record<string, string>> = {}): Promise<Ended> {
    const { PATH = '', TMPDIR = '/tmp' } = process.env
    const options = { cwd: this.directory, env: { PATH, TMPDIR, ...env } }
    return await new Promise((resolve) =>
      execFile(process.execPath, [PROGRAM, 'test', 'unit'], options, (error, stdout, stderr) => {
        const output = stripVTControlCharacters(stdout + stderr)
        const [, last = ''] = stripVTControlCharacters(stdout).split('\nslowest files:\n')
        const summary = last.split('\n').filter((line) => line !== '' && !line.startsWith('   '))
        resolve({ exitCode: error ? Number(error.code) : 0, summary, output })
      }),
    )
  }

  /** Resolves when the program ends, although what it started may go on. */
  async runUntilKilled(): Promise<void> {
    const { PATH = '', TMPDIR = '/tmp' } = process.env
    const child = spawn(process.execPath, [PROGRAM, 'test', 'unit'], {
      cwd: this.directory,
      env: { PATH, TMPDIR },
      stdio: 'ignore',
    })
    await once(child, 'exit')
  }

  [Symbol.dispose](): void {
    rmSync(this.directory, { recursive: true })
  }
}

/** A file with one test of this body. */
export function testFile(body: string, name = 'works'): string {
  return `import { existsSync, writeFileSync } from 'node:fs'
import { expect, it } from 'vitest'
it('${name}', () => { ${body} })\n`
}

/** The body of a test that fails in this way when it runs first, and passes later. */
export function failsFirst(failure: string): string {
  return `const ran = import.meta.filename + '.ran'
if (!existsSync(ran)) { writeFileSync(ran, ''); ${failure} }`
}
