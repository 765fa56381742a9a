import { type AgentBoot, type GuestBoot, type GuestPrograms, INSIDE } from '@airlock/contract/guest'

/** Where Debian has them. */
const DEBIAN: GuestPrograms = {
  sh: ['/bin/sh'],
  setpriv: ['/usr/bin/setpriv'],
  env: ['/usr/bin/env'],
  mkfifo: ['/usr/bin/mkfifo'],
  mv: ['/bin/mv'],
  rm: ['/bin/rm'],
  node: [INSIDE.node],
}

/** How the programs that we need are called in this image. */
export function programsOf(boot: GuestBoot | AgentBoot): GuestPrograms {
  return boot.programs ?? DEBIAN
}
