import { appendFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { Airlock } from '@airlock/sdk'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { pidOf } from '../support/pid-of.ts'
import { requires } from '../support/requires.ts'
import { type Damage, DAMAGES, damageFile, DamagedHome, filesBelow, type Life, UNHARMED } from './damaged-home.ts'
import { CLASSES, type DamagedClass, matches } from './damaged-table.ts'

/** Files of one class are alike. */
const PER_CLASS = process.env['TEST_CASES'] === 'all' ? 5 : 1

describe('every file of the state directory', requires('root', 'crun'), () => {
  let world: DamagedHome
  beforeAll(async () => {
    world = await DamagedHome.make()
    await world.fill()
    await world.stop()
  })
  afterAll(async () => world?.[Symbol.asyncDispose]())

  const life = (): Life => {
    const found = world.lives.get('default')
    if (!found) throw new TypeError('the tenant default has no life')
    return found
  }
  /** Those are of the same classes. */
  const isOfAnotherSandbox = (path: string) =>
    path.startsWith('data-plane/vault/acme/') || (/sbx_\w{26}/u.test(path) && !path.includes(life().sandbox))

  it('is of one class', () => {
    const paths = filesBelow(world.home).filter((path) => !isOfAnotherSandbox(path))
    const classed = paths.map((path) => ({ path, of: CLASSES.filter((one) => matches(one, path, life())).length }))
    expect(classed.filter(({ of }) => of !== 1)).toEqual([])
  })

  const cases = CLASSES.flatMap((of) => DAMAGES.map((how) => [`${of.files} ${how}`, of, how] as const))
  it.each(cases)('%s harms what the table says, and nothing else', async (_name, of, how) => {
    const paths = filesBelow(world.home).filter((path) => matches(of, path, life()))
    const damaged = paths.filter((path) => statSync(join(world.home, path)).size > 0).slice(0, PER_CLASS)
    expect(damaged.length > 0 || of.mayBeEmpty === true).toBe(true)
    for (const path of damaged) {
      const undo = damageFile(join(world.home, path), how)
      const isStarted = await world.start()
      const said = world.server.logs()
      expect({ path, isStarted }).toEqual({ path, isStarted: of.keepsFromStarting !== true })
      if (of.said && !of.harmless?.includes(how)) expect(said).toMatch(of.said)
      if (!isStarted) {
        expect(said).toContain('Airlock did not start.')
        undo()
        expect(await world.start()).toBe(true)
      }
      await expectFound(isStarted ? of : { files: of.files }, how)
      await heal(of)
    }
  })

  it('a recorder that restarts alone heals a chain with garbage at its end', async () => {
    await world.start()
    const recorder = pidOf(world.home, 'recorder') ?? 0
    process.kill(recorder, 'SIGSTOP')
    const segment = join(world.home, 'recorder/chains/acme/000000000001.ndjson')
    const garbage = `${'\0'.repeat(3000)}\n{"no":"record"}\n`
    appendFileSync(segment, garbage)
    process.kill(recorder, 'SIGKILL')
    await expect.poll(async () => (await world.find('acme')).create).toBe('works')
    expect(await world.warnings()).toEqual([])
    expect(await world.find('acme')).toEqual(UNHARMED)
    const { items } = await world.as('acme').audit.events({ point: 'recorder.recover' })
    expect(items[0]).toMatchObject({ payload: { tornBytes: garbage.length, saved: true } })
    await world.stop()
  })

  async function expectFound(of: DamagedClass, how: Damage): Promise<void> {
    const lost = of.lostBy?.[how] ?? of.lost ?? {}
    const [warnings, ours, theirs] = [await world.warnings(), await world.find('default'), await world.find('acme')]
    expect({ warnings, default: ours, acme: theirs }).toEqual({
      warnings: of.warnings ?? [],
      default: { ...UNHARMED, ...lost.default },
      acme: { ...UNHARMED, ...lost.acme },
    })
  }

  /** For the next case: also of what nobody has noticed yet. */
  async function heal({ quarantine, files }: DamagedClass): Promise<void> {
    const admin = new Airlock({ url: world.server.url, apiKey: world.server.adminKey })
    if (quarantine !== undefined) await admin.audit.quarantine(quarantine)
    expect(await world.warnings()).toEqual([])
    if (/\{\w+\}/u.test(files)) await world.drop('default')
    await world.fill()
    await world.stop()
  }
})
