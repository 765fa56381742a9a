import { expect, it } from 'vitest'
import { commandOf, noticeText, readyJson, readyText } from './announce.ts'
import { loadSettings } from './config.ts'

const facts = (url: string) =>
  new Map([
    ['recorder', {}],
    ['data-plane', { node: 'host', backend: 'oci', runtime: 'crun' }],
    ['control-plane', { url, developerKey: '/s/developer.key', adminKey: '/s/admin.key' }],
  ])

it('says where it is and what to type next', () => {
  const text = readyText(facts('http://127.0.0.1:7070'), loadSettings({}, '/nowhere'))
  expect(text).toBe(`Airlock is ready at http://127.0.0.1:7070

  your key   /s/developer.key
  admin key  /s/admin.key
  isolation  oci, crun
  log        /var/lib/airlock/logs/airlock.log

Try this in another terminal:

  npx airlock run -- python3 -c 'print(6*7)'

Ctrl-C ends everything, sandboxes included.`)
})

it('prints commands that work as pasted when home and address are not the usual ones', () => {
  const settings = loadSettings({ AIRLOCK_HOME: "/srv/it's" }, '/nowhere')
  expect(readyText(facts('http://127.0.0.1:9000'), settings)).toContain(
    `  AIRLOCK_HOME='/srv/it'\\''s' AIRLOCK_URL=http://127.0.0.1:9000 npx airlock run -- python3`,
  )
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
  const command = commandOf(facts('http://127.0.0.1:9000'), loadSettings({}, '/nowhere'))
  expect(noticeText(notice, command)).toBe(`
Approve?  [2Jrm
  because of it
  ${'x'.repeat(300)}
  AIRLOCK_URL=http://127.0.0.1:9000 npx airlock approvals approve apr_1`)
})
