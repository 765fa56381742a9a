import { z } from 'zod'
import { agent } from './agent.ts'
import { budget } from './budget.ts'
import { limits, sandbox } from './sandbox.ts'

/** The agent of a sandbox, as it was when the sandbox was given. */
const agentSnapshot = agent.pick({ state: true, generation: true, approved: true, version: true, labels: true })

/** What is set aside for a sandbox until it ends, and what is left of the budget of its agent with that. */
const reserved = z.strictObject({ reservation: z.string(), limits, budget })

/** A sandbox as it is given to who asked for it; what it sees of the host is in `mounts`. */
export const createdSandbox = sandbox.extend({ agentSnapshot, reserved })
export type CreatedSandbox = z.infer<typeof createdSandbox>
