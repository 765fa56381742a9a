import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { request } from 'node:https'
import { createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Airlock } from '@airlock/sdk'
import { deadline, waitFor } from '@airlock/std'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { requires } from '../support/requires.ts'
import { DockerDaemon, type Ended } from './docker-daemon.ts'
import { buildServerImage } from './server-image.ts'

const DEPLOY = fileURLToPath(new URL('../../deploy/server', import.meta.url))
const COMPOSE = readFileSync(join(DEPLOY, 'compose.yaml'), 'utf8')
const CAPABILITIES = (/cap_add: \[(.*)\]/.exec(COMPOSE)?.[1] ?? '').split(', ')
const PREPARE_MS = 600_000
const READY_MS = 60_000
const REFUSAL = 'Airlock does not start: this container cannot isolate a sandbox.'

describe('the server image', requires('root', 'dockerd', 'docker-compose', 'debootstrap'), () => {
  const scratch = mkdtempSync(join(tmpdir(), 'al-image-'))
  let daemon: DockerDaemon
  let image: string

  beforeAll(async () => {
    daemon = await DockerDaemon.start(mkdtempSync(join(tmpdir(), 'al-docker-')))
    image = await buildServerImage(daemon, scratch)
  }, PREPARE_MS)

  afterAll(async () => {
    await daemon.stop()
    rmSync(scratch, { recursive: true, force: true })
  })

  /** Runs it to its end with rights as in the compose file, but for what is left out. */
  async function serveWith(rights: Partial<Rights>, env: readonly string[] = ['AIRLOCK_TRUSTED_PROXY=true']) {
    const given = ['run', '--rm', '--network', 'none', ...rightsArgs({ ...ALL_RIGHTS, ...rights })]
    return await daemon.docker([...given, ...env.flatMap((pair) => ['--env', pair]), image], { timeoutMs: READY_MS })
  }

  describe('without what it needs', () => {
    it('refuses in a container with the usual rights, and says what is missing', async () => {
      const ended = await daemon.docker(['run', '--rm', '--network', 'none', image])
      expect(ended).toEqual(refusal())
      expect(lineOf(ended, 'capabilities')).toMatch(/^✗ capabilities +missing: SYS_ADMIN → .*docs\/deploy\.md/)
      expect(lineOf(ended, 'cgroups')).toMatch(/^✗ cgroups +Control groups are mounted read-only at /)
    })

    it.each(CAPABILITIES)('refuses without the capability %s', async (capability) => {
      const ended = await serveWith({ capabilities: CAPABILITIES.filter((name) => name !== capability) })
      expect(ended).toEqual(refusal())
      // Nodes of devices are made before the server starts; without them there is no disk.
      if (capability === 'MKNOD') expect(lineOf(ended, 'loop images')).toContain('✗')
      else expect(lineOf(ended, 'capabilities')).toContain(`missing: ${capability} →`)
    })

    it("refuses under Docker's own filter of system calls", async () => {
      const ended = await serveWith({ seccomp: 'docker' })
      expect(ended).toEqual(refusal())
      expect(lineOf(ended, 'sandbox')).toContain('Operation not permitted')
    })

    it('refuses without loop devices', async () => {
      const ended = await serveWith({ loop: 'none' })
      expect(ended).toEqual(refusal())
      expect(lineOf(ended, 'loop images')).toMatch(/^✗ loop images +.*failed to setup loop device/)
    })

    it('refuses to listen beyond the container without TLS or a proxy', async () => {
      const ended = await serveWith({}, [])
      expect(ended.exitCode).toBe(1)
      expect(ended.output).toContain('host 0.0.0.0 is not loopback: set TLS or trusted_proxy.')
    })
  })

  describe('started by the compose file', () => {
    let container: Composed

    beforeAll(async () => {
      container = await Composed.up(daemon, ['compose.yaml'])
    }, READY_MS)
    afterAll(async () => await container.down())

    it('tells how it isolates when it starts, and becomes healthy', async () => {
      const logs = await container.logs()
      expect(logs).toMatch(/^✓ sandbox +started with crun \S+ in \d+ ms, \d+ forbidden system calls fail, ended$/m)
      expect(logs).toContain('Airlock is ready at http://0.0.0.0:7070')
      expect(logs).toMatch(/^ {2}isolation +oci, crun /m)
      await container.becomes('healthy', '{{.State.Health.Status}}')
    })

    it('creates, runs and ends through the published port, behind the whole wall', async () => {
      const sandbox = await (await container.client('http')).sandboxes.create()
      expect(sandbox.data.isolation).toEqual({
        backend: 'oci',
        runtime: expect.stringMatching(/^crun /),
        tier: 'standard',
        namespaces: ['user', 'pid', 'net', 'ipc', 'uts', 'mount', 'cgroup'],
        network: 'none',
        seccomp: 'allowlist',
        noNewPrivileges: true,
        capabilities: ['KILL', 'SETGID', 'SETUID', 'SETPCAP'],
        uidRange: { first: expect.any(Number), count: 65_536 },
        cgroup: expect.any(String),
        limits: expect.arrayContaining(['memory', 'pids', 'cpu', 'disk']),
        root: 'read-only',
        unmasked: [],
        mountFaults: [],
        probe: { tried: expect.any(Number), passed: [] },
      })
      const result = await sandbox.run({
        shell: 'echo $((6 * 7)) | tee /workspace/answer; df --output=target /workspace',
      })
      expect([result.exitCode, result.stdout]).toEqual([0, '42\nMounted on\n/workspace\n'])
      await sandbox.terminate()
      expect(sandbox.data.state).toBe('stopped')
      expect(loopsOf(sandbox.id)).toEqual([])
    })

    it('keeps a sandbox when a process of ours is killed', async () => {
      const sandbox = await (await container.client('http')).sandboxes.create()
      // The brackets keep the pattern from finding itself.
      await container.exec(
        'sh',
        '-c',
        'kill -9 $(grep -l [d]ist/data-plane/main.js /proc/[0-9]*/cmdline | cut -d/ -f3)',
      )
      const run = async () => (await sandbox.run(['echo', 'alive']).catch(() => undefined))?.stdout
      expect(await waitFor(run, { signal: deadline(READY_MS), everyMs: 200 })).toBe('alive\n')
      await sandbox.terminate()
    })

    it.each(['KILL', 'TERM'])(
      'loses its sandboxes by SIG%s, and leaves nothing of them on the host',
      async (signal) => {
        const sandbox = await (await container.client('http')).sandboxes.create()
        await sandbox.start(['sleep', '1000'])
        await container.kill(signal)
        await waitFor(() => (loopsOf(sandbox.id).length === 0 ? true : undefined), soon())
        expect(daemon.groups()).toEqual([])
        await container.start()
        await sandbox.refresh()
        expect([sandbox.data.state, sandbox.data.endReason]).toEqual(['error', 'guest_lost'])
      },
    )

    it('ends its sandboxes when the container is stopped, and keeps state and evidence', async () => {
      const sandbox = await (await container.client('http')).sandboxes.create()
      await sandbox.start(['sleep', '1000'])
      await container.stop()
      expect(await container.inspect('{{.State.ExitCode}}')).toBe('0')
      expect(await container.logs()).toContain('Ending 1 sandbox…')
      expect([loopsOf(sandbox.id), daemon.groups()]).toEqual([[], []])
      await container.start()
      await sandbox.refresh()
      expect([sandbox.data.state, sandbox.data.endReason]).toEqual(['stopped', 'shutdown'])
      expect(await container.exec('airlock', 'audit', 'verify')).toContain('The evidence verifies:')
    })

    it('reaps the dead: nothing of an ended sandbox is left in the container', async () => {
      const sandbox = await (await container.client('http')).sandboxes.create()
      await sandbox.terminate()
      const states = await container.exec('sh', '-c', 'cat /proc/[0-9]*/stat 2>/dev/null | grep -c ") Z " || true')
      expect(states).toBe('0')
    })
  })

  describe('with TLS of its own', () => {
    let container: Composed

    beforeAll(async () => {
      const certificate = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2']
      const names = ['-subj', '/CN=airlock', '-addext', 'subjectAltName=IP:127.0.0.1']
      const files = ['-keyout', '/tls/key.pem', '-out', '/tls/cert.pem']
      const run = [
        'run',
        '--rm',
        '--network',
        'none',
        '--volume',
        `${scratch}/tls:/tls`,
        '--entrypoint',
        'openssl',
        image,
      ]
      await daemon.mustDocker([...run, 'req', '-x509', ...certificate, ...names, ...files])
      const env = { AIRLOCK_TLS: join(scratch, 'tls') }
      container = await Composed.up(daemon, ['compose.yaml', 'compose.tls.yaml'], env)
    }, READY_MS)
    afterAll(async () => await container.down())

    it('answers by TLS only', async () => {
      const ca = readFileSync(join(scratch, 'tls/cert.pem'))
      const status = await new Promise((resolve, reject) => {
        const options = { host: '127.0.0.1', port: container.port, path: '/readyz', ca }
        request(options, (response) => resolve(response.statusCode))
          .once('error', reject)
          .end()
      })
      expect(status).toBe(200)
      await expect(fetch(`http://127.0.0.1:${container.port}/readyz`)).rejects.toThrow('fetch failed')
      await container.exec('node', '/opt/airlock/deploy/server/healthcheck.js', '7070')
    })
  })
})

