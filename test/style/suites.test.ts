import { matchesGlob } from 'node:path'
import { expect, it } from 'vitest'
import config from '../../vitest.config.ts'
import { choose } from '../../scripts/test/suites.ts'
import { filesMatching } from './repository.ts'

/** Projects of the configuration. The tests of `postgres` run in `unit` as well. */
const PROJECTS = (config.test?.projects ?? []).flatMap((project) =>
  typeof project === 'object' && 'test' in project && project.test ? [project.test] : [],
)

it('every project runs in a suite', () => {
  const names = PROJECTS.flatMap(({ name }) => (typeof name === 'string' ? [name] : []))
  expect(names.toSorted()).toEqual(choose(['full']).projects.toSorted())
})

it('every test file belongs to one project', () => {
  const projects = PROJECTS.filter(({ name }) => name !== 'postgres')
  const owners = filesMatching(/\.test\.ts$/)
    .filter(({ path }) => !path.startsWith('test/vm/inside/'))
    .map(({ path }) => ({
      path,
      owners: projects
        .filter(({ include = [], exclude = [] }) => matches(path, include) && !matches(path, exclude))
        .map(({ name }) => name),
    }))
  expect(owners.filter((file) => file.owners.length !== 1)).toEqual([])
})

function matches(path: string, globs: readonly string[]): boolean {
  return globs.some((glob) => matchesGlob(path, glob))
}
