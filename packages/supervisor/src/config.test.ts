import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { AirlockError } from '@airlock/contract'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { childEnvironment, loadSettings } from './config.ts'
import { processTable, type Stages } from './processes.ts'

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'al-config-'))
})
afterEach(() => rmSync(directory, { recursive: true }))

const load = (env: Record<string, string>) => loadSettings({ AIRLOCK_HOME: directory, ...env }, directory)
const invalid = (message: string) => new AirlockError('config_invalid', message)

it('reads airlock.toml in the home, and the environment wins', () => {
  writeFileSync(`${directory}/airlock.toml`, 'port = 8000\ncapacity = 7\ntls_cert = "cert.pem"\ntls_key = "key.pem"\n')
  expect(load({ AIRLOCK_PORT: '9000' })).toEqual({
    config: {
      home: directory,
      host: '127.0.0.1',
      port: 9000,
      tls_cert: `${directory}/cert.pem`,
      tls_key: `${directory}/key.pem`,
      trusted_proxy: false,
      key_requests_per_s: 2_000,
      tenant_requests_per_s: 4_000,
      backend: 'oci',
      runtime: 'auto',
      runsc: 'auto',
      capacity: 7,
      oversubscribe_memory: 2,
      oversubscribe_disk: 1,
      oversubscribe_cpus: 25,
      vault_retention_hours: 24,
      vault_max_mb: 1024,
      artifact_max_mb: 1024,
      artifact_quota_mb: 4096,
      artifact_quota_count: 10_000,
      agent_sandboxes: 5,
      agent_memory_mb: 5120,
      agent_disk_mb: 10_240,
      agent_cpus: 5,
      agent_stale_s: 3600,
      egress_resolvers: [],
      egress_allow_private: [],
      egress_mbit: 100,
      egress_connections: 128,
      egress_connection_mb: 16_384,
      egress_idle_s: 600,
      egress_connection_s: 21_600,
      agent_version_approval: false,
      jwt_tenant_claim: 'tenant',
      jwt_role_claim: 'role',
      jwt_agents_claim: 'agents',
      jwt_clock_tolerance_s: 30,
      policy_default: 'allow',
      opa_path: 'v1/data/airlock/decision',
      opa_timeout_ms: 500,
      webhook_private: false,
      monitor_every_s: 5,
      monitor_cpu: '70/90',
      monitor_memory: '80/95',
      monitor_disk: '80/95',
      monitor_pids: '80/95',
      monitor_sustained: 3,
      monitor_kill: 'pids,oom,disk,cpu',
      audit_retention_days: 30,
      audit_max_mb: 1024,
      audit_min_age_hours: 24,
      log_level: 'info',
      llm: { upstream: {} },
      graph: {},
    },
    stateDir: directory,
    runtimeDir: `${directory}/run`,
    databaseUrl: null,
    jwt: null,
  })
})

it('takes OPA_URL for what it is, and asks nobody without it', () => {
  const opaOf = (env: Record<string, string>) => {
    const table = processTable(load(env)).flat()
    return table.find(({ name }) => name === 'control-plane')?.settings
  }
  expect(opaOf({})).toMatchObject({ opa: null, policyDefault: 'allow' })
  expect(opaOf({ OPA_URL: 'http://127.0.0.1:8181', AIRLOCK_POLICY_DEFAULT: 'deny' })).toMatchObject({
    opa: { url: 'http://127.0.0.1:8181', path: 'v1/data/airlock/decision', timeoutMs: 500 },
    policyDefault: 'deny',
  })
  expect(() => load({ OPA_URL: 'file:///etc/passwd' })).toThrow('opa_url')
  expect(() => load({ AIRLOCK_POLICY_DEFAULT: 'maybe' })).toThrow('policy_default')
})