interface Rights {
  readonly capabilities: readonly string[]
  readonly seccomp: 'ours' | 'docker'
  readonly loop: 'given' | 'none'
}

const ALL_RIGHTS: Rights = { capabilities: CAPABILITIES, seccomp: 'ours', loop: 'given' }

function rightsArgs({ capabilities, seccomp, loop }: Rights): readonly string[] {
  return [
    '--cap-drop=ALL',
    '--security-opt=apparmor=unconfined',
    ...capabilities.flatMap((name) => ['--cap-add', name]),
    ...(seccomp === 'ours' ? ['--security-opt', `seccomp=${DEPLOY}/seccomp.json`] : []),
    ...(loop === 'given' ? ['--device', '/dev/loop-control', '--device-cgroup-rule', 'b 7:* rwm'] : []),
  ]
}

function refusal(): unknown {
  return { exitCode: 1, stdout: expect.any(String), output: expect.stringContaining(REFUSAL) }
}

/** The line that `airlock doctor` printed about this. */
function lineOf({ stdout }: Ended, check: string): string {
  return stdout.split('\n').find((line) => line.slice(2).startsWith(`${check} `)) ?? ''
}

/** One life of the compose file, with a name and a port of its own. */
class Composed {
  readonly port: number
  readonly #daemon: DockerDaemon
  readonly #compose: readonly string[]
  readonly #options: { readonly cwd: string; readonly env: Readonly<Record<string, string>> }
  #container = ''

