import type { Airlock, Model, Sandbox, UsageRow } from '@airlock/sdk'

/** Output that the test call asks for at most. */
const MAX_OUTPUT = 16

/** The whole way of one tiny call, from a program inside a sandbox to the provider and back. */
export interface LlmTest {
  readonly model: string
  readonly ok: boolean
  /** HTTP status that the program inside saw. */
  readonly status: number
  /** Text of the model, or the error that the program inside saw. */
  readonly answer: string
  readonly ms: number
  readonly inputTokens: number
  readonly outputTokens: number
  readonly microDollars: number
  /** The provider reported no usage: the call was charged its ceiling. */
  readonly estimated: boolean
  /** It wrote more than it was asked for. */
  readonly ignoresMaxOutput: boolean
}

/** The standard library alone, so that it works in every template with Python. */
const PROGRAM = `
import json, os, sys, time, urllib.error, urllib.request
model, protocol, most = sys.argv[1], sys.argv[2], int(sys.argv[3])
word = 'Answer with the word ready.'
if protocol == 'messages':
    url = os.environ['ANTHROPIC_BASE_URL'] + '/v1/messages'
    headers = {'x-api-key': os.environ['ANTHROPIC_API_KEY'], 'anthropic-version': '2023-06-01'}
elif protocol == 'embeddings':
    url = os.environ['OPENAI_BASE_URL'] + '/embeddings'
    headers = {'authorization': 'Bearer ' + os.environ['OPENAI_API_KEY']}
else:
    url = os.environ['OPENAI_BASE_URL'] + '/chat/completions'
    headers = {'authorization': 'Bearer ' + os.environ['OPENAI_API_KEY']}
if protocol == 'embeddings':
    body = {'model': model, 'input': word}
else:
    body = {'model': model, 'max_tokens': most, 'messages': [{'role': 'user', 'content': word}]}
headers['content-type'] = 'application/json'
began = time.monotonic()
try:
    answer = urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode(), headers), timeout=120)
except urllib.error.HTTPError as error:
    answer = error
text = answer.read(1000000).decode('utf-8', 'replace')
print(json.dumps({'status': answer.status, 'ms': round((time.monotonic() - began) * 1000), 'body': text}))
`

/** Output of the program, which the sandbox could have replaced: it is shown, and decides nothing. */
interface Printed {
  readonly status: number
  readonly ms: number
  readonly body: string
}

/** Makes one sandbox for the model, asks it one question from inside, and reads what the ledger says of it. */
export async function testModel(airlock: Airlock, model: Model): Promise<LlmTest> {
  await using sandbox = await airlock.sandboxes.create({ models: [model.name], labels: { for: 'llm-test' } })
  const said = await ask(sandbox, model)
  const [row] = (await airlock.usage.report({ sandbox: sandbox.id, by: 'model' })).items
  return { ...toTest(model, said), ...spentOf(row) }
}

async function ask(sandbox: Sandbox, model: Model): Promise<Printed> {
  const argv = ['python3', '-c', PROGRAM, model.name, protocolOf(model), `${MAX_OUTPUT}`]
  const { exitCode, stdout, stderr } = await sandbox.run(argv)
  if (exitCode === 0) return readPrinted(parseJson(stdout))
  // No door to connect to, or no Python: the last line says which.
  return { status: 0, ms: 0, body: stderr.trimEnd().split('\n').at(-1) ?? '' }
}

function protocolOf({ kind, maxOutput }: Model): 'chat' | 'messages' | 'embeddings' {
  if (maxOutput === 0) return 'embeddings'
  return kind === 'anthropic' ? 'messages' : 'chat'
}

function toTest({ name }: Model, { status, ms, body }: Printed) {
  const ok = status >= 200 && status < 300
  return { model: name, ok, status, answer: textOf(body), ms }
}

function spentOf(row: UsageRow | undefined) {
  const { inputTokens = 0, outputTokens = 0, microDollars = 0, estimatedCalls = 0 } = row ?? {}
  const ignoresMaxOutput = outputTokens > MAX_OUTPUT
  return { inputTokens, outputTokens, microDollars, estimated: estimatedCalls > 0, ignoresMaxOutput }
}

function readPrinted(value: unknown): Printed {
  const { status, ms, body } = fieldsOf(value)
  return {
    status: typeof status === 'number' ? status : 0,
    ms: typeof ms === 'number' ? ms : 0,
    body: typeof body === 'string' ? body : '',
  }
}

/** Text of an answer of either protocol, or of an error; else its beginning. */
function textOf(body: string): string {
  const { error, choices, content, data } = fieldsOf(parseJson(body))
  const chat = fieldsOf(fieldsOf(firstOf(choices))['message'])['content']
  const found = [fieldsOf(error)['message'], chat, fieldsOf(firstOf(content))['text']].find(isText)
  if (found !== undefined) return found
  return Array.isArray(data) ? `${data.length} embedding` : body.slice(0, 200)
}

function isText(value: unknown): value is string {
  return typeof value === 'string'
}

function firstOf(value: unknown): unknown {
  return Array.isArray(value) ? value[0] : undefined
}

function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? { ...value } : {}
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // Shown as it is.
    return undefined
  }
}
