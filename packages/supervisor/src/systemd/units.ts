/** What the units of a machine depend on. */
export interface UnitFacts {
  /** The Node that runs us, and the program that it runs: absolute paths. */
  readonly node: string
  readonly program: string
  /** Settings that must hold before any file of settings can be found, such as AIRLOCK_HOME. */
  readonly environment: Readonly<Record<string, string>>
  /** Whether the host has control groups of version 2 alone. */
  readonly unified: boolean
}

export interface Unit {
  readonly name: string
  readonly text: string
}

export const SERVER_UNIT = 'airlock.service'
export const SANDBOXES_UNIT = 'airlock-sandboxes.service'
/** Where systemd puts the group of the second unit. */
const SANDBOXES_GROUP = `system.slice/${SANDBOXES_UNIT}`

/** More than our processes need, one after another, to end by themselves. */
const STOP_SECONDS = 150
const START_SECONDS = 300

/** Rights of root that nobody here needs. */
const GIVEN_UP = ['AUDIT_CONTROL', 'MAC_ADMIN', 'MAC_OVERRIDE', 'SYSLOG', 'SYS_BOOT', 'SYS_MODULE', 'SYS_RAWIO']
  .concat(['SYS_TIME', 'WAKE_ALARM'])
  .map((name) => `CAP_${name}`)
  .join(' ')

/** The units of this machine, in the order in which they start. */
export function makeUnits(facts: UnitFacts): readonly Unit[] {
  const server = { name: SERVER_UNIT, text: serverText(facts) }
  return facts.unified ? [{ name: SANDBOXES_UNIT, text: SANDBOXES_TEXT }, server] : [server]
}

/**
 * SIGTERM goes to the supervisor alone, which leaves the sandboxes running. Nothing here may add a system call filter
 * or hide a part of /proc: sandboxes would inherit the one and could not mount their own with the other.
 */
function serverText({ node, program, environment, unified }: UnitFacts): string {
  const variables = { ...(unified ? { AIRLOCK_CGROUP: SANDBOXES_GROUP } : {}), ...environment }
  return `${HEADER}
[Unit]
Description=Airlock: sandboxes for code that nobody trusts
${unified ? `Requires=${SANDBOXES_UNIT}\nAfter=${SANDBOXES_UNIT} network.target` : 'After=network.target'}
StartLimitIntervalSec=300
StartLimitBurst=5

[Service]
Type=notify
NotifyAccess=all
${Object.entries(variables)
  .map(([name, value]) => `Environment=${quote(`${name}=${value}`)}\n`)
  .join('')}EnvironmentFile=-/etc/default/airlock
WorkingDirectory=/
ExecStart=${[node, program].map((word) => quote(word).replaceAll('$', '$$$$')).join(' ')} serve --json
Restart=on-failure
RestartSec=1
TimeoutStartSec=${START_SECONDS}
TimeoutStopSec=${STOP_SECONDS}
# Only the supervisor gets the signal; sandboxes and their commands outlive a restart.
KillMode=process
Delegate=yes
TasksMax=infinity
OOMScoreAdjust=-500
ProtectSystem=full
CapabilityBoundingSet=~${GIVEN_UP}

[Install]
WantedBy=multi-user.target
`
}

const HEADER = '# Written by "airlock service install"; change it with "systemctl edit", which keeps it.'

/**
 * Sandboxes have a unit of their own, for a group that passes its controllers on cannot take the next server in. It is
 * never restarted; stopping it kills every sandbox at once. Its only process is there for systemd to keep the group.
 */
const SANDBOXES_TEXT = `${HEADER}
[Unit]
Description=Sandboxes of Airlock: stopping this kills them all

[Service]
Type=exec
ExecStart=/bin/sleep infinity
Delegate=yes
KillMode=control-group
KillSignal=SIGKILL
SuccessExitStatus=SIGKILL
TasksMax=infinity
OOMScoreAdjust=-1000
`

/** As one word of a unit file. Specifiers begin with a percent sign. */
function quote(text: string): string {
  const escaped = text
    .replaceAll('\\', String.raw`\\`)
    .replaceAll('"', String.raw`\"`)
    .replaceAll('%', '%%')
  return /^[\w./=:@%+-]+$/u.test(escaped) ? escaped : `"${escaped}"`
}
