import type { LookupAddress } from 'node:dns'
import { expect, it } from 'vitest'
import { privateLookup } from './connect.ts'

/** Looks up a name that has these addresses, for a connection without TLS. */
async function addressOf(addresses: readonly string[], all: boolean): Promise<unknown> {
  const found = addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }))
  const lookup = privateLookup((_name, _options, callback) => callback(null, found))
  return new Promise((resolve, reject) =>
    lookup('litellm', { all }, (error, address: string | LookupAddress[]) =>
      error ? reject(error) : resolve(address),
    ),
  )
}

it('a name is dialled where all of its addresses are private', async () => {
  expect(await addressOf(['10.0.0.7', 'fd00::7'], false)).toBe('10.0.0.7')
  expect(await addressOf(['127.0.0.1', '::1'], true)).toEqual([
    { address: '127.0.0.1', family: 4 },
    { address: '::1', family: 6 },
  ])
})

it.each([[['8.8.8.8']], [['10.0.0.7', '8.8.8.8']], [['::ffff:8.8.8.8']], [['169.254.169.254']], [[]]])(
  'a name is not dialled in clear at %j',
  async (addresses) => {
    for (const all of [true, false])
      await expect(addressOf(addresses, all)).rejects.toMatchObject({ code: 'NOT_PRIVATE' })
  },
)
