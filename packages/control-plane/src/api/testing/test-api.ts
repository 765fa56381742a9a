import type { AuditSink } from '@airlock/audit'
import { AirlockError, type NewRecord, type Principal } from '@airlock/contract'
import { createLog, systemClock } from '@airlock/std'
import { testApp } from './test-app.ts'
import { TestCore } from './test-core.ts'
import { TEST_EVENTS } from './test-events.ts'
import { TEST_METRICS } from './test-metrics.ts'
import { makeTestWho, type TestWho } from './test-who.ts'
import type { RequestRateBounds } from '../admission/request-rates.ts'
import { createApi } from '../server.ts'
import { PageSessions } from '../../identity/page-sessions.ts'
import { TEST_PAGE } from './test-page.ts'

/** For tests only: the real server on a port of loopback, a free one unless it is named, with one key for each role. */
export interface TestApi {
  readonly url: string
  readonly core: TestCore
  readonly who: TestWho
  readonly notes: readonly NewRecord[]
  readonly logged: readonly string[]
  close(): Promise<void>
}

export const KEYS = { admin: 'al_admin_1', developer: 'al_developer_1', auditor: 'al_auditor_1' } as const

const AMPLE = { burst: 1_000_000, perSecond: 1_000_000 }
export const AMPLE_RATES = { perKey: AMPLE, perTenant: AMPLE }

export async function startTestApi(
  changes: Partial<TestCore> = {},
  port = 0,
  requestRates: RequestRateBounds = AMPLE_RATES,
): Promise<TestApi> {
  const core = Object.assign(new TestCore(), changes)
  const notes: NewRecord[] = []
  const logged: string[] = []
  const audit: AuditSink = { require: async () => {}, note: (record) => void notes.push(record), flush: async () => {} }
  const registry = await makeTestWho(audit)
  const { who } = registry
  const log = createLog({ process: 'test', level: 'info', write: (line) => void logged.push(line) })
  const api = await createApi({
    app: { ...testApp(core), ...who, events: TEST_EVENTS, metrics: TEST_METRICS },
    authenticator: { authenticate, principalOfKey: async (id) => authenticate(`Bearer al_${id}_1`) },
    audit,
    clock: systemClock,
    log,
    tls: null,
    trustedProxy: false,
    requestRates,
    page: { files: TEST_PAGE, sessions: new PageSessions(systemClock), cookie: 'airlock-test' },
  })
  const url = await api.listen('127.0.0.1', port)
  const close = async (): Promise<void> => {
    await api.close()
    await core.dispose()
    await registry.dispose()
  }
  return { url, core, who, notes, logged, close }
}

async function authenticate(authorization: string | undefined): Promise<Principal> {
  const entries = Object.entries(KEYS)
  const role = entries.find(([, key]) => authorization === `Bearer ${key}`)?.[0]
  if (role !== 'admin' && role !== 'developer' && role !== 'auditor') throw new AirlockError('unauthenticated')
  return { actor: `key:${role}`, tenant: 'default', role, agents: null, platform: role === 'admin' }
}
