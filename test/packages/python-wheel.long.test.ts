import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { borrowServer, type BorrowedServer } from '../support/borrow-server.ts'
import { pipEnvironment, PYTHON, runPython, type PythonEnded } from '../support/python.ts'
import { requires } from '../support/requires.ts'
import { startServer } from '../support/server.ts'
import { makeCertificates } from './packed-project.ts'

/** Loopback for the kernel, another machine for the client. */
const REMOTE = '127.0.0.2'

describe('the wheel of the client in Python', requires('python3', 'python3-venv', 'python-index'), () => {
  let server: BorrowedServer
  let directory: string
  beforeAll(async () => {
    server = await borrowServer()
    directory = mkdtempSync(join(tmpdir(), 'airlock-wheel-'))
    // Building writes beside the sources.
    cpSync(PYTHON, join(directory, 'source'), { recursive: true, dereference: true })
    await python('python3', '-m', 'venv', 'building')
    await python('building/bin/python', '-m', 'pip', 'wheel', '--no-deps', '-w', 'wheels', './source')
    await python('python3', '-m', 'venv', 'fresh')
    const [wheel = ''] = readdirSync(join(directory, 'wheels'))
    await python('fresh/bin/python', '-m', 'pip', 'install', '--no-index', join(directory, 'wheels', wheel))
  })
  afterAll(async () => {
    await server?.giveBack()
    if (directory) rmSync(directory, { recursive: true, force: true })
  })

  it('has the version of the packages, types and the licence, and brings nothing with it', async () => {
    const { version } = parsePackage(readFileSync(new URL('../../packages/sdk/package.json', import.meta.url), 'utf8'))
    expect(readdirSync(join(directory, 'wheels'))).toEqual([`airlock_sandbox-${version}-py3-none-any.whl`])
    const { said } = await python('fresh/bin/python', '-m', 'pip', 'show', '--files', 'airlock-sandbox')
    expect(said).toMatch(/^Requires: *$/m)
    for (const file of ['airlock_sandbox/py.typed', 'airlock_sandbox/types.py', 'licenses/LICENSE'])
      expect(said).toContain(file)
    expect(said).not.toContain('tests')
    const licence = `import importlib.metadata as m; print(m.metadata('airlock-sandbox')['License-Expression'])`
    expect((await python('fresh/bin/python', '-c', licence)).said).toBe('Apache-2.0\n')
    const compiled = [
      'import compileall, airlock_sandbox',
      'assert compileall.compile_dir(airlock_sandbox.__path__[0], force=True)',
    ]
    await python('fresh/bin/python', '-W', 'error', '-c', compiled.join('; '))
  })

  it.each(['python/README.md', 'README.md'])('runs the example of %s', async (document) => {
    const text = readFileSync(new URL(`../../${document}`, import.meta.url), 'utf8')
    const [program = ''] = [...text.matchAll(/^```python\n([^]*?)^```/gm)].map((match) => match[1] ?? '')
    expect(program).toContain('from airlock_sandbox import Airlock')
    // As on the machine of the server: the key is found beside its state.
    const env = { ...pipEnvironment(), AIRLOCK_URL: server.url, AIRLOCK_HOME: server.home }
    const ended = await runPython(['-c', program], {
      cwd: directory,
      env,
      program: join(directory, 'fresh/bin/python'),
    })
    expect(ended).toEqual({ code: 0, said: expect.stringMatching(SAID[document] ?? /never/) as unknown })
  })

  it('reaches a server elsewhere by TLS, if it knows who vouches for it', requires('openssl'), async () => {
    const { authority, certificate, key } = makeCertificates(join(directory, 'certificates'), REMOTE)
    const env = { AIRLOCK_HOST: '0.0.0.0', AIRLOCK_TLS_CERT: certificate, AIRLOCK_TLS_KEY: key }
    const remote = await startServer({ env })
    const url = `https://${REMOTE}:${new URL(remote.url).port}`
    try {
      const there = { ...pipEnvironment(), AIRLOCK_URL: url, AIRLOCK_API_KEY: remote.developerKey }
      const whoami = async (given: string, more: Readonly<Record<string, string>> = {}): Promise<PythonEnded> =>
        runPython(['-c', `from airlock_sandbox import Airlock; print(Airlock(${given}).whoami()['role'])`], {
          cwd: directory,
          env: { ...there, ...more },
          program: join(directory, 'fresh/bin/python'),
        })
      const trusted = { code: 0, said: 'developer\n' }
      expect(await whoami('', { SSL_CERT_FILE: authority })).toEqual(trusted)
      expect(await whoami(`ca_file='${authority}'`)).toEqual(trusted)
      const wary = await whoami('', { SSL_CERT_FILE: '' })
      expect(wary.code).toBe(1)
      expect(wary.said).toContain(`The certificate of ${url} is not trusted.`)
    } finally {
      await remote.stop('SIGINT')
    }
  })

  async function python(program: string, ...args: readonly string[]): Promise<PythonEnded> {
    const path = program.includes('/') ? join(directory, program) : program
    const ended = await runPython(args, {
      cwd: directory,
      env: { ...pipEnvironment(), HOME: directory },
      program: path,
    })
    if (ended.code !== 0) throw new TypeError(`${program} ${args.join(' ')} failed:\n${ended.said}`)
    return ended
  }
})

const SAID: Readonly<Record<string, RegExp>> = {
  'python/README.md': /^0 42\n\n4 sales\.csv\n360\n$/,
  'README.md': /^42\n\n$/,
}

function parsePackage(text: string): { readonly version: string } {
  return JSON.parse(text) as { version: string }
}
