import { existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { AirlockError, parseConfig, type Config } from '@airlock/contract'
import { parse } from 'smol-toml'

export type Environment = Readonly<Record<string, string | undefined>>

export interface Settings {
  readonly config: Config
  /** S of the layout: what survives a reboot. */
  readonly stateDir: string
  /** R of the layout: sockets and whatever dies with the machine. */
  readonly runtimeDir: string
  /** Holds a password: for the control plane alone, and never printed. */
  readonly databaseUrl: string | null
  /** Who may sign tokens; null when nobody may. Holds a secret too. */
  readonly jwt: JwtSettings | null
}

interface JwtSettings {
  readonly issuer: string
  readonly audience: string
  readonly jwksUrl: string | null
  readonly jwksFile: string | null
  readonly secret: string | null
  readonly tenantClaim: string
  readonly roleClaim: string
  readonly agentsClaim: string
  readonly clockToleranceS: number
}

export const ROOT_STATE = '/var/lib/airlock'
const ROOT_RUNTIME = '/run/airlock'

/** What a process of ours inherits. Everything else of the operator's environment stays outside. */
const INHERITED = ['PATH', 'HOME', 'TZ', 'LANG', 'NODE_EXTRA_CA_CERTS', 'NODE_COMPILE_CACHE']

export function environment(): Environment {
  return process.env
}

/** Reads `airlock.toml` and the environment. Fails closed on what it does not know and on what would expose the API. */
export function loadSettings(env: Environment, cwd: string): Settings {
  const config = parseConfig(readConfigFile(env, cwd), env)
  throwOnExposure(config)
  return {
    config: { ...config, tls_cert: absolute(config.tls_cert, cwd), tls_key: absolute(config.tls_key, cwd) },
    stateDir: config.home ?? ROOT_STATE,
    runtimeDir: config.home === undefined ? ROOT_RUNTIME : join(config.home, 'run'),
    databaseUrl: readDatabaseUrl(env),
    jwt: jwtSettings(config, env, cwd),
  }
}

/** The environment of a child: an allowlist, and its own settings as one JSON text. */
export function childEnvironment(env: Environment, settings: object): Record<string, string> {
  const child: Record<string, string> = { AIRLOCK_PROCESS: JSON.stringify(settings) }
  for (const name of INHERITED) if (env[name] !== undefined) child[name] = env[name]
  return child
}

function readConfigFile(env: Environment, cwd: string): Record<string, unknown> {
  const named = env['AIRLOCK_CONFIG']
  const candidates = [join(env['AIRLOCK_HOME'] ?? ROOT_STATE, 'airlock.toml'), join(cwd, 'airlock.toml')]
  const path = named === undefined ? candidates.find((file) => existsSync(file)) : resolve(cwd, named)
  if (path === undefined) return {}
  try {
    return parse(readFileSync(path, 'utf8'))
  } catch (cause) {
    throw new AirlockError('config_invalid', `${path} cannot be read as TOML: ${firstLine(cause)}.`, { cause })
  }
}

/** Fails closed: what is set but not understood must not mean SQLite. The value is not repeated. */
function readDatabaseUrl(env: Environment): string | null {
  const url = env['DATABASE_URL']
  if (url === undefined) return null
  if (/^postgres(?:ql)?:\/\/./.test(url)) return url
  throw new AirlockError('config_invalid', 'DATABASE_URL must begin with postgres:// or postgresql://.')
}

function jwtSettings(config: Config, env: Environment, cwd: string): JwtSettings | null {
  const { jwt_issuer: issuer, jwt_audience: audience, jwks_url: jwksUrl, jwks_file: jwksFile } = config
  const secret = env['AIRLOCK_JWT_SECRET']
  const keys = [jwksUrl, jwksFile, secret].filter((one) => one !== undefined)
  if (issuer === undefined && audience === undefined && keys.length === 0) return null
  if (issuer === undefined || audience === undefined || keys.length === 0)
    throw new AirlockError('config_invalid', HALF)
  throwOnWeakKeys(config, secret)
  return {
    issuer,
    audience,
    jwksUrl: jwksUrl ?? null,
    jwksFile: absolute(jwksFile, cwd) ?? null,
    secret: secret ?? null,
    tenantClaim: config.jwt_tenant_claim,
    roleClaim: config.jwt_role_claim,
    agentsClaim: config.jwt_agents_claim,
    clockToleranceS: config.jwt_clock_tolerance_s,
  }
}

/** Half of an issuer is an error: without the rest it would accept more, or nothing. */
const HALF = 'Tokens need jwt_issuer, jwt_audience, and one of jwks_url, jwks_file and AIRLOCK_JWT_SECRET.'
const SECRET_LENGTH = 32

function throwOnWeakKeys(config: Config, secret: string | undefined): void {
  const { jwks_url: url, jwks_file: file } = config
  if (url !== undefined && file !== undefined)
    throw new AirlockError('config_invalid', 'Set jwks_url or jwks_file, not both.')
  if (secret !== undefined && secret.length < SECRET_LENGTH)
    throw new AirlockError('config_invalid', `AIRLOCK_JWT_SECRET is shorter than ${SECRET_LENGTH} characters.`)
  // Who can change the keys on their way can be anybody.
  if (url !== undefined && !url.startsWith('https:') && !LOOPBACK.test(new URL(url).hostname))
    throw new AirlockError('config_invalid', 'jwks_url must be https, or on loopback.')
}

const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/

/** Keys travel in every request, so beyond loopback they need TLS: ours, or that of a proxy in front of us. */
function throwOnExposure(config: Config): void {
  if ((config.tls_cert === undefined) !== (config.tls_key === undefined))
    throw new AirlockError('config_invalid', 'tls_cert and tls_key belong together: set both or none.')
  const loopback = config.host === 'localhost' || config.host === '::1' || /^127(\.\d{1,3}){3}$/.test(config.host)
  if (!loopback && config.tls_cert === undefined && !config.trusted_proxy)
    throw new AirlockError('config_invalid', `host ${config.host} is not loopback: set TLS or trusted_proxy.`)
}

function absolute(path: string | undefined, cwd: string): string | undefined {
  return path === undefined ? undefined : resolve(cwd, path)
}

function firstLine(cause: unknown): string {
  return (cause instanceof Error ? cause.message : String(cause)).split('\n')[0] ?? ''
}
