import type { Route } from '@airlock/contract'

export interface Tag {
  readonly name: string
  readonly description: string
}

type Row = readonly [name: string, paths: RegExp, description: string]

/** Subjects of the API, in the order of a reader. Only the last row matches paths of another one. */
const SUBJECTS: readonly Row[] = [
  [
    'Sandboxes',
    /^\/v1\/sandboxes(?!\/\{id\}\/(?:commands|files|worktree|artifacts|metrics|events))/,
    'Create sandboxes, look at them, change and end them.',
  ],
  ['Commands', /^\/v1\/sandboxes\/\{id\}\/commands/, 'Programs that run in a sandbox, and their output.'],
  ['Files', /^\/v1\/sandboxes\/\{id\}\/files/, 'Files of a sandbox, resolved inside of it.'],
  [
    'Worktrees',
    /^\/v1\/sandboxes\/\{id\}\/worktree/,
    'What a sandbox changed in a repository of the host, and how it leaves.',
  ],
  ['Sessions', /^\/v1\/sessions/, 'Interpreters that remember, and the steps that run in them.'],
  [
    'Artifacts',
    /^\/v1\/(?:artifacts|artifact-links|sandboxes\/\{id\}\/artifacts)/,
    'Files that leave sandboxes on purpose, and outlive them.',
  ],
  ['Jobs', /^\/v1\/jobs/, 'Work that outlives its caller: a queue, a sandbox for each try, logs.'],
  ['Runs', /^\/v1\/(?:catalog|runs|openai)/, 'Agent programs, and runs that answer messages.'],
  ['Templates', /^\/v1\/templates/, 'Root file systems and defaults that sandboxes start from.'],
  ['Agents', /^\/v1\/agents(?!\/\{id\}\/(?:grants|events|summary|metrics))/, 'The registry of agents.'],
  ['Grants', /^\/v1\/agents\/\{id\}\/grants/, 'Host paths that the sandboxes of an agent see.'],
  ['Budgets', /^\/v1\/(?:budgets|usage)/, 'Quotas of agents and tenants, and the ledger of their usage.'],
  ['Keys', /^\/v1\/keys/, 'API keys.'],
  ['Tenants', /^\/v1\/tenants/, 'Tenants of this server.'],
  ['Policies', /^\/v1\/(?:policies|guardian)/, 'Rules that decide about requests.'],
  ['Approvals', /^\/v1\/approvals/, 'Requests that wait for a person, and the answers.'],
  ['Tools', /^\/v1\/tools/, 'Services that programs in sandboxes call without seeing a credential.'],
  ['Secrets', /^\/v1\/secrets/, 'Credentials of tools, sealed by the client.'],
  ['Webhooks', /^\/v1\/webhooks/, 'URLs that are told of events.'],
  ['Killswitch', /^\/v1\/killswitch/, 'End a sandbox, an agent, a tenant or everything, and grant nothing there.'],
  ['Events', /^\/v1\/(?!audit|approvals).*(?:events|summary)$/, 'Records as they are written, and sums over days.'],
  ['Metrics', /^\/v1\/(?:.*\/)?metrics$/, 'CPU, memory, processes and disk of sandboxes, now and before.'],
  ['Evidence', /^\/v1\/audit\//, 'The signed chain of records.'],
  ['Models', /^\/v1\/(?:models|llm)/, 'Models that this server serves, and their upstreams.'],
  ['Server', /./, 'Identity of the caller, health, and this document.'],
]

export const TAGS: readonly Tag[] = SUBJECTS.map(([name, , description]) => ({ name, description }))

export function tagOf({ path }: Pick<Route, 'path'>): string {
  return SUBJECTS.find(([, paths]) => paths.test(path))?.[0] ?? 'Server'
}
