import type { App } from '../../app/app.ts'
import { type Handlers, json } from '../call.ts'

export function modelHandlers({ models }: Pick<App, 'models'>) {
  return {
    listModels: async () => json({ items: [...models.list()] }),
    getLlmStatus: async ({ caller }) => json(await models.status(caller)),
  } satisfies Partial<Handlers>
}
