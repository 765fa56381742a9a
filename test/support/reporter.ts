import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { DefaultReporter, type SerializedError, type TestCase, type TestModule } from 'vitest/node'
import { RESULTS_FILE, type Results, type Skipped } from './results.ts'
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
    const results = count(modules, unhandled.length)
    for (const { name, reason: why } of results.skipped) this.log(`skipped: ${name} (${why})`)
    for (const name of results.retried) this.log(`passed on the second try: ${name}`)
    this.log(`sampled tables and property tests were drawn with TEST_SEED=${testSeed()}`)
    mkdirSync(dirname(RESULTS_FILE), { recursive: true })
    writeFileSync(RESULTS_FILE, JSON.stringify(results, null, 2))
    this.log(`${results.passed} passed, ${results.failed} failed, ${results.skipped.length} skipped`)
  }
}

/** Files that do not load, hooks that fail and errors outside of tests count as failures: none of them is a test. */
function count(modules: readonly TestModule[], unhandled: number): Results {
  let passed = 0
  let failed = unhandled
  const skipped: Skipped[] = []
  for (const module of modules) {
    const broken = [module, ...module.children.allSuites()].filter((suite) => suite.errors().length > 0)
    failed += broken.length
    for (const test of module.children.allTests()) {
      const { state } = test.result()
      if (state === 'passed') passed += 1
      else if (state === 'failed') failed += 1
      // Skipped, or never begun because all around it is: either way somebody must say why.
      else skipped.push({ name: `${module.relativeModuleId} > ${test.fullName}`, reason: reasonOf(test) })
    }
  }
  return { passed, failed, skipped, retried: retried(modules) }
}

function retried(modules: readonly TestModule[]): readonly string[] {
  return modules.flatMap((module) =>
    [...module.children.allTests()]
      .filter((test) => test.diagnostic()?.flaky === true)
      .map((test) => `${module.relativeModuleId} > ${test.fullName}`),
  )
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
