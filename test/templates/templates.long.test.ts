import { Airlock } from '@airlock/sdk'
import { execFileSync } from 'node:child_process'
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { tarOf } from '../../packages/std/src/tar/testing/tar-writer.ts'
import { requires } from '../support/requires.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { switchShippedRulesOff } from '../support/shipped-rules.ts'

let server: TestServer
let airlock: Airlock
let admin: Airlock
let scratch: string

beforeAll(async () => {
  scratch = mkdtempSync(join(tmpdir(), 'airlock-templates-'))
  server = await startServer()
  await switchShippedRulesOff(server)
  airlock = new Airlock({ url: server.url, apiKey: server.developerKey })
  admin = new Airlock({ url: server.url, apiKey: server.adminKey })
})

afterAll(async () => {
  rmSync(scratch, { recursive: true, force: true })
  await server?.stop('SIGINT')
})

const images = () => readdirSync(join(server.home, 'data-plane', 'images'))

/** How often evidence says that something was done to a template. */
async function recorded(point: 'template.build' | 'template.remove', template: string): Promise<readonly string[]> {
  const { items } = await admin.audit.events({ point, limit: 200 })
  return items.filter(({ payload }) => payload['template'] === template).map(({ status }) => status)
}

describe('templates that are shipped', () => {
  it('are there for everybody, and what stands on one says which image', async () => {
    const [base, data] = await airlock.templates.list()
    expect(base).toMatchObject({ name: 'base', shipped: true, state: 'ready', source: 'host' })
    expect(data).toMatchObject({ name: 'data', shipped: true, state: 'absent', source: 'packages', image: null })
    const sandbox = await airlock.sandboxes.create()
    expect(sandbox.data.image).toBe(base?.image)
    await sandbox.terminate()
  })

  it('cannot be changed or removed', async () => {
    await expect(airlock.templates.put('base', {})).rejects.toMatchObject({ code: 'template_invalid' })
    await expect(airlock.templates.import('data', tarOf([{ name: 'x' }]))).rejects.toMatchObject({
      code: 'template_invalid',
    })
    await expect(airlock.templates.remove('data')).rejects.toMatchObject({ code: 'template_invalid' })
  })
})

describe('a template of packages', requires('apt-get'), () => {
  it('is built once for two sandboxes at once, without a change of the host, and gives its defaults', async () => {
    await airlock.templates.put('greeting', {
      packages: ['hello'],
      env: { GREETING: 'template', KEPT: 'yes' },
      limits: { pids: 40 },
    })
    expect(await airlock.templates.get('greeting')).toMatchObject({ state: 'absent', image: null })
    const [first, second] = await Promise.all([
      airlock.sandboxes.create({ template: 'greeting' }),
      airlock.sandboxes.create({ template: 'greeting', env: { GREETING: 'caller' }, limits: { pids: 50 } }),
    ])
    const ready = await airlock.templates.get('greeting')
    expect(ready).toMatchObject({
      state: 'ready',
      image: expect.stringMatching(/^packages-/),
      bytes: expect.any(Number),
    })
    expect([first.data.image, second.data.image]).toEqual([ready.image, ready.image])
    expect([first.data.limits.pids, second.data.limits.pids]).toEqual([40, 50])

    const said = async (sandbox: typeof first) =>
      (await sandbox.run({ shell: 'hello; echo $GREETING $KEPT; touch /usr/x 2>&1 || true' })).stdout.split('\n')
    expect(await said(first)).toEqual(['Hello, world!', 'template yes', expect.stringMatching(/Read-only/), ''])
    expect((await said(second))[1]).toBe('caller yes')
    expect((await recorded('template.build', 'greeting')).toSorted()).toEqual([
      'done',
      'done',
      'requested',
      'requested',
    ])
    expect(images().filter((name) => name.startsWith('build-'))).toEqual([])

    await expect(airlock.templates.remove('greeting')).rejects.toMatchObject({ code: 'template_in_use' })
    await Promise.all([first.terminate(), second.terminate()])
    await airlock.templates.remove('greeting')
    await expect(airlock.templates.get('greeting')).rejects.toMatchObject({ code: 'template_not_found' })
    expect(images()).not.toContain(ready.image)
    expect(await recorded('template.remove', 'greeting')).toEqual(['done'])
  })

  it('says what it does while it is built, and answers at once when it is there', async () => {
    await airlock.templates.put('steps', { packages: ['hello'] })
    const steps = await Array.fromAsync(airlock.templates.build('steps'))
    expect(new Set(steps.map((event) => (event.event === 'progress' ? event.step : event.event)))).toEqual(
      new Set(['resolve', 'download', 'unpack', 'prepare', 'ended']),
    )
    expect(await Array.fromAsync(airlock.templates.build('steps'))).toEqual([
      { event: 'ended', template: expect.objectContaining({ name: 'steps', state: 'ready' }) },
    ])
  })

  it('that cannot be built says why in the words of apt, and can be built once it is right', async () => {
    await airlock.templates.put('wrong', { packages: ['airlock-no-such-package'] })
    const why = { code: 'template_failed', message: expect.stringMatching(/locate package airlock-no-such-package/) }
    await expect(airlock.sandboxes.create({ template: 'wrong' })).rejects.toMatchObject(why)
    expect(await airlock.templates.get('wrong')).toMatchObject({ state: 'failed', error: why })
    expect((await airlock.sandboxes.list()).items.filter(({ data }) => data.template === 'wrong')).toEqual([])
    await airlock.templates.put('wrong', { packages: [] })
    expect(await airlock.templates.get('wrong')).toMatchObject({ state: 'ready', source: 'host', error: null })
  })

  it('is refused for what is not the name of a package', async () => {
    for (const name of ['-o', 'a b', '../x', 'x=1'])
      await expect(airlock.templates.put('bad', { packages: [name] })).rejects.toMatchObject({
        code: 'invalid_request',
      })
  })
})

