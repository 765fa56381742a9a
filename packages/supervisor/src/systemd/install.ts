import { existsSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { deadline, waitFor } from '@airlock/std'
import { linkCommand } from '../command/link.ts'
import { environment, type Environment } from '../config.ts'
import { hasSystemd, lastWordsOf, propertiesOf, run, systemctl } from './systemctl.ts'
import { makeUnits, SANDBOXES_UNIT, SERVER_UNIT, type Unit } from './units.ts'

/** Where these verbs print, and what they find. */
export interface ServiceIo {
  readonly env: Environment
  readonly uid: number
  readonly out: (text: string) => void
  readonly err: (text: string) => void
}

const UNITS = '/etc/systemd/system'
/** Settings that say where all others are. */
const KEPT = ['AIRLOCK_HOME', 'AIRLOCK_CONFIG']
const END_MS = 150_000
/** No server answers, as for every verb. */
const NOT_ACTIVE = 3

/**
 * `airlock service install`: writes the units, starts the server, and has it started at every boot. Doing it again
 * takes new paths over and restarts the server; sandboxes keep running.
 */
export async function installService(
  options: { readonly program: string; readonly dryRun: boolean },
  io: ServiceIo = processIo(),
): Promise<number> {
  const units = makeUnits({
    node: process.execPath,
    program: options.program,
    environment: Object.fromEntries(KEPT.flatMap((name) => (io.env[name] === undefined ? [] : [[name, io.env[name]]]))),
    unified: existsSync('/sys/fs/cgroup/cgroup.controllers'),
  })
  if (options.dryRun) {
    io.out(units.map(({ name, text }) => `# ${join(UNITS, name)}\n${text}`).join('\n'))
    return 0
  }
  if (!isPossible(io)) return 1
  const { path, outcome } = linkCommand()
  if (outcome === 'made') io.out(`${path} leads to this clone now; "airlock uninstall" removes it.`)
  return activate(units, io)
}

export function isServiceInstalled(): boolean {
  return existsSync(join(UNITS, SERVER_UNIT))
}

async function activate(units: readonly Unit[], io: ServiceIo): Promise<number> {
  for (const { name, text } of units) writeFileSync(join(UNITS, name), text, { mode: 0o644 })
  await systemctl('daemon-reload')
  await systemctl('enable', SERVER_UNIT)
  // A restart starts what is stopped.
  const started = await run('systemctl', ['restart', SERVER_UNIT])
  if (started.code === 0) {
    io.out(`Airlock runs as ${SERVER_UNIT}, now and after every boot. Its log: journalctl -u ${SERVER_UNIT}`)
    return 0
  }
  io.err(`${SERVER_UNIT} is installed but did not start:\n${await lastWordsOf(SERVER_UNIT)}`)
  return 1
}

/**
 * `airlock service uninstall`: ends all sandboxes, for without a server nobody would end them in time, and removes the
 * units. State and evidence stay.
 */
export async function uninstallService(io: ServiceIo = processIo()): Promise<number> {
  if (!isPossible(io)) return 1
  if (!isServiceInstalled()) {
    io.out('Airlock is not installed as a service.')
    return 0
  }
  await endSandboxes()
  await systemctl('disable', '--now', SERVER_UNIT)
  if (existsSync(join(UNITS, SANDBOXES_UNIT))) await systemctl('stop', SANDBOXES_UNIT)
  for (const name of [SERVER_UNIT, SANDBOXES_UNIT]) rmSync(join(UNITS, name), { force: true })
  await systemctl('daemon-reload')
  io.out('Airlock is no service any more, and its sandboxes have ended. Its state is where it was.')
  return 0
}

/** As Ctrl-C does: the server ends them and records it. */
async function endSandboxes(): Promise<void> {
  const { code } = await run('systemctl', ['kill', '--kill-who=main', '--signal=SIGINT', SERVER_UNIT])
  // Not running: stopping the other unit ends what is left.
  if (code !== 0) return
  const ended = async () =>
    (await propertiesOf(SERVER_UNIT, ['ActiveState']))['ActiveState'] === 'active' ? undefined : true
  // One that takes too long is stopped like any other unit.
  await waitFor(ended, { signal: deadline(END_MS), everyMs: 200 }).catch(() => undefined)
}

/** `airlock service status`: answers 0 only when it runs. */
export async function serviceStatus(json: boolean, io: ServiceIo = processIo()): Promise<number> {
  if (!hasSystemd()) {
    io.err(NO_SYSTEMD)
    return 1
  }
  const found = await propertiesOf(SERVER_UNIT, ['LoadState', 'UnitFileState', 'ActiveState', 'SubState', 'MainPID'])
  const installed = found['LoadState'] === 'loaded'
  const active = found['ActiveState'] === 'active'
  const status = {
    installed,
    active,
    state: `${found['ActiveState']} (${found['SubState']})`,
    atBoot: found['UnitFileState'] === 'enabled',
    pid: active ? Number(found['MainPID']) : null,
  }
  if (json) io.out(JSON.stringify(status))
  else if (!installed) io.out('Airlock is not installed as a service.')
  else
    io.out(
      [status.state, active ? `pid ${status.pid}` : '', status.atBoot ? 'starts at boot' : '']
        .filter(Boolean)
        .join(', '),
    )
  return active ? 0 : NOT_ACTIVE
}

const NO_SYSTEMD =
  'This machine does not run systemd: start the server with "airlock serve", by whatever starts programs here.'

function isPossible(io: ServiceIo): boolean {
  if (!hasSystemd()) io.err(NO_SYSTEMD)
  else if (io.uid !== 0) io.err('Only root may change the services of a machine: use sudo.')
  else return true
  return false
}

function processIo(): ServiceIo {
  return {
    env: environment(),
    uid: process.getuid?.() ?? -1,
    out: (text) => void process.stdout.write(`${text}\n`),
    err: (text) => void process.stderr.write(`${text}\n`),
  }
}