  static async up(daemon: DockerDaemon, files: readonly string[], env: Readonly<Record<string, string>> = {}) {
    const composed = new Composed(daemon, { files, env, port: await freePort() })
    await composed.#run('up', '--detach', '--no-build')
    composed.#container = await composed.#run('ps', '--quiet')
    await composed.#ready(1)
    return composed
  }

  private constructor(
    daemon: DockerDaemon,
    spec: { readonly files: readonly string[]; readonly env: Readonly<Record<string, string>>; readonly port: number },
  ) {
    this.#daemon = daemon
    this.port = spec.port
    this.#compose = ['--project-name', `al${spec.port}`, ...spec.files.flatMap((file) => ['--file', file])]
    this.#options = { cwd: DEPLOY, env: { ...spec.env, AIRLOCK_PUBLISH: `127.0.0.1:${spec.port}` } }
  }

  async client(scheme: 'http' | 'https'): Promise<Airlock> {
    const apiKey = await this.exec('cat', '/var/lib/airlock/developer.key')
    return new Airlock({ url: `${scheme}://127.0.0.1:${this.port}`, apiKey })
  }

  async exec(...argv: readonly string[]): Promise<string> {
    return await this.#daemon.mustDocker(['exec', this.#container, ...argv])
  }

  async logs(): Promise<string> {
    return (await this.#daemon.docker(['logs', this.#container])).output
  }

  async inspect(format: string): Promise<string> {
    return await this.#daemon.mustDocker(['inspect', '--format', format, this.#container])
  }

  async becomes(value: string, format: string): Promise<void> {
    const same = async () => ((await this.inspect(format)) === value ? true : undefined)
    await waitFor(same, { signal: deadline(READY_MS), everyMs: 500 })
  }

  async kill(signal: string): Promise<void> {
    await this.#daemon.mustDocker(['kill', '--signal', signal, this.#container])
    await this.becomes('false', '{{.State.Running}}')
  }

  async stop(): Promise<void> {
    await this.#daemon.mustDocker(['stop', this.#container])
  }

  async start(): Promise<void> {
    const before = starts(await this.logs())
    await this.#daemon.mustDocker(['start', this.#container])
    await this.#ready(before + 1)
  }

  async down(): Promise<void> {
    await this.#run('down', '--volumes')
  }

  async #ready(times: number): Promise<void> {
    const ready = async () => {
      if (starts(await this.logs()) === times) return true
      return (await this.inspect('{{.State.Running}}')) === 'true' ? undefined : false
    }
    if (await waitFor(ready, { signal: deadline(READY_MS), everyMs: 200 })) return
    throw new Error(`It ended:\n${await this.logs()}`)
  }

  async #run(...args: readonly string[]): Promise<string> {
    return await this.#daemon.mustCompose([...this.#compose, ...args], this.#options)
  }
}

function starts(logs: string): number {
  return logs.split('Airlock is ready at').length - 1
}

/** Loop devices of the host on the disk of a sandbox. */
function loopsOf(sandbox: string): readonly string[] {
  return readdirSync('/sys/block').filter((name) => backingFile(name).includes(sandbox))
}

function backingFile(device: string): string {
  try {
    return readFileSync(`/sys/block/${device}/loop/backing_file`, 'utf8')
  } catch {
    // No loop device, or one that is free.
    return ''
  }
}

function soon(): { signal: AbortSignal; everyMs: number } {
  return { signal: deadline(100_000), everyMs: 20 }
}

async function freePort(): Promise<number> {
  return await new Promise((resolve) => {
    const probe = createServer()
    probe.listen(0, '127.0.0.1', () => {
      const { port } = probe.address() as AddressInfo
      probe.close(() => resolve(port))
    })
  })
}
