import { existsSync, readdirSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { filesMatching, linesMatching, ROOT } from './repository.ts'

const documents = filesMatching(/\.md$/)
const read = (path: string) => documents.find((document) => document.path === path)?.text ?? ''

describe('the documents', () => {
  it('are all there', () => {
    const wanted = ['README.md', 'ARCHITECTURE.md', 'SECURITY.md', 'CONTRIBUTING.md', 'CHANGELOG.md', 'LICENSE']
    const docs = ['request-lifecycle', 'errors', 'configuration', 'operations', 'mission'].map(
      (name) => `docs/${name}.md`,
    )
    expect([...wanted, ...docs].filter((path) => !existsSync(join(ROOT, path)))).toEqual([])
  })

  it('link only to what exists', () => {
    const dead = documents.flatMap(({ path, text }) =>
      relativeLinks(text)
        .filter((link) => !existsSync(join(ROOT, dirname(path), link)))
        .map((link) => `${path}: ${link}`),
    )
    expect(dead).toEqual([])
  })

  it('are all listed in docs/README.md', () => {
    const listed = relativeLinks(read('docs/README.md'))
    const pages = readdirSync(join(ROOT, 'docs')).filter((name) => name.endsWith('.md') && name !== 'README.md')
    expect(pages.filter((name) => !listed.includes(name))).toEqual([])
  })

  it('name only files that exist in the walks of requests', () => {
    const paths = filesMatching(/\.ts$/).map(({ path }) => `/${path.replace('/src/', '/')}`)
    const named = [...read('docs/request-lifecycle.md').matchAll(/`([\w./-]+\.ts)`/g)].map(([, name = '']) => name)
    const exists = (name: string) => paths.some((path) => path.endsWith(`/${name.replace('/src/', '/')}`))
    expect(named.filter((name) => !exists(name))).toEqual([])
    expect(named.length).toBeGreaterThan(100)
    expect(exists('commands/no-such-file.ts')).toBe(false)
  })

  it('begin with commands that a bare machine has: what it lacks is told how to get', () => {
    const text = read('README.md')
    const shell = [...text.matchAll(/^```sh\n([^]*?)^```/gm)].map((match) => match[1] ?? '')
    const typed = [...text.matchAll(/^\$ (.*\n)/gm)].map((match) => match[1] ?? '')
    const words = [...shell, ...typed].join('').matchAll(/(?:^|\| |\{ |\$\()([a-z][\w-]*)(?= )/gm)
    const programs = new Set([...words].map((match) => match[1] ?? ''))
    const known = new Set(['airlock', 'npm', 'npx', 'cat', 'grep', 'head', 'post', 'claude'])
    const lacking = [...programs].filter((name) => !known.has(name) && !text.includes(`apt-get install ${name}`))
    expect(lacking).toEqual([])
    expect(programs).toContain('curl')
  })

  it('keep a changelog: versions newest first, each with known kinds of change', () => {
    const text = read('CHANGELOG.md')
    expect(text).toMatch(/^# Changelog\n/)
    const versions = [...text.matchAll(/^## (.*)$/gm)].map((match) => match[1] ?? '')
    expect(versions[0]).toBe('[Unreleased]')
    expect(versions.slice(1).filter((line) => !/^\[\d+\.\d+\.\d+\] - \d{4}-\d{2}-\d{2}$/.test(line))).toEqual([])
    expect(versions.slice(1)).toEqual(versions.slice(1).toSorted().toReversed())
    const kinds = [...text.matchAll(/^### (.*)$/gm)].map((match) => match[1] ?? '')
    const known = new Set(['Added', 'Changed', 'Deprecated', 'Removed', 'Fixed', 'Security'])
    expect(kinds.filter((kind) => !known.has(kind))).toEqual([])
  })

  it('number decisions, each once', () => {
    const names = readdirSync(join(ROOT, 'docs/decisions')).filter((name) => name !== 'README.md')
    const numbers = names.map((name) => name.slice(0, 4)).toSorted()
    expect(numbers).toEqual([...new Set(numbers)])
    expect(names.filter((name) => !/^\d{4}-[a-z0-9-]+\.md$/.test(name))).toEqual([])
  })

  it('explain every decision by context, decision and consequences', () => {
    const decisions = documents.filter(({ path }) => path.startsWith('docs/decisions/0'))
    const headings = ['## Context', '## Decision', '## Consequences']
    const lacking = decisions.filter(({ text }) => !headings.every((heading) => text.includes(`\n${heading}\n`)))
    expect(lacking.map(({ path }) => path)).toEqual([])
  })

  it('say nothing about the machine they were written on', () => {
    const everything = filesMatching(/^(?!package-lock\.json$)/).filter(
      ({ path }) => !/\.(?:png|ico|woff2)$/.test(path),
    )
    const top = readdirSync(ROOT).map((name) => join(ROOT, name).replaceAll('.', String.raw`\.`))
    expect(linesMatching(everything, new RegExp(`(?:${top.join('|')})(?![\\w.-])`))).toEqual([])
    expect(linesMatching(filesMatching(/^package-lock\.json$/), /"resolved": "https?:/)).toEqual([])
  })
})

describe('SECURITY.md', () => {
  const promises = Array.from({ length: 11 }, (_, index) => `G${index + 1}`)
  const tests = filesMatching(/\.test\.ts$/)

  it.each(promises)('names tests that exist for %s, or says that they are pending', (promise) => {
    const section = sectionOf(read('SECURITY.md'), promise)
    const named = [...section.matchAll(/`([^`]+\.test\.ts)`/g)].map((match) => match[1] ?? '')
    const missing = named.filter((name) => !tests.some(({ path }) => path === name || basename(path) === name))
    expect(missing).toEqual([])
    expect(named.length > 0 || /\bpending\b/.test(section)).toBe(true)
  })
})

/** From the heading or table row of a promise to the next one. */
function sectionOf(text: string, promise: string): string {
  const starts = new RegExp(String.raw`^(?:#+ |\| ?\**|- \**)${promise}\b`, 'm')
  const from = text.search(starts)
  if (from === -1) return ''
  const rest = text.slice(from + promise.length + 2)
  const next = rest.search(/^(?:#+ |\| ?\**G\d+\b|- \**G\d+\b)/m)
  return next === -1 ? rest : rest.slice(0, next)
}

function relativeLinks(markdown: string): readonly string[] {
  const prose = markdown.replaceAll(/```[\s\S]*?```/g, '').replaceAll(/`[^`\n]*`/g, '')
  return [...prose.matchAll(/\]\(([^)\s]+)\)/g)]
    .map((match) => decodeURIComponent((match[1] ?? '').split('#')[0] ?? ''))
    .filter((link) => link !== '' && !/^[a-z]+:/i.test(link))
}
