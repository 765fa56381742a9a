import { expect, it } from 'vitest'
import { mayConnect, ownAddresses } from './own-address.ts'

it('connects to no address of the host, in whatever spelling', () => {
  const own = ['8.8.8.8', '2606:4700:0:0::1111']
  for (const address of ['8.8.8.8', '2606:4700::1111'])
    expect(mayConnect({ address, port: 443 }, { listed: [], own })).toBe(false)
  expect(mayConnect({ address: '8.8.4.4', port: 443 }, { listed: [], own })).toBe(true)
})

it('connects to a listed address at its port alone', () => {
  const rules = { listed: [{ address: '10.0.0.5', port: 443 }], own: [] }
  expect(mayConnect({ address: '10.0.0.5', port: 443 }, rules)).toBe(true)
  expect(mayConnect({ address: '10.0.0.5', port: 80 }, rules)).toBe(false)
  expect(mayConnect({ address: '10.0.0.6', port: 443 }, rules)).toBe(false)
})

it('knows the addresses of this host', () => {
  expect(ownAddresses()).toContain('127.0.0.1')
})
