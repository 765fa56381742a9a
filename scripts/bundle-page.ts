import { mkdirSync, readdirSync, rmSync } from 'node:fs'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { replaceFile } from './replace-file.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))

/** Writes `dist/dashboard`: `index.html`, and the script and the style that it names by their content. */
export async function bundlePage(): Promise<void> {
  const outdir = join(ROOT, 'dist/dashboard')
  const assets = join(outdir, 'assets')
  const { outputFiles } = await build({
    absWorkingDir: ROOT,
    entryPoints: { main: 'packages/dashboard/src/main.tsx', icon: 'packages/dashboard/src/icon.svg' },
    loader: { '.svg': 'copy' },
    outdir: assets,
    entryNames: '[name]-[hash]',
    bundle: true,
    minify: true,
    platform: 'browser',
    format: 'esm',
    target: ['chrome111', 'firefox115', 'safari16.4'],
    jsx: 'automatic',
    jsxImportSource: 'preact',
    legalComments: 'none',
    logLevel: 'warning',
    write: false,
  })
  mkdirSync(assets, { recursive: true })
  for (const file of outputFiles) replaceFile(file.path, file.contents)
  const names = outputFiles.map(({ path }) => basename(path))
  replaceFile(join(outdir, 'index.html'), Buffer.from(indexHtml(names)))
  // Hidden ones are of another build, which is at work.
  const old = readdirSync(assets).filter((name) => !names.includes(name) && !name.startsWith('.'))
  for (const name of old) rmSync(join(assets, name), { force: true })
}

function indexHtml(names: readonly string[]): string {
  const find = (extension: string): string => `/assets/${names.find((name) => name.endsWith(extension)) ?? ''}`
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Airlock</title>
<link rel="icon" type="image/svg+xml" href="${find('.svg')}">
<link rel="stylesheet" href="${find('.css')}">
<script type="module" src="${find('.js')}"></script>
</head>
<body>
<div id="app"></div>
<noscript>This page needs JavaScript. Everything on it is also in the command line: airlock --help</noscript>
</body>
</html>
`
}
