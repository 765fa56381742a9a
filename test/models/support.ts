import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Airlock, type Sandbox } from '@airlock/sdk'
import { build } from 'esbuild'
import { type ServerOptions, startServer, type TestServer } from '../support/server.ts'

export const CANARY = 'sk-canary-7f3a9b2c4d5e6f708192a3b4c5d6e7f8'
const CLIENTS = fileURLToPath(new URL('clients-inside.ts', import.meta.url))
const PRICE = '{ input = 3, output = 15, cache_read = 0.3, cache_write = 3.75 }'
const MODEL = `{ context_window = 100000, max_output = 1000, price = ${PRICE} }`

/** The clients with all that they need, in one file. */
export async function bundleClients(): Promise<string> {
  const { outputFiles } = await build({
    entryPoints: [CLIENTS],
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    banner: { js: "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);" },
    keepNames: true,
    write: false,
    logLevel: 'error',
  })
  return outputFiles[0]?.text ?? ''
}

/** A server with the upstream at that port, as an OpenAI and as an Anthropic. Null is a server without one. */
export async function startModelServer(
  port: number | null,
  options: Omit<ServerOptions, 'env'> & { readonly env?: Readonly<Record<string, string>> } = {},
): Promise<TestServer & { readonly settings: string; readonly clean: () => void }> {
  const dir = mkdtempSync(join(tmpdir(), 'al-models-'))
  writeFileSync(join(dir, 'main.key'), `${CANARY}\n`, { mode: 0o600 })
  const upstream = (kind: string, path: string, model: string) => `[llm.upstream.${kind}]
kind = "${kind}"
base_url = "http://127.0.0.1:${port}${path}"
key_file = "${dir}/main.key"
models = { "${model}" = ${MODEL} }
`
  const toml = port === null ? '' : `${upstream('litellm', '', 'small')}${upstream('openai', '/v1', 'gpt')}`
  writeFileSync(join(dir, 'airlock.toml'), toml)
  const settings = join(dir, 'airlock.toml')
  const server = await startServer({ ...options, env: { ...options.env, AIRLOCK_CONFIG: settings } })
  const admin = new Airlock({ url: server.url, apiKey: server.adminKey })
  await admin.policies.put({
    name: 'models',
    rules: [
      {
        id: 'all',
        kind: 'model',
        effect: 'allow',
        risk: 'low',
        reason: 'Tested.',
        match: { models: ['small', 'gpt', 'airlock/demo'] },
      },
    ],
  })
  return { ...server, settings, clean: () => rmSync(dir, { recursive: true, force: true }) }
}

export async function askInside(box: Sandbox, asks: readonly string[], model: string): Promise<unknown[]> {
  const { stdout, stderr } = await box.run({ shell: `node clients.mjs ${asks.join(',')} ${model}` })
  try {
    return JSON.parse(stdout) as unknown[]
  } catch {
    throw new TypeError(`the clients said: ${stdout} ${stderr}`)
  }
}
