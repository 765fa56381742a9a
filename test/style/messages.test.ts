import { expect, it } from 'vitest'
import { ERRORS } from '../../packages/contract/src/errors.ts'
import { filesMatching, linesMatching } from './repository.ts'

/** Words after "airlock" where the program itself is the subject. */
const SENTENCE = new Set(['needs'])
/** What was true when it was written. */
const HISTORY = /^(?:CHANGELOG|docs\/decisions\/)/

it('nobody is told to type what fetches a package of somebody else', () => {
  const told = filesMatching(/\.(?:md|ts|js|sh|py)$/).filter(
    ({ path }) => !HISTORY.test(path) && path !== 'test/style/messages.test.ts',
  )
  expect(linesMatching(told, /npx airlock|npm (?:install|i|add) (?:-\S+ |--\S+ )*@airlock\//)).toEqual([])
})

it('a hint names a command that exists', () => {
  const [main] = filesMatching(/^packages\/cli\/src\/main\.ts$/)
  const verbs = new Set([...(main?.text ?? '').matchAll(/^  ([a-z]+): \{$/gm)].map(([, verb]) => verb))
  expect(verbs.size).toBeGreaterThan(30)
  const hints = [
    ...Object.values(ERRORS).map(({ hint }) => hint),
    ...filesMatching(/^packages\/(?:cli|control-plane|sdk|supervisor)\/src\/.*\.ts$/)
      .filter(({ path }) => !path.includes('.test.'))
      .flatMap(({ text }) =>
        [...text.matchAll(/(?:[":]|or) ?(airlock [a-z]+(?: [a-z]+)?(?=[ "'`,]))/g)].map(([, said]) => said ?? ''),
      ),
  ]
  const named = hints.flatMap((hint) => [...hint.matchAll(/\bairlock ([a-z]+)/g)].map(([, verb]) => verb))
  expect(named.length).toBeGreaterThan(30)
  expect([...new Set(named.filter((verb = '') => !verbs.has(verb) && !SENTENCE.has(verb)))]).toEqual([])
})

/** The words of `docs` are checked too, but in code blocks alone: there they are typed. */
it('a document shows only commands that exist', () => {
  const [main] = filesMatching(/^packages\/cli\/src\/main\.ts$/)
  const verbs = new Set(
    [...(main?.text ?? '').matchAll(/^  ([a-z]+): \{$/gm), ...(main?.text ?? '').matchAll(/alias: '([a-z]+)'/g)].map(
      ([, verb]) => verb,
    ),
  )
  const typed = filesMatching(/\.md$/)
    .filter(({ path }) => !HISTORY.test(path))
    .flatMap(({ text }) => [...text.matchAll(/^```[^]*?^```/gm)].join('\n').split('\n'))
    .flatMap((line) => [...line.matchAll(/(?:^|\$ |sudo |&& |-- )airlock ([a-z]+)/g)].map(([, verb]) => verb))
  expect(typed.length).toBeGreaterThan(30)
  expect([...new Set(typed.filter((verb) => !verbs.has(verb) && verb !== 'help'))]).toEqual([])
})
