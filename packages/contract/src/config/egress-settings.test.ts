import { expect, it } from 'vitest'
import { listedAddresses, resolversText } from './egress-settings.ts'

it('takes a list, or a text with commas', () => {
  const listed = [
    { address: '10.0.0.5', port: 443 },
    { address: 'fd00::5', port: 80 },
  ]
  expect(listedAddresses.parse('10.0.0.5:443, [fd00::5]:80')).toEqual(listed)
  expect(listedAddresses.parse(['10.0.0.5:443', '[fd00::5]:80'])).toEqual(listed)
  expect(listedAddresses.parse('')).toEqual([])
  expect(resolversText.parse('127.0.0.1:53')).toEqual(['127.0.0.1:53'])
})

it.each([
  '10.0.0.5',
  '10.0.0.0/8:443',
  '10.0.0.5:0',
  '10.0.0.5:65536',
  '10.0.5:443',
  '010.0.0.5:443',
  'fd00::5:443',
  '[fd00:0:0::5]:443',
  '[::1%lo]:443',
  'example.com:443',
  '169.254.169.254:80',
  '[fe80::1]:80',
  '[fd00:ec2::254]:80',
])('refuses to list %s', (text) => {
  expect(listedAddresses.safeParse([text]).success).toBe(false)
})
