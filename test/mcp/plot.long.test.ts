import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { requires } from '../support/requires.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { connectHttp } from './client.ts'

/** The first call installs the template that Python gets when nobody says otherwise. */
const INSTALL_MS = 500_000

const CODE = `
import matplotlib.pyplot as plt
import pandas as pd
sales = pd.DataFrame({"month": [1, 2, 3], "units": [120, 150, 90]})
sales.plot(x="month", y="units")
sales
`

let server: TestServer
beforeAll(async () => {
  server = await startServer()
})
afterAll(async () => server?.stop('SIGINT'))

describe('"run this Python, give me the plot"', requires('root', 'apt-get'), () => {
  it('is one call, with the plot as a picture, the table as text, and signs of life while the template is installed', async () => {
    const client = await connectHttp(server, { pin: '2026-07-28' })
    const told: string[] = []
    const { content } = await client.callTool(
      { name: 'run_code', arguments: { language: 'python', code: CODE } },
      { timeout: INSTALL_MS, onprogress: ({ message }) => void told.push(message ?? '') },
    )
    await client.close()
    expect(told[0]).toBe('starting a sandbox')
    const pictures = content.filter((block) => block.type === 'image')
    expect(pictures.map((picture) => picture.mimeType)).toEqual(['image/png'])
    const png = Buffer.from(pictures[0]?.data ?? '', 'base64')
    expect(png.subarray(1, 4).toString()).toBe('PNG')
    expect({ width: png.readUInt32BE(16), height: png.readUInt32BE(20) }).toEqual({
      width: expect.toSatisfy((pixels: number) => pixels > 300) as unknown,
      height: expect.toSatisfy((pixels: number) => pixels > 200) as unknown,
    })
    const words = content.flatMap((block) => (block.type === 'text' ? [block.text] : [])).join('\n')
    expect(words).toMatch(/month\s+units/)
    expect(words).toContain('150')
  })
})
