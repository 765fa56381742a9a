import { expect, it } from 'vitest'
import { commandOf, noticeText, readyJson, readyText } from './announce.ts'
import { loadSettings } from './config.ts'
import type { Facts } from './run.ts'

const inPath = { word: 'airlock', pathLine: undefined, other: undefined }

const facts = (url: string) =>
  new Map<string, Facts>([
    ['recorder', {}],
    ['data-plane', { node: 'host', backend: 'oci', runtime: 'crun' }],
    ['control-plane', { url, developerKey: '/s/developer.key', adminKey: '/s/admin.key' }],
  ])

it('says where it is and what to type next', () => {
  const text = readyText(facts('http://127.0.0.1:7070'), loadSettings({}, '/nowhere'), inPath)
  expect(text).toBe(`Airlock is ready at http://127.0.0.1:7070

  your key   /s/developer.key
  admin key  /s/admin.key
  isolation  oci, crun
  log        /var/lib/airlock/logs/airlock.log

Try this in another terminal:

  airlock run -- python3 -c 'print(6*7)'

Ctrl-C ends everything, sandboxes included.`)
})

it('shows the link that signs in once, where the control plane made one', () => {
  const made = facts('http://127.0.0.1:7070')
  made.set('control-plane', { ...made.get('control-plane'), signInLink: 'http://127.0.0.1:7070/#/sign-in/x\u001b[2J' })
  const text = readyText(made, loadSettings({}, '/nowhere'), inPath)
  expect(text).toContain('(the link signs in once, within 15 minutes):\n\n  http://127.0.0.1:7070/#/sign-in/x')
  expect(text).not.toContain('\u001b')
  expect(readyJson(made, 1)).not.toContain('sign-in')
})

it('prints commands that work as pasted when home and address are not the usual ones', () => {
  const settings = loadSettings({ AIRLOCK_HOME: "/srv/it's" }, '/nowhere')
  expect(readyText(facts('http://127.0.0.1:9000'), settings, inPath)).toContain(
    `  AIRLOCK_HOME='/srv/it'\\''s' AIRLOCK_URL=http://127.0.0.1:9000 airlock run -- python3`,
  )
})

it.each([
  [undefined, 'airlock is not in your PATH.'],
  ['/usr/bin/airlock', 'airlock in your PATH is /usr/bin/airlock, another program.'],
])('prints the path of the command, and the line for PATH, where PATH leads to %s', (other, why) => {
  const typed = { word: '/src/airlock', pathLine: 'export PATH=/src:$PATH', other }
  expect(readyText(facts('http://127.0.0.1:7070'), loadSettings({}, '/nowhere'), typed)).toContain(`
  /src/airlock run -- python3 -c 'print(6*7)'

${why} To change that, in a shell or in its profile:

  export PATH=/src:$PATH

Ctrl-C ends`)
})

it('is one line of JSON for programs', () => {
  expect(readyJson(facts('http://127.0.0.1:1'), 42)).toBe(
    '{"url":"http://127.0.0.1:1","developerKey":"/s/developer.key","adminKey":"/s/admin.key","pid":42}',
  )
})

it('shows what a process wants people to know, with commands that work as pasted, and nothing that steers', () => {
  const notice = {
    title: 'Approve? \u001b[2Jrm',
    details: ['because\nof it', 'x'.repeat(1000)],
    commands: ['approvals approve apr_1'],
  }
  const command = commandOf(facts('http://127.0.0.1:9000'), loadSettings({}, '/nowhere'), inPath)
  expect(noticeText(notice, command)).toBe(`
Approve?  [2Jrm
  because of it
  ${'x'.repeat(300)}
  AIRLOCK_URL=http://127.0.0.1:9000 airlock approvals approve apr_1`)
})
