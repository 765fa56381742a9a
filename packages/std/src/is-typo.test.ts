import { expect, it } from 'vitest'
import { isTypo } from './is-typo.ts'

it.each([
  ['prt', 'port'],
  ['porrt', 'port'],
  ['prot', 'port'],
  ['pork', 'port'],
  ['tport', 'port'],
  ['ports', 'port'],
  ['port', 'port'],
])('%s is %s with one slip', (word, meant) => expect(isTypo(word, meant)).toBe(true))

it.each([
  ['pull', 'kill'],
  ['stop', 'top_'],
  ['images', 'usage'],
  ['login', 'logs'],
  ['ps', 'cp'],
  ['', 'port'],
])('%s is another word than %s', (word, meant) => expect(isTypo(word, meant)).toBe(false))
