import { parseBoot } from './boot.ts'
import { Guest } from './guest.ts'
import { HostConnection } from './transport/host-connection.ts'

const boot = parseBoot(process.argv[2])

process.umask(0o022)
try {
  process.setgroups?.([])
} catch {
  // A user namespace may deny setgroups; there are no groups to lose in that case.
}

const connection = new HostConnection(boot.socket)
const guest = new Guest(boot, connection)

// One broken command or request must not end the others: the host's own deadlines notice what is stuck.
process.on('uncaughtException', () => {})
process.on('unhandledRejection', () => {})

connection.start(guest)
// The hello goes out first: the host has work to do with it while we prepare.
setImmediate(() => guest.prepare())
