import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Reservation, signReservation } from '@airlock/contract'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { ReservationDesk } from './reservations.ts'
import { aReservation, signingKeys } from './testing/reservations.ts'

const LIFE = 'a'.repeat(26)
const START = 1_800_000_000_000

let dir: string
let now: number
let desk: ReservationDesk
let keys: ReturnType<typeof signingKeys>

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'al-desk-'))
  now = START
  keys = signingKeys()
  writeFileSync(join(dir, 'node'), 'here')
  writeFileSync(join(dir, 'reservation.pub'), keys.publicPem)
  desk = new ReservationDesk({ publicDir: dir, life: LIFE, clock: { now: () => now } })
})
afterEach(() => rmSync(dir, { recursive: true }))

const sign = (changes: Partial<Reservation> = {}) =>
  signReservation(aReservation({ expiresAt: now + 30_000, ...changes }), keys.privateKey)

it('a reservation is taken once, until its very end', () => {
  const text = sign()
  expect(desk.take(text)).toMatchObject({ node: 'here', life: LIFE })
  now += 29_999
  expect(() => desk.take(text)).toThrow('was used before')
  now += 1
  expect(() => desk.take(text)).toThrow('has expired')
})

it('another reservation of the same call is no other call', () => {
  const { callId } = desk.take(sign())
  expect(() => desk.take(sign({ callId, ceiling: 1 }))).toThrow('was used before')
})

it('a call that one outlived is remembered behind one that expired later', () => {
  const [long, short] = [sign({ expiresAt: now + 60_000 }), sign({ expiresAt: now + 1000 })]
  for (const text of [long, short]) desk.take(text)
  now += 2000
  expect(() => desk.take(long)).toThrow('was used before')
  expect(() => desk.take(short)).toThrow('has expired')
})

it('nothing is taken before the control plane has published its key, and by its new key from then on', () => {
  rmSync(join(dir, 'reservation.pub'))
  expect(() => desk.take(sign())).toThrow('has published no key')
  writeFileSync(join(dir, 'reservation.pub'), keys.publicPem)
  expect(desk.take(sign()).node).toBe('here')
  const old = sign()
  keys = signingKeys()
  writeFileSync(join(dir, 'next'), keys.publicPem)
  renameSync(join(dir, 'next'), join(dir, 'reservation.pub'))
  expect(() => desk.take(old)).toThrow('is not signed')
  expect(desk.take(sign()).node).toBe('here')
})

it('nothing is taken before it is known which node this is', () => {
  rmSync(join(dir, 'node'))
  expect(() => desk.take(sign())).toThrow('is for another node')
})
