import { spawn } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const require = createRequire(import.meta.url)
const PACKAGE = require.resolve('@modelcontextprotocol/conformance/package.json')
const PROGRAM = join(PACKAGE, '../dist/index.js')

/** Scenario → the checks that failed, sorted; empty where it passed. */
export type Failures = Readonly<Record<string, readonly string[]>>

/** Runs every scenario that the official suite has for a revision against the server at `url`. */
export async function runConformance(url: string, revision: string): Promise<Failures> {
  const results = mkdtempSync(join(tmpdir(), 'airlock-conformance-'))
  try {
    const said = await run(['server', '--url', url, '--suite', 'all', '--spec-version', revision, '-o', results])
    const found = readdirSync(results).map((name) => readScenario(results, name))
    if (found.length === 0) throw new TypeError(`the suite ran nothing:\n${said}`)
    return Object.fromEntries(found.toSorted(([a], [b]) => (a < b ? -1 : 1)))
  } finally {
    rmSync(results, { recursive: true, force: true })
  }
}

interface Check {
  readonly id: string
  readonly status: string
}

function readScenario(results: string, name: string): readonly [scenario: string, failed: readonly string[]] {
  const scenario = name.replace(/^server-/, '').replace(/-\d{4}-\d\d-\d\dT[\dZ-]+$/, '')
  const checks = parseChecks(readFileSync(join(results, name, 'checks.json'), 'utf8'))
  const failed = checks.filter((check) => check.status === 'FAILURE').map((check) => check.id)
  return [scenario, [...new Set(failed)].toSorted()]
}

function parseChecks(text: string): readonly Check[] {
  return JSON.parse(text) as Check[]
}

async function run(args: readonly string[]): Promise<string> {
  const child = spawn(process.execPath, [PROGRAM, ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
  let said = ''
  child.stdout.on('data', (bytes: Buffer) => (said += bytes.toString()))
  child.stderr.on('data', (bytes: Buffer) => (said += bytes.toString()))
  await new Promise((resolve, reject) => child.once('error', reject).once('close', resolve))
  return said
}
