import { expect, it } from 'vitest'
import { isPrivateAddress } from './private-address.ts'

it.each([
  '127.0.0.1',
  '127.9.9.9',
  '10.0.0.1',
  '172.16.0.1',
  '172.31.255.255',
  '192.168.1.1',
  '::1',
  'fd00::1',
  'fc12:3::4',
])('%s is private', (address) => {
  expect(isPrivateAddress(address)).toBe(true)
})

it.each([
  '8.8.8.8',
  '0.0.0.0',
  '100.64.0.1',
  '169.254.169.254',
  '172.15.0.1',
  '172.32.0.1',
  '192.169.0.1',
  '11.0.0.1',
  '1.10.0.0.1',
  '::',
  '::ffff:127.0.0.1',
  'fe80::1',
  '2001:db8::1',
  '64:ff9b::a00:1',
  'fd.example.com',
  'localhost',
  '',
])('%s is not', (address) => {
  expect(isPrivateAddress(address)).toBe(false)
})