it('passes on what is watched, and what ends a sandbox', () => {
  const alertsOf = (env: Record<string, string>) => {
    const table = processTable(load(env)).flat()
    return table.find(({ name }) => name === 'control-plane')?.settings['alerts']
  }
  const usual = { warning: 80, critical: 95 }
  const env = { AIRLOCK_MONITOR_CPU: '50/60', AIRLOCK_MONITOR_DISK: 'off', AIRLOCK_MONITOR_KILL: 'none' }
  expect(alertsOf({ ...env, AIRLOCK_MONITOR_SUSTAINED: '5' })).toEqual({
    thresholds: { cpu: { warning: 50, critical: 60 }, memory: usual, disk: null, pids: usual },
    sustained: 5,
    endedFor: [],
  })
})

it('reads the file that AIRLOCK_CONFIG names, and fails when there is none', () => {
  writeFileSync(`${directory}/other.toml`, 'port = 8001\n')
  expect(load({ AIRLOCK_CONFIG: 'other.toml' }).config.port).toBe(8001)
  expect(() => load({ AIRLOCK_CONFIG: 'missing.toml' })).toThrow(`${directory}/missing.toml cannot be read`)
})

it('refuses unknown keys and text that is not TOML', () => {
  writeFileSync(`${directory}/airlock.toml`, 'porrt = 8000\n')
  expect(() => load({})).toThrow('porrt')
  writeFileSync(`${directory}/airlock.toml`, 'port = \n')
  expect(() => load({})).toThrow(`${directory}/airlock.toml cannot be read as TOML`)
})

it('fails closed when the API would be reachable without TLS', () => {
  expect(() => load({ AIRLOCK_HOST: '0.0.0.0' })).toThrow(
    invalid('host 0.0.0.0 is not loopback: set TLS or trusted_proxy.'),
  )
  expect(() => load({ AIRLOCK_TLS_CERT: 'cert.pem' })).toThrow(
    invalid('tls_cert and tls_key belong together: set both or none.'),
  )
  expect(load({ AIRLOCK_HOST: '0.0.0.0', AIRLOCK_TRUSTED_PROXY: 'true' }).config.host).toBe('0.0.0.0')
  expect(load({ AIRLOCK_HOST: '127.0.0.53' }).config.host).toBe('127.0.0.53')
})

it('takes the database from DATABASE_URL alone, and does not repeat what it does not understand', () => {
  expect(load({ DATABASE_URL: 'postgres://u:p@h/d' }).databaseUrl).toBe('postgres://u:p@h/d')
  for (const url of ['', 'mysql://u:secret@h/d', 'u:secret@h'])
    expect(() => load({ DATABASE_URL: url })).toThrow(
      invalid('DATABASE_URL must begin with postgres:// or postgresql://.'),
    )
  expect(() => load({ AIRLOCK_DATABASE_URL: 'postgres://u:p@h/d' })).toThrow('AIRLOCK_DATABASE_URL is no setting.')
})

it('gives the database to the control plane alone', () => {
  const stages = processTable(load({ DATABASE_URL: 'postgres://u:secret@h/d' }))
  const told = stages.flat().filter((one) => JSON.stringify(childEnvironment({}, one.settings)).includes('secret'))
  expect(told.map((one) => one.name)).toEqual(['control-plane'])
})

const UPSTREAM = `
[llm.upstream.main]
kind = "litellm"
base_url = "http://litellm:4000/v1"
key_file = "/etc/airlock/main.key"
first_byte_timeout_s = 1.5
[llm.upstream.main.models."gpt-5"]
upstream_name = "openai/gpt-5"
context_window = 400000
max_output = 128000
price = { input = 1.25, output = "10", cache_read = "0.125", cache_write = 0 }
[llm.upstream.main.aliases]
fast = "gpt-5"
`

it('starts the process of the keys before the doors, and tells it what it needs', () => {
  writeFileSync(`${directory}/airlock.toml`, UPSTREAM)
  const stages = processTable(load({}))
  expect(namesOf(stages)).toEqual([
    ['recorder', 'keys'],
    ['data-plane', 'doors', 'control-plane'],
  ])
  expect(stages.flat().find(({ name }) => name === 'keys')).toMatchObject({
    core: 'none',
    settings: {
      publicDir: `${directory}/public`,
      sealKeyFile: `${directory}/keys/seal.key`,
      listed: [],
      socket: `${directory}/run/keys.sock`,
      socketUid: 1_879_048_196,
      upstreams: {
        main: {
          kind: 'litellm',
          origin: 'http://litellm:4000',
          path: '/v1',
          keyFile: `${directory}/run/keys/main.key`,
          models: ['openai/gpt-5'],
          connectMs: 10_000,
          firstByteMs: 1500,
          readMs: 3_600_000,
          maxConcurrent: 64,
        },
      },
      drop: { uid: 1_879_048_197, gid: 1_879_048_197 },
    },
  })
})

