import { writeFileSync } from 'node:fs'
import { relative } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import { DefaultReporter, type SerializedError, type TestCase, type TestModule } from 'vitest/node'
import type { Failure, FileResult, Results, Skipped } from './results.ts'
import { testSeed } from './seed.ts'

type EndReason = Parameters<DefaultReporter['onTestRunEnd']>[2]

/** Vitest's own report, then every skipped test with its reason, then the count as the very last line. */
// oxlint-disable-next-line import/no-default-export -- vitest loads a reporter by its default export
export default class CountingReporter extends DefaultReporter {
  override onTestRunEnd(
    modules: readonly TestModule[],
    unhandled: readonly SerializedError[],
    reason: EndReason,
  ): void {
    super.onTestRunEnd(modules, unhandled, reason)
    const files = modules.map((module) => resultOf(module, this.ctx.config.root))
    const results: Results = { files, unhandled: unhandled.map(firstLine) }
    const skipped = files.flatMap((file) => file.skipped)
    for (const { name, reason: why } of skipped) this.log(`skipped: ${name} (${why})`)
    this.log(`sampled tables and property tests were drawn with TEST_SEED=${testSeed()}`)
    const path = process.env['TEST_RESULTS']
    if (path !== undefined) writeFileSync(path, JSON.stringify(results))
    const passed = files.reduce((sum, file) => sum + file.passed, 0)
    const failed = files.reduce((sum, file) => sum + file.failures.length, unhandled.length)
    this.log(`${passed} passed, ${failed} failed, ${skipped.length} skipped`)
  }
}

/** Files that do not load and hooks that fail count as failures, although neither is a test. */
function resultOf(module: TestModule, root: string): FileResult {
  const file = relative(root, module.moduleId)
  const failures: Failure[] = []
  const skipped: Skipped[] = []
  let passed = 0
  for (const suite of [module, ...module.children.allSuites()]) {
    const [error] = suite.errors()
    if (error !== undefined) failures.push(failure(suite.type === 'module' ? '' : suite.fullName, error))
  }
  for (const test of module.children.allTests()) {
    const { state, errors = [] } = test.result()
    if (state === 'passed') passed += 1
    else if (state === 'failed') failures.push(failure(test.fullName, errors[0]))
    // A test that never began needs a reason as well as one that was skipped.
    else skipped.push({ name: `${file} > ${test.fullName}`, reason: reasonOf(test) })
  }
  const seconds = secondsOf(module)
  return { project: module.project.name, file, seconds, passed, skipped, failures }
}

function secondsOf(module: TestModule): number {
  const { duration, collectDuration, setupDuration } = module.diagnostic()
  return (duration + collectDuration + setupDuration) / 1000
}

function failure(test: string, error: SerializedError | undefined): Failure {
  return { test, error: error ? firstLine(error) : 'no error was given', isBreach: error?.name === 'Breach' }
}

function firstLine({ name, message }: SerializedError): string {
  const [line = ''] = stripVTControlCharacters(message).trim().split('\n')
  return `${name ?? 'Error'}: ${line}`
}

function reasonOf(test: TestCase): string {
  const result = test.result()
  if (result.state === 'skipped' && result.note !== undefined) return result.note
  for (let at: TestCase | TestCase['parent'] = test; ; at = at.parent) {
    const { skipReason } = at.meta()
    if (skipReason !== undefined) return skipReason
    if (at.type !== 'test' && at.errors().length > 0) return 'what must run before it failed'
    if (at.type === 'module') return 'no reason given'
  }
}
