import { Airlock } from '@airlock/sdk'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { DockerDaemon } from '../deploy/docker-daemon.ts'
import { requires } from '../support/requires.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { switchShippedRulesOff } from '../support/shipped-rules.ts'

let server: TestServer
let airlock: Airlock
let scratch: string

const rootfs = () => join(scratch, 'rootfs.tar')

describe('a Debian of its own', requires('root', 'debootstrap'), () => {
  beforeAll(async () => {
    scratch = mkdtempSync(join(tmpdir(), 'airlock-debian-'))
    const directory = join(scratch, 'debian')
    // What it mounts is in a namespace of its own: whatever happens, nothing of the host is below the directory.
    const alone = ['--mount', '--propagation', 'private']
    execFileSync('unshare', [...alone, 'debootstrap', '--variant=minbase', 'bookworm', directory], { stdio: 'ignore' })
    // Devices are refused, and we bring our own.
    execFileSync('tar', ['-C', directory, '--exclude=./dev/*', '-cf', rootfs(), '.'])
    rmSync(directory, { recursive: true, force: true })
    server = await startServer()
    await switchShippedRulesOff(server)
    airlock = new Airlock({ url: server.url, apiKey: server.developerKey })
  }, 600_000)

  afterAll(async () => {
    rmSync(scratch, { recursive: true, force: true })
    await server?.stop('SIGINT')
  })

  async function look(template: string): Promise<readonly string[]> {
    const sandbox = await airlock.sandboxes.create({ template })
    const { stdout } = await sandbox.run({
      shell:
        '. /etc/os-release; echo $VERSION_CODENAME; id -un; perl -e "print 6 * 7"; echo; touch /usr/x || echo refused; echo "$GREETING"',
    })
    await sandbox.terminate()
    return stdout.split('\n')
  }

  it('runs as a root file system that was imported', async () => {
    const template = await airlock.templates.import('debian', { path: rootfs() })
    expect(template).toMatchObject({ state: 'ready', source: 'imported' })
    expect(await look('debian')).toEqual(['bookworm', 'user', '42', 'refused', '', ''])
  })

  it('runs as what "docker save" wrote, with the environment of its image', requires('dockerd'), async () => {
    // Paths of its sockets are short, whatever the machine calls its place for such things.
    const docker = await DockerDaemon.start(mkdtempSync(join(tmpdir(), 'al-docker-')))
    try {
      await docker.mustDocker(['import', '--change', 'ENV GREETING=moin', rootfs(), 'airlock-test:1'])
      await docker.mustDocker(['save', '--output', join(scratch, 'saved.tar'), 'airlock-test:1'])
    } finally {
      await docker.stop()
    }
    await airlock.templates.import('saved', { path: join(scratch, 'saved.tar') })
    expect(await look('saved')).toEqual(['bookworm', 'user', '42', 'refused', 'moin', ''])
  })
})
