import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Airlock } from '@airlock/sdk'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { requires } from '../support/requires.ts'
import { DAMAGES, damageFile, DamagedHome, filesBelow, type Life, UNHARMED } from './damaged-home.ts'
import { CLASSES, type DamagedClass, matches } from './damaged-table.ts'

/** Files of one class are alike: so many of them are damaged, those of the living sandbox first. */
const PER_CLASS = process.env['TEST_CASES'] === 'all' ? 5 : 1

describe('every file of the state directory', requires('root', 'crun'), () => {
  let world: DamagedHome
  let scratch: string
  beforeAll(async () => {
    scratch = mkdtempSync(join(tmpdir(), 'airlock-damaged-'))
    world = await DamagedHome.make()
    await world.fill()
    await world.stop()
  })
  afterAll(async () => {
    await world?.[Symbol.asyncDispose]()
    rmSync(scratch, { recursive: true, force: true })
  })

  const life = (): Life => {
    const found = world.lives.get('default')
    if (!found) throw new TypeError('the tenant default has no life')
    return found
  }
  /** Files of the other tenant are of the same classes. */
  const isOfAnother = (path: string) =>
    path.startsWith('data-plane/vault/acme/') || (/sbx_\w{26}/u.test(path) && !path.includes(life().sandbox))

  it('is of one class', () => {
    const paths = filesBelow(world.home).filter((path) => !isOfAnother(path))
    const classesOf = (path: string) => CLASSES.filter((one) => matches(one, path, life())).map(({ files }) => files)
    expect(paths.map((path) => [path, classesOf(path)]).filter(([, classes]) => classes?.length !== 1)).toEqual([])
  })

  const cases = CLASSES.flatMap((of) => DAMAGES.map((how) => ({ files: of.files, how, of })))
  it.each(cases)('$files $how harms what it should, and nothing else', async ({ how, of }) => {
    const paths = filesBelow(world.home).filter((path) => matches(of, path, life()))
    // An empty file is not damaged by any of it.
    const damageable = paths.filter((path) => statSync(join(world.home, path)).size > 0)
    for (const path of damageable.slice(0, PER_CLASS)) {
      const undo = damageFile(join(world.home, path), how)
      const isStarted = await world.start()
      const said = world.server.logs()
      expect({ path, isStarted }).toEqual({ path, isStarted: of.keepsFromStarting !== true })
      if (of.said && !of.unnoticed?.includes(how)) expect(said).toMatch(of.said)
      if (isStarted) await expectFound(of, how)
      else {
        expect(said).toContain('Airlock did not start.')
        undo()
        await world.start()
      }
      await heal(of)
    }
  })

  async function expectFound(of: DamagedClass, how: (typeof DAMAGES)[number]): Promise<void> {
    const isUnnoticed = of.unnoticed?.includes(how) === true
    const lost = isUnnoticed ? {} : (of.lost ?? {})
    expect({
      warnings: await world.warnings(),
      default: await world.find('default'),
      acme: await world.find('acme'),
    }).toEqual({
      warnings: of.warnings ?? [],
      default: { ...UNHARMED, ...lost.default },
      acme: { ...UNHARMED, ...lost.acme },
    })
  }

  /** As it was before, for the next case: also of what nobody has noticed yet. */
  async function heal({ quarantine, files }: DamagedClass): Promise<void> {
    const admin = new Airlock({ url: world.server.url, apiKey: world.server.adminKey })
    if (quarantine !== undefined) await admin.audit.quarantine(quarantine)
    expect(await world.warnings()).toEqual([])
    if (/\{\w+\}/u.test(files)) await world.drop('default')
    await world.fill()
    await world.stop()
    expect(readFileSync(join(world.home, 'control-plane/node-id'), 'utf8')).toMatch(/\n$/)
  }
})
