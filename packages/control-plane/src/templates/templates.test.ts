import { createPublicKey } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { AirlockError, BOUNDS, type NodeImage, templateSpec, verifyPermit } from '@airlock/contract'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { DIALECTS, type TestStores } from '../store/testing/dialects.ts'
import { TestRecorder } from '../testing/recorder.ts'
import { aSandbox, CALLER, caller, World } from '../testing/world.ts'
import { ISOLATION } from '../testing/scripted-data-plane.ts'

let recorder: TestRecorder
let stores: TestStores
let world: World
/** What the node has, and what it makes when it is asked to build. */
let images: NodeImage[]
let builds: number

const HOST: NodeImage = { name: 'host-1', source: 'host', packages: [], bytes: 0, builtAt: 0 }

for (const dialect of DIALECTS)
  describe(dialect.name, dialect.options, () => {
    beforeAll(async () => {
      stores = await dialect.start()
      recorder = await TestRecorder.start()
    })
    afterAll(async () => {
      await recorder?.stop()
      await stores?.stop()
    })
    beforeEach(async () => {
      world = await World.make(recorder, { place: await stores.make() })
      images = [HOST]
      builds = 0
      world.plane.script('GET /images', () => ({ images, builds: [] }))
      world.plane.script('POST /images', async ({ body, response }) => {
        const { packages } = JSON.parse(body.toString()) as { packages: string[] }
        builds++
        const image: NodeImage = {
          name: `packages-${packages.join('')}`,
          source: 'packages',
          packages,
          bytes: 7,
          builtAt: 1,
        }
        const progress = { event: 'progress', step: 'download', done: 1, total: 2, detail: '' }
        response.write(`${JSON.stringify(progress)}\n`)
        await new Promise((resolve) => setTimeout(resolve, 20))
        images.push(image)
        response.end(`${JSON.stringify({ event: 'ended', image })}\n`)
      })
    })
    afterEach(async () => world?.close())

    const templates = () => world.lifecycle.templates
    const spec = (asked: object) => templateSpec.parse(asked)

    it('fills in what the caller left open, and the permit says what the sandbox stands on', async () => {
      await templates().put(
        CALLER,
        'mine',
        spec({ packages: ['b2', 'aa', 'b2'], env: { A: '1', B: '2' }, limits: { pids: 20, cpus: 2 } }),
      )
      const permits: string[] = []
      world.plane.script('POST /sandboxes', ({ body }) => {
        const { permit } = JSON.parse(body.toString()) as { permit: string }
        permits.push(permit)
        const { sandbox: id, tenant, agent, image, limits } = verify(permit)
        world.plane.sandboxes.set(id, {
          id,
          tenant,
          agent,
          state: 'running',
          lostReason: null,
          runningCommands: 0,
          limits,
        })
        return { id, image, isolation: ISOLATION }
      })
      const made = await world.lifecycle.creation.create(
        CALLER,
        aSandbox({ template: 'mine', env: { B: '3' }, limits: { pids: 30 } }),
      )
      expect(made).toMatchObject({ template: 'mine', image: 'packages-aab2', limits: { pids: 30, cpus: 2 } })
      expect(verify(permits[0] ?? '')).toMatchObject({
        template: 'mine',
        image: 'packages-aab2',
        env: { A: '1', B: '3' },
      })
    })

    it('names doors, and the sandbox has them in its permit', async () => {
      await templates().put(CALLER, 'mine', spec({ doors: ['broker'] }))
      const permits: string[] = []
      world.plane.script('POST /sandboxes', ({ body }) => {
        permits.push((JSON.parse(body.toString()) as { permit: string }).permit)
        throw new AirlockError('start_failed')
      })
      const made = world.lifecycle.creation.create(CALLER, aSandbox({ template: 'mine' }))
      await expect(made).rejects.toMatchObject({ code: 'start_failed' })
      expect(verify(permits[0] ?? '').doors).toEqual(['control', 'broker'])
    })

    it('builds once for many, and records it once', async () => {
      await templates().put(CALLER, 'mine', spec({ packages: ['jq'] }))
      const all = await Promise.all([1, 2, 3].map(() => Array.fromAsync(templates().build(CALLER, 'mine'))))
      expect(all.map((events) => events.at(-1))).toEqual(
        all.map(() => ({
          event: 'ended',
          template: expect.objectContaining({ state: 'ready', image: 'packages-jq', bytes: 7 }),
        })),
      )
      expect(builds).toBe(1)
      expect(await world.story()).toEqual([
        'template.build requested',
        'template.build done',
        'template.build requested',
        'template.build done',
      ])
      expect(await Array.fromAsync(templates().build(CALLER, 'mine'))).toHaveLength(1)
      expect(builds).toBe(1)
    })

    it('says why a build failed, makes no sandbox, and tries again when asked again', async () => {
      await templates().put(CALLER, 'mine', spec({ packages: ['jq'] }))
      world.plane.script('POST /images', ({ response }) => {
        builds++
        response.end(
          `${JSON.stringify({ event: 'error', error: { code: 'template_failed', message: 'apt: no', hint: 'h' } })}\n`,
        )
      })
      const failed = { code: 'template_failed', message: 'apt: no', hint: 'h' }
      await expect(world.lifecycle.creation.create(CALLER, aSandbox({ template: 'mine' }))).rejects.toMatchObject(
        failed,
      )
      await expect(Array.fromAsync(templates().build(CALLER, 'mine'))).rejects.toMatchObject(failed)
      expect(builds).toBe(2)
      expect(world.plane.calls).not.toContain('POST /sandboxes')
    })

    it('starts nothing when the build cannot be recorded', async () => {
      await templates().put(CALLER, 'mine', spec({ packages: ['jq'] }))
      world.refused = ['template.build requested']
      await expect(Array.fromAsync(templates().build(CALLER, 'mine'))).rejects.toMatchObject({
        code: 'evidence_unavailable',
      })
      expect(builds).toBe(0)
    })

    it('keeps the templates of a tenant to itself', async () => {
      await templates().put(CALLER, 'mine', spec({}))
      const other = caller({ tenant: 'other' })
      await expect(templates().get(other, 'mine')).rejects.toMatchObject({ code: 'template_not_found' })
      await expect(templates().remove(other, 'mine')).rejects.toMatchObject({ code: 'template_not_found' })
      expect((await templates().list(other)).map(({ name }) => name)).toEqual(['base', 'data'])
    })

    it('removes a template only when no living sandbox was made from it', async () => {
      await templates().put(CALLER, 'mine', spec({}))
      const { id } = await world.lifecycle.creation.create(CALLER, aSandbox({ template: 'mine' }))
      await expect(templates().remove(CALLER, 'mine')).rejects.toMatchObject({ code: 'template_in_use' })
      await world.lifecycle.termination.terminate(id, { reason: 'terminated', actor: 'key:test' })
      await templates().remove(CALLER, 'mine')
      await expect(templates().get(CALLER, 'mine')).rejects.toMatchObject({ code: 'template_not_found' })
    })

    it('has room for so many and no more', async () => {
      for (let made = 0; made < BOUNDS.templates; made++) await templates().put(CALLER, `t${made}`, spec({}))
      await expect(templates().put(CALLER, 'one-more', spec({}))).rejects.toMatchObject({ code: 'too_many_templates' })
      await templates().put(CALLER, 't0', spec({ env: { A: 'changed' } }))
    })

    it('imports an image with what it says about its environment, and refuses packages on it', async () => {
      const image: NodeImage = { name: 'imported-1', source: 'imported', packages: [], bytes: 9, builtAt: 2 }
      world.plane.script('PUT /images', () => {
        images.push(image)
        return { image, env: { LANG: 'C' } }
      })
      expect(await templates().import(CALLER, 'web', bytes())).toMatchObject({
        state: 'ready',
        source: 'imported',
        image: 'imported-1',
        bytes: 9,
        env: { LANG: 'C' },
      })
      await expect(templates().put(CALLER, 'web', spec({ packages: ['jq'] }))).rejects.toMatchObject({
        code: 'template_invalid',
      })
      images = [HOST]
      await expect(world.lifecycle.creation.create(CALLER, aSandbox({ template: 'web' }))).rejects.toMatchObject({
        code: 'template_failed',
      })
    })

    it('makes no template of an image that was refused', async () => {
      world.plane.script('PUT /images', () => {
        throw new AirlockError('template_invalid', 'The entry "x" is a device.')
      })
      await expect(templates().import(CALLER, 'web', bytes())).rejects.toMatchObject({
        message: 'The entry "x" is a device.',
      })
      await expect(templates().get(CALLER, 'web')).rejects.toMatchObject({ code: 'template_not_found' })
    })
  })

function verify(permit: string) {
  return verifyPermit(permit, createPublicKey(readFileSync(join(world.home, 'permit.pub'))), 0)
}

async function* bytes(): AsyncGenerator<Buffer> {
  yield Buffer.from('tar')
}
