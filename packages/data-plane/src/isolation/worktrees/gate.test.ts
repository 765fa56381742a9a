import { describe, expect, it } from 'vitest'
import { Gate } from './gate.ts'
import { sensitiveKinds } from './sensitive-paths.ts'

const TOKEN = `ghp_${'a1B2c3D4'.repeat(5)}`

async function found(path: string, content: string | Buffer, newMode = '100644') {
  const gate = new Gate()
  const change = { path, shown: path, oldMode: null, newMode, content: Buffer.from(content) }
  await gate.judge(change)
  return gate.finish().map(({ kind, line }) => (line === null ? kind : `${kind}:${line}`))
}

describe('a sensitive path is found', () => {
  it.each([
    ['ci', '.github/workflows/x.yml'],
    ['ci', 'deep/er/.GitHub/WorkFlows/x.yml'],
    ['ci', '.git\u200Chub/workflows/x.yml'],
    ['ci', '.github./workflows /x.yml'],
    ['ci', '.github::$INDEX_ALLOCATION/workflows/x.yml'],
    ['ci', '.gitlab-ci.yml'],
    ['hook', '.husky/pre-commit'],
    ['build', 'sub/Makefile'],
    ['build', 'sub/PACKAGE.JSON'],
    ['build', 'a/b/install.sh'],
    ['build', 'setup.py'],
    ['container', 'Dockerfile.dev'],
    ['container', 'docker-compose.prod.yml'],
    ['infra', 'prod/main.tf'],
    ['agent', 'CLAUDE.md'],
    ['agent', '.vscode/tasks.json'],
    ['git', 'sub/.gitattributes'],
    ['git', '.gitmodules'],
  ])('%s: %s', (kind, path) => expect([...sensitiveKinds(path)]).toContain(kind))

  it.each(['src/main.py', 'docs/makefiles.md', 'package.jsonl', 'github/workflows.md', 'dockerfiles/readme.md'])(
    'and %s is not one',
    (path) => expect([...sensitiveKinds(path)]).toEqual([]),
  )
})

describe('a content is found', () => {
  it('with a secret, also in base64, in a binary and far behind', async () => {
    expect(await found('a', `x\n${TOKEN}\n`)).toEqual(['secret:2'])
    expect(await found('a', Buffer.from(`key=${TOKEN}`).toString('base64'))).toEqual(['secret:1'])
    expect(
      await found(
        'a',
        Buffer.from(`key=${TOKEN}`)
          .toString('base64')
          .replaceAll(/(.{20})/gu, '$1\n'),
      ),
    ).toEqual(['secret:1'])
    expect(await found('a', Buffer.concat([Buffer.alloc(9), Buffer.from(TOKEN)]))).toEqual(['binary', 'secret:1'])
    expect(await found('a', `${'line of text\n'.repeat(500_000)}${TOKEN}`)).toEqual(['large', 'secret:500001'])
  })

  it('at every place across the windows in which it is read', async () => {
    for (let at = 256 * 1024 - 50; at < 256 * 1024 + 10; at += 7)
      expect(await found('a', `${'-\n'.repeat(at / 2)}${TOKEN}`)).toEqual([expect.stringMatching(/^secret/u)])
  })

  it('with a long line, a link that leads out, or a strange name', async () => {
    expect(await found('a', `short\n${'x '.repeat(6000)}\n`)).toEqual(['long-line:2'])
    for (const target of ['/etc', '../x', 'a/../../x', 'C:\\x'])
      expect(await found('l', target, '120000')).toEqual(['link-out'])
    expect(await found('sub/l', '../x', '120000')).toEqual([])
    expect(await found('a\nb', 'x')).toEqual(['name'])
    expect(await found('GITHUB~1/x', 'x')).toEqual(['name'])
    expect(await found('plain.txt', 'nothing of note\n')).toEqual([])
  })

  it('when it is a submodule, or there is much of it', async () => {
    const gate = new Gate()
    for (let number = 0; number < 1001; number++)
      await gate.judge({
        path: `${number}`,
        shown: `${number}`,
        oldMode: null,
        newMode: '100644',
        content: Buffer.from('x'),
      })
    await gate.judge({ path: 'sub', shown: 'sub', oldMode: '160000', newMode: null, content: undefined })
    expect(gate.finish().map(({ kind }) => kind)).toEqual(['many', 'submodule'])
  })
})