it('tells no process where an operator keeps a key', () => {
  writeFileSync(`${directory}/airlock.toml`, UPSTREAM)
  expect(JSON.stringify(processTable(load({})))).not.toContain('/etc/airlock')
})

it('refuses a key in airlock.toml, and does not repeat it', () => {
  const canary = 'sk-canary-0123456789abcdef'
  for (const line of [`key = "${canary}"`, `key = ${canary}`, `key_file = "${canary}"`]) {
    writeFileSync(`${directory}/airlock.toml`, `[llm.upstream.main]\n${line}\n`)
    expect(() => load({})).toThrow(expect.objectContaining({ message: expect.not.stringContaining('canary') }))
  }
})

const namesOf = (stages: Stages) => stages.map((stage) => stage.map(({ name }) => name))

const ISSUER = { AIRLOCK_JWT_ISSUER: 'https://id.example', AIRLOCK_JWT_AUDIENCE: 'airlock' }
const SECRET = 'the secret that signs, and is long enough'

it('takes whole issuers of tokens alone, and gives their secret to the control plane alone', () => {
  const settings = load({ ...ISSUER, AIRLOCK_JWKS_FILE: 'keys.json', AIRLOCK_JWT_SECRET: SECRET })
  expect(settings.jwt).toEqual({
    issuer: 'https://id.example',
    audience: 'airlock',
    jwksUrl: null,
    jwksFile: `${directory}/keys.json`,
    secret: SECRET,
    tenantClaim: 'tenant',
    roleClaim: 'role',
    agentsClaim: 'agents',
    clockToleranceS: 30,
  })
  const children = processTable(settings).flat()
  const told = children.filter((one) => JSON.stringify(childEnvironment({}, one.settings)).includes(SECRET))
  expect(told.map((one) => one.name)).toEqual(['control-plane'])
})

it.each([
  ['an issuer without keys', ISSUER, 'Tokens need'],
  ['keys without an issuer', { AIRLOCK_JWT_SECRET: SECRET }, 'Tokens need'],
  ['an issuer for everybody', { AIRLOCK_JWT_ISSUER: 'x', AIRLOCK_JWT_SECRET: SECRET }, 'Tokens need'],
  ['a short secret', { ...ISSUER, AIRLOCK_JWT_SECRET: 'short' }, 'shorter than 32'],
  ['keys over plain HTTP', { ...ISSUER, AIRLOCK_JWKS_URL: 'http://id.example/jwks' }, 'must be https'],
  ['two sets of keys', { ...ISSUER, AIRLOCK_JWKS_URL: 'https://x/j', AIRLOCK_JWKS_FILE: 'j' }, 'not both'],
])('refuses %s', (_what, env, message) => {
  expect(() => load(env)).toThrow(message)
})

it('refuses a secret in the file of settings', () => {
  writeFileSync(`${directory}/airlock.toml`, `jwt_secret = "${SECRET}"\n`)
  expect(() => load(ISSUER)).toThrow('jwt_secret')
})

it('gives a child an allowlist of the environment and its settings', () => {
  const env = { PATH: '/bin', HOME: '/root', AWS_SECRET_ACCESS_KEY: 'x', AIRLOCK_API_KEY: 'al_x', TZ: undefined }
  expect(childEnvironment(env, { port: 1 })).toEqual({ PATH: '/bin', HOME: '/root', AIRLOCK_PROCESS: '{"port":1}' })
  const more = { NODE_COMPILE_CACHE: '/compiled', NODE_OPTIONS: '--inspect' }
  expect(childEnvironment(more, {})).toEqual({ NODE_COMPILE_CACHE: '/compiled', AIRLOCK_PROCESS: '{}' })
})
