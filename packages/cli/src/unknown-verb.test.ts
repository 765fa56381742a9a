import { expect, it } from 'vitest'
import { unknownVerb } from './unknown-verb.ts'

const VERBS = ['run', 'kill', 'logs', 'ls', 'top', 'usage', 'session', 'create', 'exec']

it.each([
  ['ps', 'Use: airlock ls'],
  ['stop', 'Use: airlock terminate SANDBOX'],
  ['images', 'Use: airlock template ls'],
  ['shell', 'Use: airlock bash, or in a sandbox that is there: airlock bash --sandbox SANDBOX'],
  ['pull', 'Use: airlock template import NAME ROOTFS.tar, or: airlock template build NAME --package PACKAGE'],
  ['status', 'Use: airlock ls, or: airlock doctor'],
  ['login', 'Use: airlock keys, or: airlock whoami'],
  ['version', 'Use: airlock --version'],
  ['port', 'Sandboxes have no network: nothing outside can reach a port in one.'],
  ['snapshot', 'A sandbox cannot be saved. Make a template, or copy its files out: airlock cp SANDBOX:PATH .'],
  ['creat', 'Use: airlock create'],
  ['exce', 'Use: airlock exec'],
  ['frobnicate', 'All of them: airlock --help'],
  ['constructor', 'All of them: airlock --help'],
])('for %s: %s', (word, hint) => {
  expect(unknownVerb(word, VERBS)).toMatchObject({ message: `There is no command ${word}.`, hint })
})
