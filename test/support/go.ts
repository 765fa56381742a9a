import { execFile, execFileSync } from 'node:child_process'
import { accessSync, chmodSync, constants, mkdirSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

/** What OPA of the pinned version is built by; an older Go fetches it from the proxy as the module that it is. */
const GO = '1.26.0'
const PROGRAMS = fileURLToPath(new URL('../../node_modules/.cache/airlock/go', import.meta.url))
const DIRECTORIES = [...(process.env['PATH'] ?? '').split(':'), '/usr/local/go/bin', '/usr/lib/go/bin']
const ASK_MS = 30_000
const BUILD_MS = 15 * 60_000

const run = promisify(execFile)

/** A Go of the machine, of whatever version. */
export function findGo(): string | undefined {
  return DIRECTORIES.map((directory) => join(directory, 'go')).find(isExecutable)
}

/** Whether Go gets modules here. */
export function answersGoProxy(): boolean {
  const go = findGo()
  if (go === undefined) return false
  try {
    execFileSync(go, ['mod', 'download', 'golang.org/x/sync@v0.20.0'], {
      env: environment(),
      timeout: ASK_MS,
      stdio: 'ignore',
    })
    return true
  } catch {
    // Which of the many ways it is not reachable does not matter.
    return false
  }
}

/** Builds a program from its module, once for each version. Takes minutes. */
export async function goInstall(name: string, module: string): Promise<string> {
  const directory = join(PROGRAMS, module.replaceAll(/[^\w.-]/g, '_'))
  const program = join(directory, name)
  if (isExecutable(program)) return program
  mkdirSync(directory, { recursive: true })
  const options = { env: { ...environment(), GOBIN: directory }, timeout: BUILD_MS }
  await run('nice', ['-n', '10', await sufficientGo(), 'install', module], options)
  return program
}

async function sufficientGo(): Promise<string> {
  const go = findGo()
  if (go === undefined) throw new Error('there is no Go: the test should have been skipped')
  const { stdout } = await run(go, ['env', 'GOVERSION'], { env: environment() })
  if (isSufficient(stdout)) return go
  const system = `linux-${process.arch === 'arm64' ? 'arm64' : 'amd64'}`
  const toolchain = `golang.org/toolchain@v0.0.1-go${GO}.${system}`
  const downloaded = await run(go, ['mod', 'download', '-json', toolchain], { env: environment(), timeout: BUILD_MS })
  const { Dir: root } = JSON.parse(downloaded.stdout) as { Dir: string }
  // A module carries no modes.
  for (const directory of ['bin', `pkg/tool/${system.replace('-', '_')}`]) makeExecutable(join(root, directory))
  return join(root, 'bin/go')
}

function isSufficient(version: string): boolean {
  const [major = 0, minor = 0] = (/go(\d+)\.(\d+)/.exec(version) ?? []).slice(1).map(Number)
  const [, needed = 0] = GO.split('.').map(Number)
  return major > 1 || minor >= needed
}

function makeExecutable(directory: string): void {
  for (const name of readdirSync(directory)) {
    const path = join(directory, name)
    if (statSync(path).isFile()) chmodSync(path, 0o755)
  }
}

/** Go of the machine decides for itself; nothing is looked up in the repository. */
function environment(): NodeJS.ProcessEnv {
  return { ...process.env, GOTOOLCHAIN: 'local', GOFLAGS: '-buildvcs=false', GOWORK: 'off' }
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return statSync(path).isFile()
  } catch {
    // Not there, or not for us: both are "lacking".
    return false
  }
}
