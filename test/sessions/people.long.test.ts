import { Airlock, type TemplateEvent } from '@airlock/sdk'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { CliProcess, type Ended } from '../../packages/cli/src/testing/cli-process.ts'
import { requires } from '../support/requires.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { decodePng } from './decode-png.ts'

const EXAMPLES = fileURLToPath(new URL('../../examples', import.meta.url))

describe('data, with the packages that are installed on first use', requires('root', 'crun', 'python3'), () => {
  let server: TestServer
  let airlock: Airlock
  let home: string
  const progress: TemplateEvent[] = []
  beforeAll(async () => {
    server = await startServer()
    airlock = new Airlock({ url: server.url, apiKey: server.developerKey })
    home = mkdtempSync(join(tmpdir(), 'airlock-data-'))
    for await (const event of airlock.templates.build('data')) progress.push(event)
  }, 900_000)
  afterAll(async () => {
    await server?.stop()
    if (home) rmSync(home, { recursive: true })
  })

  const cli = async (...argv: string[]): Promise<Ended> => {
    const env = {
      PATH: process.env['PATH'] ?? '',
      HOME: home,
      AIRLOCK_URL: server.url,
      AIRLOCK_API_KEY: server.developerKey,
    }
    const process_ = new CliProcess(argv, { env, cwd: home })
    process_.child.stdin.end()
    return process_.ended
  }

  it('says how far the installation is', async () => {
    const steps = progress.flatMap((event) => (event.event === 'progress' ? [event.step] : []))
    expect([...new Set(steps)]).toEqual(expect.arrayContaining(['download', 'unpack']))
    expect(progress.at(-1)).toMatchObject({ event: 'ended', template: { name: 'data', state: 'ready' } })
  })

  it('reads a CSV with pandas, and the numbers are right', async () => {
    await using session = await airlock.sessions.create({ runtime: 'python' })
    await session.files.write('sales.csv', readFileSync(join(EXAMPLES, 'sales.csv')))
    await session.run('import pandas as pd\nsales = pd.read_csv("sales.csv")')
    const sum = await session.run('float((sales.units * sales.price).sum())')
    expect(sum.outputs[0]?.text).toBe('6745.0')
    const [table] = (await session.run('sales.groupby("region").units.sum().to_frame()')).outputs
    expect(table?.text).toMatch(/north +360\nsouth +335/)
    expect(table?.html).toMatch(/<td>360<\/td>[^]*<td>335<\/td>/)
  })

  it('draws a plot without being asked to show it, and it is a picture of something', async () => {
    await using session = await airlock.sessions.create({ runtime: 'python' })
    const code = 'import matplotlib.pyplot as plt\nplt.figure(figsize=(4, 3), dpi=100)\nplt.plot([1, 4, 9, 16])'
    const { outputs, status } = await session.run(code)
    expect(status).toBe('completed')
    const pictures = outputs.flatMap(({ png }) => (png ? [decodePng(Buffer.from(png))] : []))
    expect(pictures).toHaveLength(1)
    const [picture] = pictures
    expect(picture?.colours.size).toBeGreaterThan(10)
    const most = Math.max(...(picture?.colours.values() ?? []))
    expect(most).toBeLessThan((picture?.width ?? 0) * (picture?.height ?? 0))
    expect((picture?.width ?? 0) / (picture?.height ?? 1)).toBeCloseTo(4 / 3, 0)
    const again = await session.run('1 + 1')
    expect(again.outputs.map(({ png }) => png)).toEqual([undefined])
  })

  it('prints the table of the example', async () => {
    const { code, stdout, stderr } = await cli('run', '--with', join(EXAMPLES, 'sales.csv'), join(EXAMPLES, 'sales.py'))
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout).toMatch(/^6 rows, revenue 6745\.00\n/)
    expect(stdout).toMatch(/2026-01 +1140\.0 +800\.0\n2026-02 +1425\.0 +950\.0\n2026-03 +990\.0 +1440\.0\n$/)
  })

  it('saves the plot of the example beside the caller, and never over another', async () => {
    const first = await cli('run', join(EXAMPLES, 'plot.py'))
    expect(first).toEqual({ code: 0, stdout: 'the mean of sin² is 0.499\n', stderr: 'Saved plot-1.png\n' })
    const { width, height, colours } = decodePng(readFileSync(join(home, 'plot-1.png')))
    expect(width).toBeGreaterThan(height)
    expect(colours.size).toBeGreaterThan(20)
    const second = await cli('python', join(EXAMPLES, 'plot.py'))
    expect(second.stderr).toBe('Saved plot-2.png\n')
    expect(readdirSync(home).toSorted()).toEqual(['plot-1.png', 'plot-2.png'])
  })
})
