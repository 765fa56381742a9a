import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { describe, expect, it } from 'vitest'

async function bundle(entry: string): Promise<string> {
  const { outputFiles } = await build({
    entryPoints: [fileURLToPath(new URL(entry, import.meta.url))],
    bundle: true,
    platform: 'browser',
    format: 'esm',
    write: false,
    logLevel: 'silent',
  })
  return outputFiles.map(({ text }) => text).join('\n')
}

describe('the SDK in a browser', () => {
  it('bundles without a module or a global of Node', async () => {
    const text = await bundle('browser.ts')
    expect(text).toContain('/v1/sandboxes')
    expect(text).not.toMatch(/\bnode:|\bprocess\.(?:env|platform)|\bBuffer\b|\brequire\(/)
  })

  it('does not bundle with the parts for Node', async () => {
    await expect(bundle('index.ts')).rejects.toThrow('node:fs')
  })
})
