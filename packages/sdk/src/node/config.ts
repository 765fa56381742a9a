import { readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { AirlockError } from '../errors.ts'

const DEFAULT_URL = 'http://127.0.0.1:7070'
const LOOPBACK: ReadonlySet<string> = new Set(['localhost', '127.0.0.1', '[::1]'])

export interface ConfigOptions {
  readonly url?: string | undefined
  readonly apiKey?: string | undefined
  /** Which key of a server on this machine to use, when none is given. */
  readonly role?: 'developer' | 'admin' | undefined
}

export interface ClientConfig {
  readonly url: string
  readonly apiKey: string | undefined
  /** Why there is no key, for the error that the first call gets. */
  readonly noKey: string
  /** Where the key is from, in words, for the error of a server that does not know it. */
  readonly keyFrom: 'AIRLOCK_API_KEY' | 'The given apiKey' | `The key in ${string}`
}

/** What is given wins over the environment, the environment over what a server on this machine left. */
export function resolveConfig(options: ConfigOptions = {}): ClientConfig {
  const url = parseUrl(options.url ?? nonEmpty(process.env['AIRLOCK_URL']) ?? DEFAULT_URL)
  const given = options.apiKey ?? nonEmpty(process.env['AIRLOCK_API_KEY'])
  const keyFrom = options.apiKey === undefined ? 'AIRLOCK_API_KEY' : 'The given apiKey'
  if (given !== undefined) return { url: url.href, apiKey: given.trim(), noKey: '', keyFrom }
  // The keys beside the state are for the server on this machine: another one must not get to see them.
  if (!isOnThisMachine(url)) return { url: url.href, apiKey: undefined, noKey: 'Set AIRLOCK_API_KEY.', keyFrom }
  return { url: url.href, ...findKey(options.role ?? 'developer') }
}

export function isOnThisMachine(url: URL): boolean {
  return LOOPBACK.has(url.hostname)
}

/** Where a server on this machine may keep its state, the likeliest first. One that was named is the only one. */
export function stateDirectories(): readonly string[] {
  const home = nonEmpty(process.env['AIRLOCK_HOME'])
  return home === undefined ? ['/var/lib/airlock', join(homedir(), '.airlock')] : [home]
}

function findKey(role: 'developer' | 'admin'): Omit<ClientConfig, 'url'> {
  let noKey = 'Start a server on this machine with "npm start", or set AIRLOCK_API_KEY.'
  for (const directory of stateDirectories()) {
    const path = join(directory, `${role}.key`)
    try {
      return { apiKey: readFileSync(path, 'utf8').trim(), noKey: '', keyFrom: `The key in ${path}` }
    } catch (error) {
      if (error instanceof Error && 'code' in error && error.code === 'EACCES')
        noKey = `Only root can read ${path}: use sudo, or set AIRLOCK_API_KEY.`
    }
  }
  return { apiKey: undefined, noKey, keyFrom: 'AIRLOCK_API_KEY' }
}

function parseUrl(text: string): URL {
  try {
    const url = new URL(text)
    if (/^https?:$/.test(url.protocol) && url.username === '') return url
  } catch {
    // The error below says it better.
  }
  throw new AirlockError('config_invalid', 'The address of the server is not an http or https URL.', {
    hint: 'Set AIRLOCK_URL to something like http://127.0.0.1:7070.',
  })
}

function nonEmpty(text: string | undefined): string | undefined {
  return text === '' ? undefined : text
}
