import { describe, expect, it } from 'vitest'
import { Terminal } from '../text/terminal.ts'
import { agentText, sandboxText } from './metrics-view.ts'
import { someAlert, somePoint, someSample, someSandbox, someTenant } from './testing/some-metrics.ts'

const MIB = 1024 ** 2
/** Of a process whose stdout is no terminal: as wide as it takes, without colours. */
const terminal = new Terminal({ allowsColor: false })
const history = [somePoint(0), somePoint(1, { memoryBytesMax: 256 * MIB }), somePoint(3, { cpuPercentMax: 25 })]

/** Times are of this machine and of now. */
function withoutTimes(text: string): readonly string[] {
  const plain = text.replaceAll(/\d\d:\d\d:\d\d/g, 'TIME').replaceAll(/, [\dhmsd ]+ ago/g, ', LONG ago')
  return plain.replaceAll(/ OF [\dDHMS ]+$/gm, ' OF LONG').split('\n')
}

describe('the metrics of a sandbox', () => {
  it('are what it uses now of its limits, its history, and what it is beyond', () => {
    const now = someSample({
      memoryBytes: 500 * MIB,
      oomKills: 2,
      ofLimit: { memory: 97.7, pids: 1.2, disk: 1, inodes: 0 },
      pressure: { cpu: 12.3, memory: 0, io: null },
    })
    const alerts = [someAlert('memory', 'critical')]
    const one = someSandbox(1, { name: 'web', now, alerts, raised: { warning: 3, critical: 1 } })
    expect(withoutTimes(sandboxText(terminal, { ...one, history }))).toEqual([
      'sandbox    web (sbx_00000000000000000000000001)',
      'agent      default',
      'state      active',
      'sampled    TIME, LONG ago',
      'cpu time   1s, held back for 0s',
      'swap       0 B',
      'inodes     20 of 65536',
      'io         0 B read, 0 B written',
      'oom kills  2',
      'refused    0 processes',
      'pressure   cpu 12%, memory 0%',
      'alerts     1 critical',
      'raised     1 critical 3 warning since its start',
      '',
      'RESOURCE       NOW    LIMIT  SHARE                 PEAK  HISTORY OF LONG',
      'cpu       0.25 cpu    1 cpu    25%  ██▌           1 cpu  ██ ▂',
      'memory     500 MiB  512 MiB    98%  █████████▊  256 MiB  ▄█ ▄',
      'pids             3      256   1.2%  ▏                 4  ██ █',
      'disk        10 MiB    1 GiB   1.0%  ▏            10 MiB  ██ █',
      '',
      'memory is critical since TIME: 97% now, from 95% on',
    ])
  })

  it('are its history alone when it has ended, and leave out what the host cannot tell', () => {
    const ended = someSandbox(1, { state: 'stopped', now: null })
    const lines = withoutTimes(sandboxText(terminal, { ...ended, history: [] }))
    expect(lines).toEqual([
      'sandbox  sbx_00000000000000000000000001',
      'agent    default',
      'state    stopped',
      'sampled  not now',
      'alerts   no alerts',
      'raised   no alerts since its start',
      '',
      'RESOURCE  NOW    LIMIT  SHARE              PEAK  HISTORY',
      'cpu         -    1 cpu      -                 -  none yet',
      'memory      -  512 MiB      -                 -  none yet',
      'pids        -      256      -                 -  none yet',
      'disk        -    1 GiB      -                 -  none yet',
    ])
    const now = someSample({ cpuMs: null, throttledMs: null, swapBytes: null, readBytes: null, writtenBytes: null })
    const living = sandboxText(terminal, { ...someSandbox(1, { now }), history: [] })
    expect(living).not.toMatch(/^(?:cpu time|swap|io|pressure) /m)
  })
})

it('the metrics of an agent are those of all its sandboxes, then of each', () => {
  const sandboxes = [someSandbox(1), someSandbox(2)]
  const { total } = someTenant(sandboxes)
  const metrics = { agent: 'ada', total, raised: { warning: 2, critical: 0 }, sandboxes, history }
  expect(withoutTimes(agentText(terminal, metrics))).toEqual([
    'agent   ada',
    'raised  2 warning in the last 24 hours',
    '',
    '2 sandboxes  no alerts  cpus 0.5  memory 128M  pids 6  disk 20M',
    '',
    'RESOURCE      NOW     PEAK  HISTORY OF LONG',
    'cpu       0.5 cpu    1 cpu  ██ ▂',
    'memory    128 MiB  256 MiB  ▄█ ▄',
    'pids            6        4  ██ █',
    'disk       20 MiB   10 MiB  ██ █',
    '',
    'SANDBOX                         AGENT    STATE   CPU              MEMORY   PIDS    DISK  READ  WRITTEN',
    'sbx_00000000000000000000000001  default  active  25%  ██        64M/512M  3/256  10M/1G    0B       0B',
    'sbx_00000000000000000000000002  default  active  25%  ██        64M/512M  3/256  10M/1G    0B       0B',
  ])
})
