import { expect, it } from 'vitest'
import { isPrivate, isPrivateName, webhookAddress } from './address.ts'

it.each([
  '0.0.0.0',
  '10.0.0.1',
  '100.64.0.1',
  '127.0.0.1',
  '127.255.255.254',
  '169.254.169.254',
  '172.16.0.1',
  '172.31.255.255',
  '192.168.1.1',
  '198.18.0.1',
  '224.0.0.1',
  '255.255.255.255',
  '::',
  '::1',
  '::7f00:1',
  '::ffff:10.0.0.1',
  '64:ff9b::a00:1',
  '2002:7f00:1::',
  '2001:0:1::1',
  'fc00::1',
  'fd12:3456::1',
  'fe80::1',
  'fec0::1',
  'ff02::1',
])('%s is not public', (address) => {
  expect(isPrivate(address)).toBe(true)
})

it.each(['1.1.1.1', '93.184.216.34', '172.32.0.1', '100.128.0.1', '192.0.1.1', '2606:4700::1111', '2a00:1450::1'])(
  '%s is public',
  (address) => {
    expect(isPrivate(address)).toBe(false)
  },
)

it('connects to a public address as it is, and resolves no name for it', async () => {
  expect(await webhookAddress(new URL('https://1.1.1.1/x'), false)).toBe('1.1.1.1')
  expect(await webhookAddress(new URL('https://[2606:4700::1111]/'), false)).toBe('2606:4700::1111')
})

it('refuses a name that leads to this machine, unless that is allowed', async () => {
  const url = new URL('https://localhost/')
  await expect(webhookAddress(url, false)).rejects.toMatchObject({ code: 'forbidden' })
  expect(isPrivate(await webhookAddress(url, true))).toBe(true)
})

it.each([
  'localhost',
  'LOCALHOST.',
  'sandbox.localhost',
  'localhost.localdomain',
  'metadata.google.internal',
  'printer.local',
  'router.home.arpa',
  'intranet',
  'metadata',
  'a.corp..',
])('%s is not a public name, whatever it resolves to', async (host) => {
  await expect(webhookAddress(new URL(`https://${host}/`), false)).rejects.toMatchObject({
    code: 'forbidden',
    message: expect.stringMatching(/ is not a public name\.$/),
  })
})

it.each(['notlocalhost.example', 'local.example', 'internal.home.example', 'a.co', '1.1.1.1', '2606:4700::1111'])(
  '%s is no private name',
  (host) => {
    expect(isPrivateName(host)).toBe(false)
  },
)

it.each([true, false])('connects to no port 0 (private ones are allowed: %s)', async (allowsPrivate) => {
  const refused = webhookAddress(new URL('https://1.1.1.1:0/'), allowsPrivate)
  await expect(refused).rejects.toMatchObject({ code: 'forbidden', message: 'Port 0 is no port.' })
})
