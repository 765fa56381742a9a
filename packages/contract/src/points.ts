import { z } from 'zod'

/**
 * Where evidence is written: a closed list. `reduces` marks what takes power away (deny, end, revoke): it never waits
 * for its record; everything else waits (G7).
 */
export const POINTS = {
  'recorder.start': { reduces: false, about: 'The recorder opened the chain.' },
  'recorder.recover': { reduces: false, about: 'A torn tail was found and cut off.' },
  'recorder.clock': { reduces: true, about: 'The clock of the host jumped; from when to when.' },
  'server.start': { reduces: false, about: 'The control plane began to serve.' },
  'server.stop': { reduces: true, about: 'The control plane stopped serving.' },
  'auth.refuse': { reduces: true, about: 'A caller was refused: no valid key, or not its role.' },
  'auth.sign_in': { reduces: false, about: 'Somebody signed in at the page, with a key or a link.' },
  'auth.sign_out': { reduces: true, about: 'Somebody signed out of the page.' },
  'sandbox.create': { reduces: false, about: 'A sandbox was asked for, and became active or failed.' },
  'sandbox.connect': { reduces: false, about: 'A sandbox was given its doors and a new token.' },
  'sandbox.ask': { reduces: false, about: 'A program in a sandbox asked whether it may do something.' },
  'sandbox.extend': { reduces: false, about: 'The life of a sandbox was extended.' },
  'sandbox.limit': { reduces: false, about: 'The limits of a living sandbox were changed.' },
  'sandbox.pause': { reduces: true, about: 'The processes of a sandbox were stopped where they stood.' },
  'sandbox.resume': { reduces: false, about: 'A paused sandbox was let go on.' },
  'sandbox.terminate': { reduces: true, about: 'A sandbox ended, with its reason.' },
  'sandbox.adopt': { reduces: false, about: 'A living sandbox was found after a restart and kept.' },
  'isolation.start': {
    reduces: false,
    about: 'The data plane started a sandbox; the payload is its effective isolation.',
  },
  'isolation.stop': { reduces: true, about: 'The data plane destroyed a sandbox and saw it gone.' },
  'isolation.reap': { reduces: true, about: 'The data plane found remains that nobody owned and removed them.' },
  'permit.refuse': { reduces: true, about: 'The data plane refused a permit.' },
  'command.run': { reduces: false, about: 'A command was asked for, and ended.' },
  'command.signal': { reduces: false, about: 'A signal was sent to a command.' },
  'command.stdin': { reduces: false, about: 'Bytes were written to the stdin of a command.' },
  'session.create': { reduces: false, about: 'An interpreter was asked for in a sandbox, and answers or failed.' },
  'session.interrupt': { reduces: true, about: 'The running step of a session was interrupted.' },
  'session.restart': { reduces: false, about: 'The interpreter of a session was started anew.' },
  'session.end': { reduces: true, about: 'A session ended, with its reason.' },
  'step.run': { reduces: false, about: 'Code was given to a session, and ended.' },
  'job.submit': { reduces: false, about: 'A job was asked for, and joined the queue.' },
  'job.start': { reduces: false, about: 'A try of a job began.' },
  'job.cancel': { reduces: true, about: 'Somebody canceled a job.' },
  'job.end': { reduces: true, about: 'A job ended: how, after how many tries, and what it left.' },
  'artifact.collect': { reduces: false, about: 'Files of a sandbox were collected as artifacts.' },
  'artifact.upload': { reduces: false, about: 'An artifact was uploaded.' },
  'artifact.download': { reduces: false, about: 'An artifact was downloaded, by a key or by a link.' },
  'artifact.link': { reduces: false, about: 'A signed URL of an artifact was made.' },
  'artifact.remove': { reduces: true, about: 'An artifact was removed: by a caller, or because it expired.' },
  'run.submit': { reduces: false, about: 'A run of an agent program was asked for, and joined the queue.' },
  'run.cancel': { reduces: true, about: 'Somebody canceled a run.' },
  'catalog.put': { reduces: false, about: 'An agent program was put into the catalog of a tenant.' },
  'catalog.remove': { reduces: true, about: 'An agent program was taken out of the catalog.' },
  'model.call': { reduces: false, about: 'A sandbox asked for a model, and was answered; what it cost.' },
  'network.connect': { reduces: false, about: 'A sandbox asked for a connection to a host, and had one or not.' },
  'tool.call': { reduces: false, about: 'A sandbox called a tool, and was answered or not.' },
  'tool.put': { reduces: false, about: 'A tool was described, or got another description.' },
  'tool.remove': { reduces: true, about: 'A tool was removed.' },
  'secret.put': { reduces: false, about: 'A secret was stored, or got a new value; the value is in no record.' },
  'secret.remove': { reduces: true, about: 'A secret was removed.' },
  'template.build': { reduces: false, about: 'The image of a template was built or imported.' },
  'template.remove': { reduces: true, about: 'A template was removed.' },
  'agent.register': { reduces: false, about: 'An agent was registered, approved or not.' },
  'agent.update': { reduces: false, about: 'The version, labels or metadata of an agent were changed.' },
  'agent.approve': { reduces: false, about: 'An agent was approved.' },
  'agent.revoke': { reduces: true, about: 'The approval of an agent was taken back.' },
  'agent.suspend': { reduces: true, about: 'An agent was suspended.' },
  'agent.resume': { reduces: false, about: 'A suspended agent was let go on, in a new generation.' },
  'agent.delete': { reduces: true, about: 'An agent was deleted.' },
  'agent.stale': { reduces: true, about: 'Nothing was heard of a connected agent for too long.' },
  'agent.heartbeat': { reduces: true, about: 'A sign of life of an agent was refused.' },
  'grant.add': { reduces: false, about: 'A host path was granted to an agent.' },
  'grant.remove': { reduces: true, about: 'A host path was taken back from an agent.' },
  'key.create': { reduces: false, about: 'An API key was made.' },
  'key.rotate': { reduces: false, about: 'An API key was made that takes over from another.' },
  'key.revoke': { reduces: true, about: 'An API key was revoked.' },
  'budget.set': { reduces: false, about: 'The budget of an agent or a tenant was set.' },
  'tenant.create': { reduces: false, about: 'A tenant was made.' },
  'file.read': { reduces: false, about: 'A file left a sandbox.' },
  'file.write': { reduces: false, about: 'A file entered a sandbox.' },
  'file.list': { reduces: false, about: 'A directory or file was looked at.' },
  'file.mkdir': { reduces: false, about: 'A directory was made.' },
  'file.move': { reduces: false, about: 'A file was moved.' },
  'file.remove': { reduces: false, about: 'A file was removed.' },
  'worktree.diff': { reduces: false, about: 'What a sandbox changed in its worktree was sealed and looked at.' },
  'worktree.export': { reduces: false, about: 'Work of a sandbox left as a branch or a patch.' },
  'approval.ask': { reduces: true, about: 'Something must be approved by a person first; or its ask was joined.' },
  'approval.approve': { reduces: false, about: 'Somebody let what was asked for happen; the scope says how often.' },
  'approval.reject': { reduces: true, about: 'Somebody said no to what was asked for.' },
  'approval.revoke': { reduces: true, about: 'An approval was taken back.' },
  'approval.expire': { reduces: true, about: 'Nobody answered an ask in time, or nobody used an approval.' },
  'approval.use': { reduces: false, about: 'An approval let something pass.' },
  'webhook.create': { reduces: false, about: 'A webhook was made.' },
  'webhook.remove': { reduces: true, about: 'A webhook was removed.' },
  'webhook.deliver': { reduces: true, about: 'A webhook was not told of an event, after all tries.' },
  'monitor.alert': { reduces: true, about: 'A sandbox went beyond a threshold, or came back; or was ended for it.' },
  'kill.on': { reduces: true, about: 'A killswitch was turned on: what it ended, and what could not be verified.' },
  'kill.lift': { reduces: false, about: 'A killswitch was lifted.' },
  'audit.lost': { reduces: true, about: 'Records of what reduces were lost before they joined the chain; how many.' },
  'audit.drop': { reduces: true, about: 'Retention dropped the oldest records; up to which.' },
  'audit.broken': { reduces: true, about: 'Older evidence does not verify any more; where, and why.' },
  'audit.quarantine': { reduces: false, about: 'Evidence that does not verify was set aside; from where, and why.' },
  'audit.read': { reduces: false, about: 'Evidence was read or exported.' },
  'policy.put': { reduces: false, about: 'A policy got a new version.' },
  'policy.remove': { reduces: false, about: 'A policy was taken out of force.' },
} as const satisfies Record<string, { reduces: boolean; about: string }>

