import { expect, it } from 'vitest'
import { makeUnits, type UnitFacts } from './units.ts'

const facts: UnitFacts = {
  node: '/opt/node/bin/node',
  program: '/srv/airlock/airlock.js',
  environment: {},
  unified: true,
}

it('runs the server so that a stop reaches the supervisor alone, and sandboxes in a unit of their own', () => {
  const [sandboxes, server] = makeUnits(facts)
  expect(server).toEqual({ name: 'airlock.service', text: SERVER })
  expect(sandboxes).toEqual({ name: 'airlock-sandboxes.service', text: SANDBOXES })
})

it('is one unit where control groups of version 1 let sandboxes be anywhere', () => {
  const units = makeUnits({ ...facts, unified: false })
  expect(units.map(({ name }) => name)).toEqual(['airlock.service'])
  expect(units[0]?.text).not.toMatch(/sandboxes.service|AIRLOCK_CGROUP/u)
})

it('takes paths as they are, whatever is in them', () => {
  const program = String.raw`/srv/my air"lock\/50%/$HOME/airlock.js`
  const [, server] = makeUnits({ ...facts, program, environment: { AIRLOCK_HOME: '/srv/100% $ mine' } })
  expect(server?.text).toContain(
    `ExecStart=/opt/node/bin/node ${String.raw`"/srv/my air\"lock\\/50%%/$$HOME/airlock.js"`} serve --json\n`,
  )
  expect(server?.text).toContain('Environment="AIRLOCK_HOME=/srv/100%% $ mine"\n')
})

const HEADER = '# Written by "airlock service install"; change it with "systemctl edit", which keeps it.'

const SERVER = `${HEADER}
[Unit]
Description=Airlock: sandboxes for code that nobody trusts
Requires=airlock-sandboxes.service
After=airlock-sandboxes.service network.target
StartLimitIntervalSec=300
StartLimitBurst=5

[Service]
Type=notify
NotifyAccess=all
Environment=AIRLOCK_CGROUP=system.slice/airlock-sandboxes.service
EnvironmentFile=-/etc/default/airlock
WorkingDirectory=/
ExecStart=/opt/node/bin/node /srv/airlock/airlock.js serve --json
Restart=on-failure
RestartSec=1
TimeoutStartSec=300
TimeoutStopSec=150
# Only the supervisor gets the signal; sandboxes and their commands outlive a restart.
KillMode=process
Delegate=yes
TasksMax=infinity
OOMScoreAdjust=-500
ProtectSystem=full
CapabilityBoundingSet=~CAP_AUDIT_CONTROL CAP_MAC_ADMIN CAP_MAC_OVERRIDE CAP_SYSLOG CAP_SYS_BOOT CAP_SYS_MODULE CAP_SYS_RAWIO CAP_SYS_TIME CAP_WAKE_ALARM

[Install]
WantedBy=multi-user.target
`

const SANDBOXES = `${HEADER}
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
