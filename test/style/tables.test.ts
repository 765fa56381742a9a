import { ERROR_CODES, FAILPOINTS, POINTS } from '@airlock/contract'
import { describe, expect, it } from 'vitest'
import { generateDocs } from '../../scripts/generate-docs.ts'
import { filesMatching, productSources } from './repository.ts'

const sources = productSources()

describe('the tables of contract', () => {
  it.each([...generateDocs()])('are what %s says', (path, text) => {
    expect(filesMatching(new RegExp(`^${path}$`))[0]?.text).toBe(text)
  })

  it('list no error that nothing raises', () => {
    const users = sources.filter(({ path }) => !/^packages\/contract\/src\/(?:errors\.ts$|routes\/)/.test(path))
    expect(ERROR_CODES.filter((code) => !users.some(({ text }) => text.includes(`'${code}'`)))).toEqual([])
  })

  it('list no audit point that nothing writes', () => {
    const users = sources.filter(({ path }) => path !== 'packages/contract/src/points.ts')
    expect(Object.keys(POINTS).filter((point) => !users.some(({ text }) => text.includes(`'${point}'`)))).toEqual([])
  })

  it('list every failpoint, each of which is in the code exactly once', () => {
    const found = sources.flatMap(({ text }) =>
      [...text.matchAll(/failpoint\(\s*'([^']+)'/gi)].map((match) => match[1] ?? ''),
    )
    expect(found.toSorted()).toEqual([...FAILPOINTS].toSorted())
  })
})
