/** What `.ci/run` does not install. */
const MAY_LACK = new Set(['node20', 'dockerd', 'docker-compose', 'debootstrap', 'qemu-system-x86_64', 'go', 'go-proxy'])

/** Whether a skip for this reason fails the gate: `.ci/run` has installed all that the test needs. */
export function mustRun(reason: string): boolean {
  const needs = /^needs (?<list>.+)$/.exec(reason)?.groups?.['list']
  return !needs?.split(', ').some((need) => MAY_LACK.has(need))
}
