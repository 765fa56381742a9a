import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { TestPostgres } from '../../../../test/support/postgres.ts'
import { requires } from '../../../../test/support/requires.ts'
import { findSandbox } from '../store/sandboxes.ts'
import { LosingProxy } from '../store/testing/losing-proxy.ts'
import { TestRecorder } from '../testing/recorder.ts'
import { aCommand, aSandbox, aSession, aStep, CALLER, World } from '../testing/world.ts'

describe('when the answer to a commit is lost', requires('postgres'), () => {
  let postgres: TestPostgres
  let recorder: TestRecorder
  let proxy: LosingProxy
  let world: World
  beforeAll(async () => {
    postgres = await TestPostgres.start()
    recorder = await TestRecorder.start()
  })
  afterAll(async () => {
    await recorder?.stop()
    await postgres?.stop()
  })
  beforeEach(async () => {
    proxy = await LosingProxy.start(await postgres.createDatabase())
    world = await World.make(recorder, { place: { url: proxy.url } })
    proxy.toLose = 1
    world.at = () => {
      proxy.toLose = 1
    }
  })
  afterEach(async () => {
    proxy.toLose = 0
    await world.close()
    await proxy.stop()
  })

  it('a sandbox is made, runs commands and steps, and ends, each recorded once', async () => {
    const { creation, commands, sessions, steps, termination } = world.lifecycle
    const { id } = await creation.create(CALLER, aSandbox({ name: 'box' }))
    expect(await world.store.query((db) => findSandbox(db, id))).toMatchObject({ state: 'active' })
    const command = (await commands.run(CALLER, id, aCommand())).noun
    const session = await sessions.create(CALLER, aSession({ sandbox: id }))
    const step = (await steps.run(CALLER, session.id, aStep())).noun
    proxy.toLose = 1
    world.plane.endCommand(command.id, { exitCode: 3 })
    world.plane.endCommand(step.id, {})
    await expect
      .poll(async () => (await steps.get(CALLER, { session: session.id, step: step.id })).status, { timeout: 100_000 })
      .toBe('completed')
    await expect
      .poll(async () => (await commands.get(CALLER, { sandbox: id, command: command.id })).state, { timeout: 100_000 })
      .toBe('exited')
    const ended = await termination.terminate(id, { reason: 'terminated', actor: 'system' })
    expect([ended.state, termination.pendingReason(id)]).toEqual(['stopped', undefined])
    const story = await world.story(id)
    expect(new Set(story).size).toBe(story.length)
    expect(story).toEqual(expect.arrayContaining(['sandbox.create done', 'command.run done', 'sandbox.terminate done']))
    expect(proxy.lost).toBeGreaterThan(3)
  })
})
