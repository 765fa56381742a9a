import { Airlock, type LlmStatus, type Model } from '@airlock/sdk'
import type { Command } from 'commander'
import { isConfirmed } from '../confirm.ts'
import type { Context } from '../context.ts'
import { withProgress } from '../text/progress.ts'
import { type Cell, renderTable, type Row } from '../text/table.ts'
import { UsageError } from '../usage.ts'
import { withJson, type JsonOption } from '../verb.ts'
import { type LlmTest, testModel } from './llm-test.ts'

export function defineLlm(llm: Command, context: Context): void {
  addStatus(llm, context)
  addModels(llm, context)
  addTest(llm, context)
}

function addStatus(llm: Command, context: Context): void {
  withJson(llm.command('status').description('Show upstreams, their keys and breakers, and calls under way.')).action(
    async (options: JsonOption) => {
      const { terminal } = context
      const status = await new Airlock({ role: 'admin' }).models.status()
      if (options.json === true) return terminal.printJson(status)
      const head = ['UPSTREAM', 'KIND', 'MODELS', 'KEY', 'BREAKER', 'LAST', 'CALLS']
      if (status.upstreams.length > 0)
        await terminal.print(renderTable(terminal, head, status.upstreams.map(upstreamRow)))
      else
        await terminal.print('No upstream is configured: airlock/demo answers alone. See docs/models.md, "Upstreams".')
      const { calls, microDollars } = status.underWay
      await terminal.print(`${calls} calls under way, $${microDollars / 1e6} reserved for them`)
    },
  )
}

function addModels(llm: Command, context: Context): void {
  withJson(llm.command('models').description('List the models that sandboxes may name, with their prices.')).action(
    async (options: JsonOption) => {
      const { terminal } = context
      const models = await new Airlock().models.list()
      if (options.json === true) return terminal.printJson(models)
      const head = ['MODEL', 'UPSTREAM', 'READS', 'WRITES', '$/M IN', '$/M OUT', '$/M CACHED', 'ALIASES']
      await terminal.print(renderTable(terminal, head, models.map(modelRow)))
    },
  )
}

interface TestOptions extends JsonOption {
  readonly all?: boolean
}

function addTest(llm: Command, context: Context): void {
  withJson(llm.command('test').description('Make one tiny call of a model, from inside a sandbox made for it.'))
    .argument('[model]', 'a name or an alias (default: every model, after a yes)')
    .option('--all', 'every model, without asking; providers bill for it')
    .action(async (name: string | undefined, options: TestOptions) => {
      const { terminal } = context
      const airlock = new Airlock({ role: 'admin' })
      const models = chosen(await airlock.models.list(), name)
      if (name === undefined && options.all !== true) await assertWanted(context, models)
      const tests: LlmTest[] = []
      for (const model of models)
        tests.push(
          await withProgress(
            terminal,
            () => `Asking ${model.name}`,
            async () => testModel(airlock, model),
          ),
        )
      if (tests.some(({ ok, ignoresMaxOutput }) => !ok || ignoresMaxOutput)) context.exitCode = 1
      if (options.json === true) return terminal.printJson(tests)
      const head = ['MODEL', 'RESULT', 'ANSWER', 'IN', 'OUT', 'DOLLARS', 'MS']
      await terminal.print(renderTable(terminal, head, tests.map(testRow)))
      // A cell is cut; an error may end with the approval that it needs.
      for (const { model, ok, answer } of tests) if (!ok) await terminal.print(`\n${model}: ${answer}`)
    })
}

function chosen(models: readonly Model[], name: string | undefined): readonly Model[] {
  if (name === undefined) return models
  const found = models.filter((model) => model.name === name || model.aliases.includes(name))
  if (found.length > 0) return found
  throw new UsageError(`This server has no model ${name}.`, 'List the models: airlock llm models')
}

async function assertWanted({ terminal }: Context, models: readonly Model[]): Promise<void> {
  if (await isConfirmed(terminal, `Call ${models.length} models? Providers bill for each call.`)) return
  throw new UsageError('No model was called.', 'Name one, or say --all: airlock llm test --all')
}

function upstreamRow(upstream: LlmStatus['upstreams'][number]): Row {
  const { name, kind, models, key, breaker, lastStatus, lastError, calls } = upstream
  const last = lastError ?? (lastStatus === null ? '-' : `${lastStatus}`)
  return [
    name,
    kind,
    `${models}`,
    { text: key, style: key === 'present' || key === 'none' ? 'green' : 'red' },
    { text: breaker, style: breaker === 'closed' ? 'green' : 'red' },
    last,
    calls === null ? '-' : `${calls}`,
  ]
}

function modelRow({ name, aliases, upstream, contextWindow, maxOutput, price }: Model): Row {
  const { input, output, cacheRead, cacheWrite } = price
  const prices = [`${input}`, `${output}`, `${cacheRead}/${cacheWrite}`]
  return [name, upstream ?? 'built in', `${contextWindow}`, `${maxOutput}`, ...prices, aliases.join(' ') || '-']
}

/** Characters of an answer in the table; `--json` has all of it. */
const ANSWER = 60

function testRow(test: LlmTest): Row {
  const { model, answer, inputTokens, outputTokens, microDollars, estimated, ms } = test
  const text = answer.length > ANSWER ? `${answer.slice(0, ANSWER - 1)}…` : answer
  const dollars = `${estimated ? '~' : ''}${microDollars / 1e6}`
  return [model, resultCell(test), text, `${inputTokens}`, `${outputTokens}`, dollars, `${ms}`]
}

function resultCell({ ok, status, ignoresMaxOutput }: LlmTest): Cell {
  if (!ok) return { text: status === 0 ? 'unreachable' : `${status}`, style: 'red' }
  return ignoresMaxOutput ? { text: 'wrote too much', style: 'red' } : { text: 'ok', style: 'green' }
}