describe('an image that is imported', () => {
  it('runs with nothing in it but one static program', async () => {
    // Debian links this one statically; Ubuntu has a script in its place.
    const program = ['/sbin/ldconfig.real', '/sbin/ldconfig'].find((path) => existsSync(path)) ?? ''
    const directory = join(scratch, 'one')
    mkdirSync(directory, { recursive: true })
    copyFileSync(program, join(directory, 'only'))
    const template = await airlock.templates.import('one', tarOfDirectory(directory))
    expect(template).toMatchObject({ state: 'ready', source: 'imported', image: expect.stringMatching(/^imported-/) })
    const sandbox = await airlock.sandboxes.create({ template: 'one' })
    expect(sandbox.data.image).toBe(template.image)
    expect(await sandbox.run(['/only', '--version'])).toMatchObject({
      exitCode: 0,
      stdout: expect.stringMatching(/^ldconfig/),
    })
    await expect(sandbox.run(['sh', '-c', 'true'])).rejects.toMatchObject({ code: 'executable_not_found' })
    await sandbox.files.mkdir('/workspace/tree')
    await sandbox.files.write('/workspace/tree/file', 'kept')
    await sandbox.files.move('/workspace/tree', '/home/user/tree')
    expect(await sandbox.files.readText('/home/user/tree/file')).toBe('kept')
    await sandbox.files.remove('/home/user/tree', { recursive: true })
    await sandbox.terminate()
  })

  it('has our user, our directories and none of its own tricks', async () => {
    const directory = makeShellRoot(join(scratch, 'shell'))
    mkdirSync(join(directory, 'etc'), { recursive: true })
    writeFileSync(
      join(directory, 'etc', 'passwd'),
      'root:x:0:0::/root:/bin/sh\nevil:x:1000:1000::/:/bin/sh\nweb:x:33:33::/:/bin/sh\n',
    )
    writeFileSync(join(directory, 'etc', 'ld.so.preload'), '/evil.so\n')
    // Links at the very places where we mount something.
    for (const name of ['proc', 'tmp', 'workspace', 'run']) {
      rmSync(join(directory, name), { force: true })
      symlinkSync('/bin', join(directory, name))
    }
    await airlock.templates.import('shell', tarOfDirectory(directory))
    const sandbox = await airlock.sandboxes.create({ template: 'shell' })
    const { stdout } = await sandbox.run([
      '/bin/sh',
      '-c',
      'while read -r line; do echo "$line"; done </etc/passwd; echo >/workspace/x && echo wrote; echo >/bin/x || echo refused',
    ])
    expect(stdout.split('\n')).toEqual([
      expect.stringMatching(/^root:/),
      'user:x:1000:1000:user:/home/user:/bin/sh',
      expect.stringMatching(/^nobody:/),
      'web:x:33:33::/:/bin/sh',
      'wrote',
      'refused',
      '',
    ])
    await sandbox.terminate()
  })

  it('is refused when it is hostile, with the name of the entry, and leaves nothing', async () => {
    const before = images()
    const link = tarOf([{ name: 'deep/out', type: '2', link: '../../etc/shadow' }])
    await expect(airlock.templates.import('evil', link)).rejects.toMatchObject({
      code: 'template_invalid',
      message: expect.stringMatching(/"deep\/out"/),
    })
    await expect(airlock.templates.import('evil', Buffer.alloc(5000, 'x'))).rejects.toMatchObject({
      code: 'template_invalid',
    })
    await expect(airlock.templates.get('evil')).rejects.toMatchObject({ code: 'template_not_found' })
    expect(images()).toEqual(before)
  })

  it('is unpacked by a process that is not root', async () => {
    const owners = execFileSync('find', [
      join(server.home, 'data-plane', 'images'),
      '-path',
      '*/imported-*/root/*',
      '-printf',
      '%U\n',
    ])
    expect(new Set(owners.toString().trim().split('\n'))).toEqual(new Set(['1879048195']))
  })
})

/** A root with a shell and its libraries, and nothing else that the guest would need. */
function makeShellRoot(directory: string): string {
  const lines = execFileSync('ldd', ['/bin/sh'], { encoding: 'utf8' }).split('\n')
  const libraries = lines.flatMap((line) => /(\/\S+) \(/u.exec(line)?.[1] ?? [])
  for (const path of ['/bin/sh', ...libraries]) {
    mkdirSync(join(directory, dirname(path)), { recursive: true })
    copyFileSync(realpathSync(path), join(directory, path))
  }
  return directory
}

function tarOfDirectory(directory: string): Buffer {
  return execFileSync(
    'tar',
    ['-C', dirname(directory), '-cf', '-', '--transform', `s,^${basename(directory)},.,`, basename(directory)],
    {
      maxBuffer: 256 * 1024 * 1024,
    },
  )
}
