import type { AuditSink } from '@airlock/audit'
import { AirlockError, type Decision, type Question } from '@airlock/contract'
import { createLog } from '@airlock/std'
import type { AnyCaller } from '../app/caller.ts'
import { type Approvals, Guardian } from '../policies/guardian.ts'
import { KillList } from '../kills/kill-list.ts'
import { EphemeralSandboxes } from '../sandboxes/ephemeral-sandboxes.ts'
import { PolicyBook } from '../policies/policy-book.ts'
import type { Store } from '../store/engine/store.ts'
import type { Context } from '../app/context.ts'

/** For tests: the real Guardian on the policies of a store, with nobody to answer an ask. */
export function makeGuardian(
  store: Store,
  audit: AuditSink,
  kills = new KillList(),
): Pick<Context, 'policies' | 'guardian' | 'ephemeral'> {
  const log = createLog({ process: 'control-plane', level: 'silent', write: () => {} })
  const policies = new PolicyBook({ store, log, default: 'allow' })
  const ephemeral = new EphemeralSandboxes()
  const approvals = new UnansweredApprovals()
  const guardian = new Guardian({ book: policies, sources: [], approvals, audit, kills, ephemeral })
  return { policies, guardian, ephemeral }
}

/** Nobody can be asked: an *ask* stays unanswered. */
class UnansweredApprovals implements Approvals {
  async settle(_caller: AnyCaller, _question: Question, decision: Decision): Promise<Decision> {
    const rule = decision.rules.find(({ effect }) => effect === 'ask')
    throw new AirlockError('approval_required', rule && `A person must approve it: ${rule.reason}`)
  }
}
