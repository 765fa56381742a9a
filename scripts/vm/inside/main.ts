import { spawn, spawnSync } from 'node:child_process'
import { appendFileSync, readFileSync, rmSync } from 'node:fs'
import { dirname } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { readResults } from '../../../test/support/results.ts'
import type { Report, StepReport, Tests } from '../report.ts'
import { steps, type Step } from './steps.ts'

// The one program of the machine: runs every step, whatever became of those before, and reports on the second serial line.
const PORT = '/dev/ttyS1'
const ALIVE_MS = 5_000
const REPOSITORY = fileURLToPath(new URL('../../..', import.meta.url))
const MINUTE_MS = 60_000
const RESULTS = '/tmp/results.json'

spawnSync('stty', ['-F', PORT, 'raw', '-echo', '115200'])
const alive = setInterval(() => report({ kind: 'alive' }), ALIVE_MS)
report({ kind: 'alive' })
for (const step of steps(!readFileSync('/proc/cmdline', 'utf8').includes('airlock.accelerator=kvm')))
  await runStep(step)
clearInterval(alive)
report({ kind: 'end' })
// The last bytes must leave the line before the machine does.
spawnSync('sleep', ['1'])

/**
 * Emulated on several processors, V8 aborts at times where one of its threads makes code that another runs. The kernel
 * writes such an end down: a step that failed with one is done again, once.
 */
async function runStep(step: Step): Promise<void> {
  const before = countAborts()
  let outcome = await attemptStep(step)
  if (outcome.exitCode !== 0 && countAborts() > before) {
    report({ kind: 'again', step: step.name })
    outcome = await attemptStep(step)
  }
  report({ kind: 'step', step: step.name, ...outcome })
}

function countAborts(): number {
  const { stdout } = spawnSync('dmesg', { encoding: 'utf8' })
  return (stdout.match(/traps: .* trap (?:int3|invalid opcode)|MainThread.* segfault at/gu) ?? []).length
}

async function attemptStep(step: Step): Promise<Pick<StepReport, 'exitCode' | 'seconds' | 'tests'>> {
  const since = Date.now()
  rmSync(RESULTS, { force: true })
  const exitCode = await runProgram(step)
  const seconds = Math.round((Date.now() - since) / 1000)
  return { exitCode, seconds, tests: step.hasTests === true ? countTests() : null }
}

/** Answers the exit code, or null when it took too long. */
async function runProgram({ name, argv: [program = '', ...args], minutes }: Step): Promise<number | null> {
  const child = spawn(program, args, {
    cwd: REPOSITORY,
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: minutes * MINUTE_MS,
    killSignal: 'SIGKILL',
    env: {
      ...process.env,
      PATH: `${dirname(process.execPath)}:${process.env['PATH'] ?? ''}`,
      NO_COLOR: '1',
      CI: '1',
      TEST_RESULTS: RESULTS,
    },
  })
  for (const input of [child.stdout, child.stderr])
    createInterface({ input }).on('line', (text) => report({ kind: 'line', step: name, text }))
  return new Promise((resolve) => {
    child.once('error', () => resolve(127))
    child.once('exit', (code) => resolve(code))
  })
}

/** Null if the run ended early. */
function countTests(): Tests | null {
  const results = readResults(RESULTS)
  if (!results) return null
  const { files, unhandled } = results
  return {
    passed: files.reduce((sum, file) => sum + file.passed, 0),
    failed: files.reduce((sum, file) => sum + file.failures.length, unhandled.length),
    skipped: files.reduce((sum, file) => sum + file.skipped.length, 0),
  }
}

function report(value: Report): void {
  appendFileSync(PORT, `${JSON.stringify(value)}\n`)
}
