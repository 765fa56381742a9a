import { Airlock, AirlockError, type Template } from '@airlock/sdk'
import { deadline, waitFor } from '@airlock/std'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { requires } from '../support/requires.ts'
import { startServer, type TestServer } from '../support/server.ts'

let server: TestServer
let airlock: Airlock

beforeAll(async () => {
  server = await startServer()
  airlock = new Airlock({ url: server.url, apiKey: server.developerKey })
})

afterAll(async () => {
  await server?.stop('SIGINT')
})

const images = () => readdirSync(join(server.home, 'data-plane', 'images'))

/** The data plane of this server: the supervisor wrote down its children. */
function dataPlanePid(): number {
  const text = readFileSync(join(server.home, 'run', 'processes.json'), 'utf8')
  const pids = [...text.matchAll(/"pid":(\d+)/gu)].map(([, pid]) => Number(pid))
  return pids.find((pid) => readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('data-plane')) ?? 0
}

async function killedWhileUnpacking(): Promise<void> {
  let isKilled = false
  for await (const event of airlock.templates.build('data')) {
    if (isKilled || event.event !== 'progress' || event.step !== 'unpack' || event.done < 5) continue
    isKilled = true
    const pid = dataPlanePid()
    expect(pid).toBeGreaterThan(1)
    process.kill(pid, 'SIGKILL')
  }
}

/** Undefined while the data plane is on its way back. */
async function lookAgain(): Promise<Template | undefined> {
  return airlock.templates.get('data').catch((error: unknown) => {
    if (error instanceof AirlockError && error.code === 'data_plane_unavailable') return undefined
    throw error
  })
}

const PLOT = `
import io, numpy, pandas, matplotlib, PIL.Image
import matplotlib.pyplot as plt
table = pandas.DataFrame({'x': numpy.arange(100), 'y': numpy.arange(100) ** 2})
table.to_csv('/workspace/table.csv', index=False)
plt.plot(table.x, table.y)
plt.savefig('/workspace/plot.png')
image = PIL.Image.open('/workspace/plot.png')
print(image.format, image.size, int(table.y.sum()), int(numpy.linalg.inv(numpy.eye(3) * 2).sum() * 2))
`

describe('the template data', requires('apt-get'), () => {
  it('is built again after the data plane was killed in the middle', async () => {
    const broken = await killedWhileUnpacking().catch((error: unknown) => error)
    expect(broken).toMatchObject({ code: 'data_plane_unavailable' })
    const again = await waitFor(lookAgain, { signal: deadline(60_000), everyMs: 200 })
    expect(again).toMatchObject({ state: 'absent', image: null })
    const events = await Array.fromAsync(airlock.templates.build('data'))
    const downloads = events.flatMap((event) =>
      event.event === 'progress' && event.step === 'download' ? [event] : [],
    )
    expect(downloads.at(-1)?.done).toBe(downloads.at(-1)?.total)
    expect(events.at(-1)).toMatchObject({ event: 'ended', template: { state: 'ready', image: expect.any(String) } })
    expect(images().filter((name) => name.startsWith('build-'))).toEqual([])
  })

  it('has numpy, pandas, matplotlib and pillow that work, and a picture comes out', async () => {
    const sandbox = await airlock.sandboxes.create({ template: 'data' })
    const run = await sandbox.run(['python3', '-c', PLOT])
    expect(run).toMatchObject({ exitCode: 0, stdout: 'PNG (640, 480) 328350 3\n', stderr: '' })
    const picture = await sandbox.files.read('/workspace/plot.png')
    expect(Buffer.from(picture.subarray(0, 8))).toEqual(Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]))
    await sandbox.terminate()
  })

  it('is remembered by the next server, and costs it nothing', async () => {
    const { image } = await airlock.templates.get('data')
    await server.stop('SIGTERM')
    server = await startServer({ home: server.home })
    airlock = new Airlock({ url: server.url, apiKey: server.developerKey })
    expect(await Array.fromAsync(airlock.templates.build('data'))).toEqual([
      { event: 'ended', template: expect.objectContaining({ image, state: 'ready' }) },
    ])
  })
})
