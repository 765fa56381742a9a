import { describe, expect, it } from 'vitest'
import { readConfig } from './config.ts'

const RATE = { burst: 10_000, perSecond: 10_000 }

const GOOD = {
  stateDir: '/s/control-plane',
  publicDir: '/s/public',
  keysDir: '/s',
  dataPlaneSocket: '/r/data-plane.sock',
  doorsSocket: '/r/doors.sock',
  fromDoors: { path: '/r/control-plane-doors.sock', uid: 1001 },
  recorderSocket: '/r/recorder.sock',
  spillDir: '/r/spill/control-plane',
  databaseUrl: null,
  host: '127.0.0.1',
  port: 7070,
  advertiseUrl: null,
  tlsCert: null,
  tlsKey: null,
  trustedProxy: false,
  pageDir: '/srv/page',
  makesSignInLink: false,
  requestRates: { perKey: RATE, perTenant: RATE },
  policyDefault: 'allow',
  opa: null,
  webhookPrivate: false,
  monitorEveryMs: 5000,
  alerts: {
    thresholds: { cpu: { warning: 70, critical: 90 }, memory: null, disk: null, pids: null },
    sustained: 3,
    endedFor: ['pids'],
  },
  capacity: 50,
  oversubscription: { memory: 2, disk: 1, cpus: 25 },
  models: [],
  artifacts: { maxBytes: 1_073_741_824, quotaBytes: 10_737_418_240, quotaCount: 10_000 },
  graphs: {},
  budgetDefaults: {
    sandboxes: 5,
    memoryBytes: 2_147_483_648,
    diskBytes: 10_737_418_240,
    cpus: 2,
    computeSecondsPerDay: 172_800,
    dollarsPerDay: 10,
    modelCallsPerDay: 1000,
    modelTokensPerDay: 1_000_000,
  },
  agentStaleMs: 3_600_000,
  approvesVersions: false,
  jwt: null,
  drop: { uid: 1000, gid: 1000 },
  logLevel: 'info',
  failpoint: null,
}
const read = (changes: object) => readConfig({ AIRLOCK_PROCESS: JSON.stringify({ ...GOOD, ...changes }) })

describe('the configuration of the process', () => {
  it('is what the supervisor gave', () => expect(read({})).toEqual(GOOD))

  it.each([
    ['nothing', undefined],
    ['no JSON', '{'],
  ])('refuses %s', (_what, text) => {
    expect(() => readConfig({ AIRLOCK_PROCESS: text })).toThrow('start it with "airlock serve"')
  })

  it('refuses a key that it does not know, and a value that cannot be', () => {
    expect(() => read({ debug: true })).toThrow('debug')
    expect(() => read({ port: 70_000 })).toThrow('port')
    expect(() => read({ drop: { uid: 0, gid: 0 } })).toThrow('drop.uid')
  })

  it.each(['127.0.0.1', '127.8.8.8', '::1', 'localhost'])('listens on %s as it is', (host) => {
    expect(read({ host }).host).toBe(host)
  })

  it.each(['0.0.0.0', '::', '192.168.1.2', '127.0.0.1.example.com', 'example.com', '::ffff:10.0.0.1'])(
    'fails closed: %s needs TLS or a trusted proxy',
    (host) => {
      expect(() => read({ host })).toThrow(expect.objectContaining({ code: 'config_invalid' }))
      expect(() => read({ host, tlsCert: '/c' })).toThrow('belong together')
      expect(read({ host, tlsCert: '/c', tlsKey: '/k' }).host).toBe(host)
      expect(read({ host, trustedProxy: true }).host).toBe(host)
    },
  )
})
