import type { AgentBoot } from '@airlock/contract/guest'
import { AwakeClock } from './awake-clock.ts'
import { KERNELS } from './kernels/kernels.ts'
import { Launcher } from './process/launch.ts'
import { throwUnlessUserIsOther } from './process/user-check.ts'
import { Sessions } from './session/sessions.ts'
import { type RunningServer, serveAgent } from './transport/http/agent-server.ts'
import { SessionAgent } from './transport/http/session-agent.ts'
import { StepCollector } from './transport/http/step-collector.ts'

/** The guest as the session agent of a pod. Fails closed: where user code would be us, nothing is served. */
export async function startAgent(boot: AgentBoot): Promise<RunningServer> {
  const launcher = new Launcher(boot)
  await throwUnlessUserIsOther(launcher, boot.user)
  const collector = new StepCollector()
  const agent = new SessionAgent(
    new Sessions({ boot, outbox: collector, launcher, clock: new AwakeClock(), kernels: KERNELS }),
    collector,
  )
  const groups = boot.groups ? 'cgroups' : 'process sessions'
  const server = await serveAgent(agent, boot.listen, { status: 'ok', user: boot.user.uid, groups })
  return {
    address: server.address,
    close: async () => {
      await server.close()
      await agent.close()
    },
  }
}
