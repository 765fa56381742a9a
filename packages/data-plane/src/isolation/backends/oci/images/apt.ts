import { AirlockError, type TemplateProgress } from '@airlock/contract'
import { existsSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { CONFINED, runConfined, type ConfinedRun } from './confined.ts'

export type OnProgress = (progress: Omit<TemplateProgress, 'event'>) => void

/** What apt would fetch for some packages on this host. */
export interface Resolved {
  /** `name=version` of each package that the host lacks, sorted. */
  readonly missing: readonly string[]
  /** Names of all that it depends on, here or not. */
  readonly closure: readonly string[]
  readonly bytes: number
}

const RESOLVE_MS = 120_000
const UPDATE_MS = 300_000
const DOWNLOAD_MS = 30 * 60_000
const HOST_LISTS = '/var/lib/apt/lists'
const OWN_LISTS = `${CONFINED.apt}/lists`

/**
 * Debian's resolver and its verified downloads, in a state of their own: nothing of the host is changed, and its lists
 * are only read. Where they are absent or too old we fetch our own.
 */
export class Apt {
  readonly #dirs: Pick<ConfinedRun, 'script' | 'build' | 'apt'>
  readonly #onProgress: OnProgress
  #lists: string

  constructor(dirs: Pick<ConfinedRun, 'script' | 'build' | 'apt'>, onProgress: OnProgress) {
    this.#dirs = dirs
    this.#onProgress = onProgress
    this.#lists = hasLists(HOST_LISTS) ? HOST_LISTS : OWN_LISTS
  }

  /** Resolves and downloads into `debs` of the build. What old lists cannot do is tried once more with new ones. */
  async fetch(packages: readonly string[], maxBytes: number): Promise<Resolved> {
    writeFileSync(join(this.#dirs.apt, 'apt.conf'), CONFIGURATION)
    if (this.#lists === OWN_LISTS && !hasLists(join(this.#dirs.apt, 'lists'))) await this.#update()
    try {
      return await this.#fetch(packages, maxBytes)
    } catch (error) {
      if (this.#isUpdated) throw error
      await this.#update()
      return this.#fetch(packages, maxBytes)
    }
  }

  #isUpdated = false

  async #fetch(packages: readonly string[], maxBytes: number): Promise<Resolved> {
    this.#onProgress({ step: 'resolve', done: 0, total: null, detail: packages.join(' ') })
    const resolved = await this.#resolve(packages)
    if (resolved.bytes > maxBytes) throw failed(`The packages are larger than ${maxBytes} bytes.`)
    await this.#download(packages, resolved)
    return resolved
  }

  async #update(): Promise<void> {
    this.#onProgress({ step: 'resolve', done: 0, total: null, detail: 'fetches the lists of packages' })
    this.#lists = OWN_LISTS
    this.#isUpdated = true
    await this.#run(['update'], { timeoutMs: UPDATE_MS, network: true })
  }

  async #resolve(packages: readonly string[]): Promise<Resolved> {
    const wanted = ['--no-upgrade', '--no-remove', 'install', ...packages]
    const uris: string[] = []
    await this.#run(['--print-uris', ...wanted], { timeoutMs: RESOLVE_MS, onLine: (line) => uris.push(line) })
    const closure: string[] = []
    const onLine = (line: string) => closure.push(...[/^Inst (\S+) /u.exec(line)?.[1] ?? []].flat())
    // As if the host had nothing: so we know what of it the packages stand on.
    const bare = ['-o', `Dir::State::status=${CONFINED.apt}/nothing`, '--simulate', 'install', ...packages]
    await this.#run(bare, { timeoutMs: RESOLVE_MS, onLine })
    const files = uris.flatMap((line) => parseUri(line) ?? [])
    return {
      missing: files.map((file) => file.package).toSorted(),
      closure,
      bytes: files.reduce((sum, file) => sum + file.bytes, 0),
    }
  }

  async #download(packages: readonly string[], { bytes, missing }: Resolved): Promise<void> {
    const onStatus = (line: string) => {
      const [, percent] = /^dlstatus:\d+:([\d.]+):/u.exec(line) ?? []
      if (percent === undefined) return
      const done = Math.round((bytes * Number(percent)) / 100)
      this.#onProgress({ step: 'download', done, total: bytes, detail: `${missing.length} packages` })
    }
    const args = ['-o', 'APT::Status-Fd=3', '--download-only', '--no-upgrade', '--no-remove', 'install', ...packages]
    await this.#run(args, { timeoutMs: DOWNLOAD_MS, network: true, onStatus })
  }

  async #run(args: readonly string[], how: Omit<ConfinedRun, 'script' | 'build' | 'apt' | 'argv'>): Promise<void> {
    const lists = ['-o', `Dir::State::lists=${this.#lists}`]
    const argv = ['apt-get', '-c', `${CONFINED.apt}/apt.conf`, ...lists, '-qq', '-y', ...args]
    const { exitCode, said } = await runConfined({ ...this.#dirs, ...how, argv })
    if (exitCode !== 0) throw failed(lastWords(said) ?? `apt-get ended with ${exitCode ?? 'a signal'}.`)
  }
}

/** Hooks of the host are not ours to run, and root has no part in it. */
const CONFIGURATION = `#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
Dir::State "${CONFINED.apt}/state";
Dir::State::status "/var/lib/dpkg/status";
Dir::Cache "${CONFINED.apt}/cache";
Dir::Cache::archives "${CONFINED.build}/debs";
Dir::Log "${CONFINED.apt}/log";
Debug::NoLocking "1";
APT::Install-Recommends "0";
APT::Install-Suggests "0";
APT::Sandbox::User "";
Acquire::Languages "none";
Acquire::Retries "2";
Acquire::http::Timeout "30";
Acquire::https::Timeout "30";
`

function hasLists(dir: string): boolean {
  return existsSync(dir) && readdirSync(dir).some((name) => /_Packages(?:\.\w+)?$/u.test(name))
}

/** `'http://…' name_version_arch.deb bytes hash` */
function parseUri(line: string): { readonly package: string; readonly bytes: number } | undefined {
  const [, file, bytes] = /^'[^']+' (\S+)\.deb (\d+) /u.exec(line) ?? []
  const [name, version] = file?.split('_') ?? []
  if (name === undefined || version === undefined) return undefined
  return { package: `${name}=${decodeURIComponent(version)}`, bytes: Number(bytes) }
}

function lastWords(said: readonly string[]): string | undefined {
  const errors = said.filter((line) => line.startsWith('E: '))
  const words = (errors.length > 0 ? errors : said).slice(-3).map((line) => line.replace(/^E: /u, ''))
  return words.length === 0 ? undefined : `apt: ${words.join('; ')}`
}

function failed(message: string): AirlockError {
  return new AirlockError('template_failed', message, {
    hint: 'Check the names of the packages and that the host reaches its package archive, then build it again.',
  })
}
