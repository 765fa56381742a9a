import { expect, it } from 'vitest'
import { parseRoute } from './route.ts'

it.each([
  ['', { page: 'overview' }],
  ['#/', { page: 'overview' }],
  ['#/nowhere', { page: 'overview' }],
  ['#/sandboxes', { page: 'sandboxes' }],
  ['#/sandboxes/sbx_01', { page: 'sandbox', id: 'sbx_01' }],
  ['#/sandboxes/..%2fkeys', { page: 'sandboxes' }],
  ['#/evidence/12', { page: 'record', seq: 12 }],
  ['#/evidence/-1', { page: 'evidence' }],
  ['#/sign-in/abc', { page: 'sign-in', link: 'abc' }],
])('%s leads to a page', (hash, route) => {
  expect(parseRoute(hash)).toEqual(route)
})
