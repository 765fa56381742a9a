import { afterAll, beforeAll, describe, it } from 'vitest'
import { TestPostgres } from '../support/postgres.ts'
import { requires } from '../support/requires.ts'
import { CALL_CRASHES, callCrashName, CallCrashes } from './call-crashes.ts'

const CASES = CALL_CRASHES.map((one) => [callCrashName(one), one] as const)

describe('kill -9 during calls of models', requires('root'), () => {
  let crashes: CallCrashes
  beforeAll(async () => (crashes = await CallCrashes.start()))
  afterAll(async () => crashes?.stop())

  it.each(CASES)('at %s leaves each call with one end and one fact, and its budget free', async (_, one) =>
    crashes.run(one),
  )
})

describe('kill -9 during calls of models with PostgreSQL', requires('root', 'postgres'), () => {
  let postgres: TestPostgres
  let crashes: CallCrashes
  beforeAll(async () => {
    postgres = await TestPostgres.start()
    crashes = await CallCrashes.start({ DATABASE_URL: await postgres.createDatabase() })
  })
  afterAll(async () => {
    await crashes?.stop()
    await postgres?.stop()
  })

  it.each(CASES)('at %s leaves each call with one end and one fact, and its budget free', async (_, one) =>
    crashes.run(one),
  )
})
