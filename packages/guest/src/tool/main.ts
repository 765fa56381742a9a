import { readFileSync } from 'node:fs'
import { request } from 'node:http'
import { INSIDE } from '@airlock/contract/guest'

// `airlock-tool`: calls a tool by the door `broker`, for a program or a shell. Its output is the body of the answer.

const USAGE = `Use: airlock-tool --list
     airlock-tool NAME ['{"parameter": "value"}']`
const [FAILED, WRONG] = [1, 2] as const
/** The service answered, with an error. */
const ERROR_STATUS = 400

interface Answer {
  readonly ok?: boolean
  readonly data?: {
    readonly status?: number
    readonly encoding?: string
    readonly body?: string
    readonly tools?: unknown
  }
  readonly error?: { readonly code?: string; readonly message?: string; readonly hint?: string }
}

void run(process.argv.slice(2)).catch((error: unknown) => {
  process.exitCode = FAILED
  process.stderr.write(`airlock-tool: ${explain(error)}\n`)
})

async function run([name, params = '{}', ...rest]: readonly string[]): Promise<void> {
  if (name === undefined || rest.length > 0 || (name.startsWith('-') && name !== '--list')) return usage()
  if (name === '--list') return list(await ask('GET', '/v1/tools'))
  const given = parse(params)
  if (given === undefined) return usage()
  show(await ask('POST', '/v1/tools/call', JSON.stringify({ tool: name, params: given })))
}

function usage(): void {
  process.exitCode = WRONG
  process.stderr.write(`${USAGE}\n`)
}

function parse(text: string): object | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? value : undefined
  } catch {
    // The caller says how it is used.
    return undefined
  }
}

function list({ ok, data, error }: Answer): void {
  if (ok !== true) return refuse(error)
  process.stdout.write(`${JSON.stringify(data?.tools, null, 2)}\n`)
}

function show({ ok, data, error }: Answer): void {
  if (ok !== true || data === undefined) return refuse(error)
  const { status = 0, encoding, body = '' } = data
  process.stdout.write(encoding === 'base64' ? Buffer.from(body, 'base64') : body)
  if (status < ERROR_STATUS) return
  process.exitCode = FAILED
  process.stderr.write(`airlock-tool: the service answered ${status}\n`)
}

function refuse({ code = 'internal', message = 'It failed.', hint = '' }: NonNullable<Answer['error']> = {}): void {
  process.exitCode = FAILED
  process.stderr.write(`airlock-tool: ${message} (${code})\n${hint === '' ? '' : `${hint}\n`}`)
}

// oxlint-disable-next-line max-params -- a request reads best as one line
async function ask(method: string, path: string, body = ''): Promise<Answer> {
  const token = readFileSync(INSIDE.token, 'utf8').trim()
  const headers = { host: 'airlock', authorization: `Bearer ${token}`, 'content-length': Buffer.byteLength(body) }
  return new Promise((resolve, reject) => {
    const outgoing = request({ socketPath: INSIDE.toolsSocket, method, path, headers }, (response) => {
      let text = ''
      response.setEncoding('utf8').on('data', (piece: string) => (text += piece))
      response.on('error', reject).on('end', () => {
        try {
          resolve(JSON.parse(text) as Answer)
        } catch (error) {
          reject(error instanceof Error ? error : new TypeError('not JSON'))
        }
      })
    })
    outgoing.on('error', reject).end(body)
  })
}

function explain(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  if (code === 'ENOENT') return 'this sandbox has no broker door; create one with --door broker'
  if (code === 'ECONNREFUSED') return 'the door restarts; try again in a moment'
  return error instanceof Error ? error.message : String(error)
}