/**
 * Whether Guardian is asked before it. Not of what reduces, which no policy may hold up, and not of what governs the
 * policies themselves: that is for roles alone, or a policy could lock everybody out.
 */
export function isGoverned(of: Point): of is GovernedPoint {
  return GOVERNED.has(of)
}

/** What governs Guardian itself, and what we do of our own accord. */
const UNGOVERNED = [
  'auth',
  'recorder',
  'server',
  'isolation',
  'policy',
  'approval',
  'kill',
  'webhook',
  'sandbox.adopt',
  'audit.quarantine',
] as const
type Ungoverned = (typeof UNGOVERNED)[number]

export type UngovernedPoint = {
  [P in Point]: (typeof POINTS)[P]['reduces'] extends true
    ? P
    : P extends Ungoverned | `${Ungoverned}.${string}`
      ? P
      : never
}[Point]
export type GovernedPoint = Exclude<Point, UngovernedPoint>

export type Point = keyof typeof POINTS
export const point = z.enum(Object.keys(POINTS) as [Point, ...Point[]])

const GOVERNED: ReadonlySet<Point> = new Set(
  point.options.filter(
    (of) => !POINTS[of].reduces && !UNGOVERNED.some((name) => of === name || of.startsWith(`${name}.`)),
  ),
)

/** `requested` before an effect; one of the others after it. `unknown` is written by reconciliation. */
export const recordStatus = z.enum(['requested', 'done', 'failed', 'denied', 'unknown'])
export type RecordStatus = z.infer<typeof recordStatus>
