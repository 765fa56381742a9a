// An agent loop on this machine: the model asks for Python, a sandbox runs it, the model goes on with what it printed.
//   npm install openai; OPENAI_API_KEY=… MODEL=gpt-5 npx node tool-loop.ts "What is the 30th prime?"
import { Airlock, type StepResult } from '@airlock/sdk'
import OpenAI from 'openai'

const MAX_TURNS = 20
const MAX_CHARACTERS = 10_000
const RUN_CODE = {
  type: 'function',
  function: {
    name: 'run_code',
    description:
      'Run Python that remembers between calls. There is no network. Answers what it printed and the value of the last expression.',
    parameters: {
      type: 'object',
      properties: { code: { type: 'string' } },
      required: ['code'],
      additionalProperties: false,
    },
  },
} satisfies OpenAI.ChatCompletionTool

const openai = new OpenAI()
const template = process.env['TEMPLATE'] ?? 'data'
await using session = await new Airlock().sessions.create({ runtime: 'python', create: { template } })
const messages: OpenAI.ChatCompletionMessageParam[] = [{ role: 'user', content: process.argv[2] ?? 'What is 6 * 7?' }]

for (let turn = 1; turn <= MAX_TURNS; turn++) {
  const model = process.env['MODEL'] ?? 'gpt-5'
  const { choices } = await openai.chat.completions.create({ model, messages, tools: [RUN_CODE] })
  const message = choices[0]?.message
  if (!message) throw new Error('The model answered without a choice.')
  messages.push(message)
  for (const call of message.tool_calls ?? []) messages.push(await answerCall(call))
  if (!message.tool_calls?.length) {
    console.log(message.content)
    break
  }
  if (turn === MAX_TURNS) throw new Error(`The model did not finish in ${MAX_TURNS} turns.`)
}

/** A call that cannot be run is an answer for the model, not the end of the loop. */
async function answerCall(call: OpenAI.ChatCompletionMessageToolCall): Promise<OpenAI.ChatCompletionToolMessageParam> {
  const answer = (content: string) => ({ role: 'tool' as const, tool_call_id: call.id, content })
  if (call.type !== 'function' || call.function.name !== 'run_code') return answer('There is no such tool.')
  const code = readCode(call.function.arguments)
  return answer(code === undefined ? 'The arguments must be {"code": "…"}.' : sayResult(await session.run(code)))
}

function readCode(text: string): string | undefined {
  try {
    const { code } = JSON.parse(text)
    return typeof code === 'string' ? code : undefined
  } catch {
    return undefined
  }
}

/** Code that fails is a result too: the model reads the traceback and tries again. */
function sayResult({ stdout, stderr, outputs, error }: StepResult): string {
  const traceback = error?.traceback
  const said = [stdout, stderr, ...outputs.map(({ text }) => text), traceback].filter(Boolean).join('\n')
  return said.slice(0, MAX_CHARACTERS) || '(no output)'
}
