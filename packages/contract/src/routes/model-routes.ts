import { z } from 'zod'
import { model } from '../nouns/model.ts'
import { READERS, type Route } from './route.ts'

export const MODEL_API_ROUTES = {
  listModels: {
    method: 'GET',
    path: '/v1/models',
    needs: 'serving',
    repeats: 'safe',
    summary: 'Models of the configured upstreams, with their prices. No door leads there yet.',
    roles: READERS,
    answers: 'json',
    response: z.strictObject({ items: z.array(model) }),
    errors: [],
  },
} as const satisfies Record<string, Route>
