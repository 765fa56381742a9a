import type { ROUTES, RouteName } from '@airlock/contract'

/** Methods and paths of the contract without its schemas, whose library would cost every start of the CLI 100 ms. */
type Table = { readonly [N in RouteName]: { readonly [K in 'method' | 'path']: (typeof ROUTES)[N][K] } }

/** The compiler compares every word of this with the contract. */
export const ROUTE_TABLE: Table = {
  createSandbox: { method: 'POST', path: '/v1/sandboxes' },
  listSandboxes: { method: 'GET', path: '/v1/sandboxes' },
  getSandbox: { method: 'GET', path: '/v1/sandboxes/{id}' },
  getOrCreateSandbox: { method: 'PUT', path: '/v1/sandboxes/by-name/{name}' },
  extendSandbox: { method: 'POST', path: '/v1/sandboxes/{id}/extend' },
  terminateSandbox: { method: 'POST', path: '/v1/sandboxes/{id}/terminate' },
  runCommand: { method: 'POST', path: '/v1/sandboxes/{id}/commands' },
  listCommands: { method: 'GET', path: '/v1/sandboxes/{id}/commands' },
  getCommand: { method: 'GET', path: '/v1/sandboxes/{id}/commands/{command}' },
  commandOutput: { method: 'GET', path: '/v1/sandboxes/{id}/commands/{command}/output' },
  signalCommand: { method: 'POST', path: '/v1/sandboxes/{id}/commands/{command}/signal' },
  writeStdin: { method: 'POST', path: '/v1/sandboxes/{id}/commands/{command}/stdin' },
  readFile: { method: 'GET', path: '/v1/sandboxes/{id}/files' },
  writeFile: { method: 'PUT', path: '/v1/sandboxes/{id}/files' },
  removeFile: { method: 'DELETE', path: '/v1/sandboxes/{id}/files' },
  statFile: { method: 'GET', path: '/v1/sandboxes/{id}/files/stat' },
  listFiles: { method: 'GET', path: '/v1/sandboxes/{id}/files/list' },
  makeDirectory: { method: 'POST', path: '/v1/sandboxes/{id}/files/mkdir' },
  moveFile: { method: 'POST', path: '/v1/sandboxes/{id}/files/move' },
  auditEvents: { method: 'GET', path: '/v1/audit/events' },
  auditExport: { method: 'GET', path: '/v1/audit/export' },
  auditHead: { method: 'GET', path: '/v1/audit/head' },
  auditChains: { method: 'GET', path: '/v1/audit/chains' },
  whoami: { method: 'GET', path: '/v1/whoami' },
  health: { method: 'GET', path: '/healthz' },
  ready: { method: 'GET', path: '/readyz' },
  metrics: { method: 'GET', path: '/metrics' },
  openapi: { method: 'GET', path: '/openapi.json' },
  docs: { method: 'GET', path: '/docs' },
}
