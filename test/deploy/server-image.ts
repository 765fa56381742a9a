import { execFile } from 'node:child_process'
import { copyFileSync, cpSync, existsSync, mkdirSync, realpathSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { arch } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { DockerDaemon } from './docker-daemon.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
/** Kept between runs: making it takes a minute. */
const CACHE = '/var/cache/airlock-tests'
const SUITE = 'bookworm'
const BUILD_MS = 400_000

const run = promisify(execFile)

/**
 * Builds the server image from this tree, by the Dockerfile that users build. No registry of images is asked: Debian comes
 * from its own mirror, and npm from this machine.
 */
export async function buildServerImage(daemon: DockerDaemon, scratch: string): Promise<string> {
  await daemon.mustDocker(['import', await debianTarball(scratch), 'airlock-test/debian'])
  await daemon.mustDocker(['build', '--quiet', '--tag', 'airlock-test/npm', npmContext(scratch)], {
    timeoutMs: BUILD_MS,
  })
  const bases = ['--build-arg', 'BASE=airlock-test/debian', '--build-arg', 'NPM=airlock-test/npm']
  const file = ['--file', join(ROOT, 'deploy/server/Dockerfile'), '--tag', 'airlock-server']
  await daemon.mustDocker(['build', '--network', 'host', ...bases, ...file, ROOT], { timeoutMs: BUILD_MS })
  return 'airlock-server'
}

async function debianTarball(scratch: string): Promise<string> {
  const tarball = join(CACHE, `debian-${SUITE}-${arch()}.tar`)
  if (existsSync(tarball)) return tarball
  const root = join(scratch, 'debian')
  await run('debootstrap', ['--variant=minbase', SUITE, root], { timeout: BUILD_MS, maxBuffer: 16 * 1024 * 1024 })
  rmSync(join(root, 'var/cache/apt/archives'), { recursive: true })
  mkdirSync(CACHE, { recursive: true })
  await run('tar', ['--create', '--one-file-system', '--directory', root, '--file', `${tarball}.new`, '.'])
  renameSync(`${tarball}.new`, tarball)
  rmSync(root, { recursive: true })
  return tarball
}

/** Stands for the image with npm: this machine's npm, the Node that runs the test, and whom this machine trusts. */
function npmContext(scratch: string): string {
  const context = join(scratch, 'npm')
  mkdirSync(context)
  const cli = realpathSync(process.env['npm_execpath'] ?? '/usr/bin/npm')
  cpSync(dirname(dirname(cli)), join(context, 'npm'), { recursive: true })
  copyFileSync(process.execPath, join(context, 'node'))
  copyFileSync('/etc/ssl/certs/ca-certificates.crt', join(context, 'trusted.crt'))
  const lines = [
    'FROM airlock-test/debian',
    'COPY node /usr/local/bin/node',
    'COPY npm /usr/local/lib/npm',
    'COPY trusted.crt /etc/trusted.crt',
    'RUN ln -s ../lib/npm/bin/npm-cli.js /usr/local/bin/npm && chmod 755 /usr/local/bin/node',
    'ENV NODE_EXTRA_CA_CERTS=/etc/trusted.crt',
  ]
  writeFileSync(join(context, 'Dockerfile'), lines.join('\n'))
  return context
}
