import type { AgentBoot, GuestBoot } from '@airlock/contract/guest'
import { startAgent } from './agent.ts'
import { parseBoot } from './boot.ts'
import { openBridge } from './doors/bridge.ts'
import { Guest } from './guest.ts'
import { HostConnection } from './transport/host-connection.ts'

const boot = parseBoot(process.argv[2])

process.umask(0o022)
try {
  process.setgroups?.([])
} catch {
  // A user namespace may deny setgroups; there are no groups to lose in that case.
}

if ('listen' in boot) void serve(boot)
else void dial(boot)

async function dial(guestBoot: GuestBoot): Promise<void> {
  // User code starts on requests of the host, so no program of it can have the port before.
  await Promise.all((guestBoot.bridges ?? []).map(openBridge))

  const connection = new HostConnection(guestBoot.socket)
  const guest = new Guest(guestBoot, connection)
  surviveFaults()
  connection.start(guest)
  // The hello goes out first: the host has work to do with it while we prepare.
  setImmediate(() => guest.prepare())
}

/** Says where it listens, on one line of JSON; ends its sessions when it is told to end. */
async function serve(agentBoot: AgentBoot): Promise<void> {
  try {
    const agent = await startAgent(agentBoot)
    surviveFaults()
    process.once('SIGTERM', () => void agent.close().finally(() => process.exit(0)))
    process.stdout.write(`${JSON.stringify({ listening: agent.address })}\n`)
  } catch (error) {
    process.stderr.write(
      `the session agent does not start: ${error instanceof Error ? error.message : String(error)}\n`,
    )
    process.exit(1)
  }
}

/** One broken command or request must not end the others: the host's own deadlines notice what is stuck. */
function surviveFaults(): void {
  process.on('uncaughtException', () => {})
  process.on('unhandledRejection', () => {})
}
