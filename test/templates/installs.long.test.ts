import { Airlock, type Sandbox } from '@airlock/sdk'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { requires } from '../support/requires.ts'
import { startServer, type TestServer } from '../support/server.ts'

let server: TestServer
let airlock: Airlock
let sandbox: Sandbox

beforeAll(async () => {
  server = await startServer()
  airlock = new Airlock({ url: server.url, apiKey: server.developerKey })
  await airlock.templates.put('installs', { packages: ['python3-pip', 'python3-venv'] })
  sandbox = await airlock.sandboxes.create({ template: 'installs' })
}, 180_000)

afterAll(async () => {
  await server?.stop('SIGINT')
})

const sh = async (shell: string) => sandbox.run({ shell })

const WHEEL = `
import zipfile
with zipfile.ZipFile('/workspace/thing-1.0-py3-none-any.whl', 'w') as wheel:
    wheel.writestr('thing/__init__.py', 'def main(): print("thing runs")')
    wheel.writestr('thing-1.0.dist-info/METADATA', 'Metadata-Version: 2.1\\nName: thing\\nVersion: 1.0\\n')
    wheel.writestr('thing-1.0.dist-info/WHEEL', 'Wheel-Version: 1.0\\nGenerator: x\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')
    wheel.writestr('thing-1.0.dist-info/entry_points.txt', '[console_scripts]\\nthing=thing:main\\n')
    wheel.writestr('thing-1.0.dist-info/RECORD', '')
`

describe('pip', requires('apt-get'), () => {
  it('installs a wheel that is here into the home, and its program is in the path', async () => {
    expect(await sandbox.run(['python3', '-c', WHEEL])).toMatchObject({ exitCode: 0 })
    const installed = await sh('pip install /workspace/thing-1.0-py3-none-any.whl && which thing && thing')
    expect(installed).toMatchObject({ exitCode: 0 })
    expect(installed.stdout.trim().split('\n').slice(-2)).toEqual(['/home/user/.local/bin/thing', 'thing runs'])
  })

  it('installs from a directory of wheels, and into a virtual environment', async () => {
    expect(await sh('pip3 install --force-reinstall --no-index -f /workspace thing')).toMatchObject({ exitCode: 0 })
    const into = 'python3 -m venv /workspace/venv && /workspace/venv/bin/pip install --no-index -f /workspace thing'
    expect(await sh(`${into} && /workspace/venv/bin/thing`)).toMatchObject({ exitCode: 0 })
  })

  it.each([
    'pip install requests',
    'pip3 install -q "numpy>=1"',
    'pip install https://example.org/x.whl',
    'pip download x',
  ])('says what to type on the host, and does not try: %s', async (line) => {
    const refused = await sh(line)
    expect(refused).toMatchObject({ exitCode: 1, stdout: '' })
    expect(refused.stderr).toMatch(
      /^pip3?: sandboxes have no network\. On the host: airlock template build NAME --package python3-/,
    )
    expect(refused.stderr.trim().split('\n')).toHaveLength(1)
  })

  it('does everything else as ever', async () => {
    expect(await sh('pip --version && pip list && pip install --help')).toMatchObject({ exitCode: 0 })
  })
})

describe('npm', requires('npm'), () => {
  it('installs a tarball that is here into the home, and its program is in the path', async () => {
    const made = await sh(`mkdir -p /workspace/package && cd /workspace
      echo '{"name":"gadget","version":"1.0.0","bin":{"gadget":"run.js"}}' >package/package.json
      printf '#!/usr/bin/env node\\nconsole.log("gadget runs")\\n' >package/run.js && chmod +x package/run.js
      tar -czf gadget.tgz package && npm install -g ./gadget.tgz && which gadget && gadget`)
    expect(made).toMatchObject({ exitCode: 0 })
    expect(made.stdout.trim().split('\n').slice(-2)).toEqual(['/home/user/.local/bin/gadget', 'gadget runs'])
  })

  it.each(['npm install left-pad', 'npm i -g typescript', 'npm view x'])(
    'says what to type on the host, and does not try: %s',
    async (line) => {
      const refused = await sh(line)
      expect(refused).toMatchObject({ exitCode: 1, stdout: '' })
      expect(refused.stderr).toMatch(/^npm: sandboxes have no network\. On the host: npm install /)
    },
  )
})
