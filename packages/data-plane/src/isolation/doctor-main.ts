import { fileURLToPath } from 'node:url'
import { stripVTControlCharacters } from 'node:util'
import { runChecks, SANDBOX_CHECK, type Check } from './doctor.ts'

/** `airlock doctor [--json]`. Prints one line for each check; 0 when a sandbox works on this host. */
export async function runDoctor(argv: readonly string[]): Promise<number> {
  const unknown = argv.find((argument) => argument !== '--json')
  if (unknown !== undefined) {
    process.stderr.write(`Unknown argument: ${unknown}\nUsage: airlock doctor [--json]\n`)
    return 1
  }
  if (process.platform !== 'linux' && !argv.includes('--json')) {
    process.stdout.write('Airlock isolates with Linux: run it in a Linux machine, for example a virtual one.\n')
    return 1
  }
  const guestBundle = fileURLToPath(import.meta.resolve('@airlock/guest/bundle'))
  const checks = await runChecks({ runtime: 'auto', node: process.execPath, guestBundle })
  // The terminal knows whether NO_COLOR is set.
  const colour = process.stdout.isTTY && process.stdout.hasColors()
  process.stdout.write(
    argv.includes('--json') ? `${JSON.stringify({ checks }, null, 2)}\n` : renderChecks(checks, colour),
  )
  return isHealthy(checks) ? 0 : 1
}

export function isHealthy(checks: readonly Check[]): boolean {
  return checks.some(({ name, status }) => name === SANDBOX_CHECK && status === 'found')
}

const MARKS = {
  found: { sign: '✓', colour: 32 },
  limited: { sign: '!', colour: 33 },
  missing: { sign: '✗', colour: 31 },
} as const satisfies Record<Check['status'], { sign: string; colour: number }>

export function renderChecks(checks: readonly Check[], colour: boolean): string {
  const width = Math.max(...checks.map(({ name }) => name.length))
  const lines = checks.map(({ name, status, detail, todo }) => {
    const { sign, colour: code } = MARKS[status]
    const mark = colour ? `\u001B[${code}m${sign}\u001B[0m` : sign
    // One line, whatever a tool printed.
    const text = stripVTControlCharacters(todo === undefined ? detail : `${detail} → ${todo}`).replaceAll(/\s+/gu, ' ')
    return `${mark} ${name.padEnd(width)}  ${text}\n`
  })
  return lines.join('')
}
