import { setBudgetBody } from '@airlock/contract'
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest'
import { defaultAgent } from '../identity/first-start.ts'
import { insertAgentIfAbsent } from '../store/agents.ts'
import { findSandbox } from '../store/sandboxes.ts'
import { billLiving } from './billing.ts'
import { Budgets } from './budgets.ts'
import { TestRecorder } from '../testing/recorder.ts'
import { aSandbox, caller, CALLER, World } from '../testing/world.ts'
import { Usage } from './usage.ts'

const ADMIN = caller({ role: 'admin', platform: true })

let recorder: TestRecorder
let world: World

beforeAll(async () => {
  recorder = await TestRecorder.start()
})
afterAll(() => recorder?.stop())
beforeEach(async () => {
  world = await World.make(recorder, { budget: { computeSecondsPerDay: 10 } })
})
afterEach(() => world?.close())

const create = async () => (await world.lifecycle.creation.create(CALLER, aSandbox())).id
const row = (id: string) => world.store.query((db) => findSandbox(db, id))

/** What the sweep does once a minute. */
async function minute(used: Readonly<Record<string, number>>): Promise<void> {
  for (const [id, cpuMs] of Object.entries(used)) world.plane.cpuMs.set(id, cpuMs)
  world.clock.advance(1000)
  await billLiving(world.context)
  await world.lifecycle.budgetEnds.look()
  await world.lifecycle.budgetEnds.settled()
}

it('sandboxes of an agent whose day is used up end, billed to the last, and it gets no other', async () => {
  const [one, two] = [await create(), await create()]
  await minute({ [one]: 6000, [two]: 3999 })
  expect([(await row(one))?.state, (await row(two))?.state]).toEqual(['active', 'active'])
  world.plane.script('DELETE /sandboxes/:id', () => ({ existed: true, usage: { cpuMs: 6500, memoryPeakBytes: 1 } }))
  await minute({ [one]: 6001, [two]: 4000 })
  for (const id of [one, two])
    expect(await row(id)).toMatchObject({ state: 'stopped', endReason: 'budget_exhausted', error: null })
  const [used] = (await new Usage(world.context).report(CALLER, {})).items
  expect(used?.computeSeconds).toBe(13)
  await expect(create()).rejects.toMatchObject({ code: 'budget_exhausted' })
  expect((await world.story(one)).at(-1)).toBe('sandbox.terminate done')
})

it('the budget of the tenant ends them too, and a larger one lets them be', async () => {
  const id = await create()
  const budgets = new Budgets(world.context)
  await budgets.setAgent(ADMIN, 'default', setBudgetBody.parse({ computeSecondsPerDay: 100 }))
  await minute({ [id]: 50_000 })
  expect((await row(id))?.state).toBe('active')
  await budgets.setTenant(ADMIN, 'default', setBudgetBody.parse({ computeSecondsPerDay: 50 }))
  await minute({ [id]: 50_000 })
  expect(await row(id)).toMatchObject({ state: 'stopped', endReason: 'budget_exhausted' })
})

it('a budget that cannot be read ends nothing, and other budgets are enforced', async () => {
  const id = await create()
  await world.store.query((db) => insertAgentIfAbsent(db, { ...defaultAgent('default', 1), id: 'other' }))
  const other = (await world.lifecycle.creation.create(CALLER, aSandbox({ agent: 'other' }))).id
  const budgets = new Budgets(world.context)
  await budgets.setTenant(ADMIN, 'default', setBudgetBody.parse({ computeSecondsPerDay: 1000 }))
  await budgets.setAgent(ADMIN, 'default', setBudgetBody.parse({ computeSecondsPerDay: 9 }))
  await world.store.query((db) =>
    db.updateTable('budgets').set({ cpuMillis: 0.5 }).where('agent', '=', 'default').execute(),
  )
  await minute({ [id]: 50_000, [other]: 50_000 })
  expect([(await row(id))?.state, (await row(other))?.state]).toEqual(['active', 'stopped'])
})

it('a new day has a budget of its own', async () => {
  const id = await create()
  await minute({ [id]: 9999 })
  world.clock.advance(24 * 3600 * 1000)
  await minute({ [id]: 12_000 })
  expect((await row(id))?.state).toBe('active')
})
