import type { SealHook } from './seal.ts'

/** What commands had said beyond their caps when their sandbox was ended would go with it. */
export const keepOutputs: SealHook = {
  name: 'outputs',
  run: async ({ link }, signal) => link.commands.keepOutputs(signal),
}
