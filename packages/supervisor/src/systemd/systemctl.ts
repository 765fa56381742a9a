import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { AirlockError } from '@airlock/contract'

/** Starting and stopping may take as long as the units allow, one after the other. */
const LIMIT_MS = 300_000
const MOST_BYTES = 1024 * 1024

export interface Answer {
  readonly code: number
  readonly text: string
}

/** Whether systemd is the init of this machine, as it tells itself. */
export function hasSystemd(): boolean {
  return existsSync('/run/systemd/system')
}

/** Throws with what systemd said when it refuses. */
export async function systemctl(...args: readonly string[]): Promise<string> {
  const { code, text } = await run('systemctl', args)
  if (code !== 0) throw new AirlockError('internal', `systemctl ${args.join(' ')} failed: ${text}`)
  return text
}

/** Properties of a unit as systemd knows them. */
export async function propertiesOf(
  unit: string,
  names: readonly string[],
): Promise<Readonly<Record<string, string | undefined>>> {
  const text = await systemctl('show', unit, `--property=${names.join(',')}`)
  return Object.fromEntries(
    text.split('\n').map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]),
  )
}

/** The last lines that a unit printed. */
export async function lastWordsOf(unit: string): Promise<string> {
  return (await run('journalctl', ['--unit', unit, '--lines', '20', '--no-pager', '--output', 'cat'])).text
}

/** Never rejects: a program that cannot be started is an answer too. */
export async function run(program: string, args: readonly string[]): Promise<Answer> {
  return new Promise((resolve) => {
    execFile(program, args, { timeout: LIMIT_MS, maxBuffer: MOST_BYTES }, (error, stdout, stderr) => {
      const code = error === null ? 0 : typeof error.code === 'number' ? error.code : 1
      const said = `${stdout}${stderr}`.trim()
      resolve({ code, text: said === '' && error !== null ? error.message : said })
    })
  })
}
