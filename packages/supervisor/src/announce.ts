import { join } from 'node:path'
import type { Notice } from '@airlock/std'
import { quote, type TypedCommand } from './command/typed.ts'
import type { Settings } from './config.ts'
import { printable } from './log-line.ts'
import type { Facts } from './run.ts'

const DEFAULT_URL = 'http://127.0.0.1:7070'

/** What the processes said about themselves when they became ready. */
export type ReadyFacts = ReadonlyMap<string, Facts>

/** For programs: one line. */
export function readyJson(facts: ReadyFacts, pid: number): string {
  const { url, developerKey, adminKey } = addresses(facts)
  return JSON.stringify({ url, developerKey, adminKey, pid })
}

/** For people: where it is, and what to type next. Commands work as they stand, wherever the state is. */
export function readyText(facts: ReadyFacts, settings: Settings, typed: TypedCommand): string {
  const { url, developerKey, adminKey } = addresses(facts)
  const isolation = facts.get('data-plane')
  const command = commandOf(facts, settings, typed)
  return [
    `Airlock is ready at ${url}`,
    '',
    `  your key   ${developerKey}`,
    `  admin key  ${adminKey}`,
    `  isolation  ${say(isolation, 'backend')}, ${say(isolation, 'runtime')}`,
    `  log        ${join(settings.stateDir, 'logs', 'airlock.log')}`,
    '',
    ...signInText(facts),
    'Try this in another terminal:',
    '',
    `  ${command} run -- python3 -c 'print(6*7)'`,
    '',
    ...pathText(typed),
    'Ctrl-C ends everything, sandboxes included.',
  ].join('\n')
}

/** Only a terminal gets the link: it is as good as the admin key until somebody opens it. */
function signInText(facts: ReadyFacts): readonly string[] {
  const link = facts.get('control-plane')?.['signInLink']
  if (typeof link !== 'string') return []
  return [
    'Look at it in a browser of this machine (the link signs in once, within 15 minutes):',
    '',
    `  ${printable(link)}`,
    '',
  ]
}

/** What to type before the words of a verb: it works as it stands, wherever the state is. */
export function commandOf(facts: ReadyFacts, settings: Settings, { word }: TypedCommand): string {
  return [...variables(addresses(facts).url, settings), word].join(' ')
}

/** What a person without `airlock` in PATH types once. */
function pathText({ pathLine, other }: TypedCommand): readonly string[] {
  if (pathLine === undefined) return []
  const why =
    other === undefined ? 'airlock is not in your PATH.' : `airlock in your PATH is ${other}, another program.`
  return [`${printable(why)} To change that, in a shell or in its profile:`, '', `  ${pathLine}`, '']
}

/** For people: what a process wants them to know, and what to type. It may quote what hostile code said. */
export function noticeText(notice: Notice, command: string): string {
  const line = (text: string) => printable(text).slice(0, NOTICE_CHARACTERS)
  return [
    '',
    line(notice.title),
    ...notice.details.map((text) => `  ${line(text)}`),
    ...notice.commands.map((words) => `  ${command} ${line(words)}`),
  ].join('\n')
}

const NOTICE_CHARACTERS = 300

function addresses(facts: ReadyFacts) {
  const api = facts.get('control-plane')
  return { url: say(api, 'url'), developerKey: say(api, 'developerKey'), adminKey: say(api, 'adminKey') }
}

function variables(url: string, { config }: Settings): readonly string[] {
  const given: string[] = []
  if (config.home !== undefined) given.push(`AIRLOCK_HOME=${quote(config.home)}`)
  if (url !== DEFAULT_URL) given.push(`AIRLOCK_URL=${quote(url)}`)
  return given
}

function say(facts: Facts | undefined, name: string): string {
  const value = facts?.[name]
  return typeof value === 'string' ? printable(value) : 'unknown'
}
