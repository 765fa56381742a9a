import { execFileSync, spawn } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const FIXTURES = fileURLToPath(new URL('fixtures', import.meta.url))
const TSC = join(ROOT, 'node_modules/typescript/bin/tsc')

export interface Ended {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/** Builds what users install, as they get it: two archives in a directory outside of the repository. */
export function packPackages(): { readonly directory: string; readonly archives: readonly string[] } {
  const directory = mkdtempSync(join(tmpdir(), 'airlock-packed-'))
  execFileSync(process.execPath, [join(ROOT, 'scripts/build-packages.ts')], { stdio: 'pipe' })
  const archives = ['sdk', 'cli'].map((name) => {
    const source = join(ROOT, 'packages', name, 'dist')
    const [packed] = parsePacked(npm(process.execPath, ['pack', '--json', source], directory))
    return join(directory, packed?.filename ?? '')
  })
  return { directory, archives }
}

/** An empty project with the packages installed, which knows nothing of the repository, on one Node. */
export class PackedProject {
  readonly directory: string
  readonly #node: string

  constructor(node: string, archives: readonly string[]) {
    this.#node = node
    this.directory = mkdtempSync(join(tmpdir(), 'airlock-consumer-'))
    this.write('package.json', { name: 'consumer', private: true, type: 'module' })
    // Without a registry: there is nothing else to fetch.
    npm(node, ['install', '--offline', ...archives], this.directory)
    cpSync(FIXTURES, this.directory, { recursive: true })
  }

  write(name: string, content: string | object): void {
    const text = typeof content === 'string' ? content : JSON.stringify(content)
    writeFileSync(join(this.directory, name), text)
  }

  /** Compiles with these options on top of `strict`, and without looking away from the declarations themselves. */
  async compile(files: readonly string[], compilerOptions: object): Promise<Ended> {
    const strict = { strict: true, skipLibCheck: false, target: 'es2022', types: [], ...compilerOptions }
    this.write('tsconfig.json', { compilerOptions: strict, files })
    return this.#run(process.execPath, [TSC, '-p', 'tsconfig.json'], {})
  }

  async runProgram(file: string, env: Readonly<Record<string, string>>): Promise<Ended> {
    return this.#run(this.#node, [file], env)
  }

  async airlock(args: readonly string[], env: Readonly<Record<string, string>>): Promise<Ended> {
    return this.#run(this.#node, ['node_modules/.bin/airlock', ...args], env)
  }

  remove(): void {
    rmSync(this.directory, { recursive: true, force: true })
  }

  /** With exactly this environment: nothing of the developer's own leads to a server or a key. */
  async #run(program: string, args: readonly string[], env: Readonly<Record<string, string>>): Promise<Ended> {
    const child = spawn(program, args, {
      cwd: this.directory,
      env: { PATH: '/usr/bin:/bin', HOME: this.directory, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const output = { stdout: '', stderr: '' }
    child.stdout.on('data', (bytes: Buffer) => (output.stdout += bytes.toString()))
    child.stderr.on('data', (bytes: Buffer) => (output.stderr += bytes.toString()))
    const code = await new Promise<number | null>((resolve, reject) => {
      child.once('error', reject)
      child.once('close', resolve)
    })
    return { code, ...output }
  }
}

export interface Certificates {
  /** For clients: who issued it. */
  readonly authority: string
  readonly certificate: string
  readonly key: string
}

/** An authority of our own, and a certificate for one address. */
export function makeCertificates(directory: string, address: string): Certificates {
  const at = (name: string): string => join(directory, name)
  mkdirSync(directory, { recursive: true })
  const openssl = (...args: string[]): Buffer => execFileSync('openssl', args, { cwd: directory, stdio: 'pipe' })
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2']
  openssl('req', '-x509', ...key, '-subj', '/CN=Test Authority', '-keyout', 'ca.key', '-out', 'ca.pem')
  const named = ['-subj', '/CN=airlock', '-addext', `subjectAltName=IP:${address}`]
  const issued = ['-CA', 'ca.pem', '-CAkey', 'ca.key', '-addext', 'basicConstraints=CA:FALSE']
  openssl('req', '-x509', ...key, ...named, ...issued, '-keyout', 'server.key', '-out', 'server.pem')
  return { authority: at('ca.pem'), certificate: at('server.pem'), key: at('server.key') }
}

/** The npm of this machine, run by a Node of our choice. */
function npm(node: string, args: readonly string[], cwd: string): string {
  const env = { PATH: `${join(node, '..')}${delimiter}/usr/bin:/bin`, HOME: cwd }
  return execFileSync(node, [npmProgram(), ...args], { cwd, env, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
}

function npmProgram(): string {
  const given = process.env['npm_execpath']
  if (given?.endsWith('npm-cli.js') === true) return given
  return realpathSync(execFileSync('sh', ['-c', 'command -v npm'], { encoding: 'utf8' }).trim())
}

function parsePacked(text: string): readonly { readonly filename: string }[] {
  return JSON.parse(text) as { filename: string }[]
}
